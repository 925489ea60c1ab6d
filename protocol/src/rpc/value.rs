//! Values that stand in arguments and results.

use std::collections::BTreeMap;

use thrift::protocol::{TInputProtocol, TListIdentifier, TMapIdentifier, TOutputProtocol, TSerializable, TType};

use crate::generated::*;

/// A value with one Thrift type.
pub trait WireValue: Sized {
    /// What stands in the header of its field.
    const TYPE: TType;

    /// The value of a field that is not there, if that has a meaning.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()>;
    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self>;
}

/// What a void method returns: no field at all.
impl WireValue for () {
    const TYPE: TType = TType::Void;

    fn absent() -> Option<Self> {
        Some(())
    }

    fn write(&self, _: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        Ok(())
    }

    fn read(_: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        Ok(())
    }
}

macro_rules! numbers {
    ($($t:ty, $ttype:ident, $write:ident, $read:ident;)*) => { $(
        impl WireValue for $t {
            const TYPE: TType = TType::$ttype;

            fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
                out.$write(*self)
            }

            fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
                input.$read()
            }
        }
    )* };
}

numbers! {
    bool, Bool, write_bool, read_bool;
    i16, I16, write_i16, read_i16;
    i32, I32, write_i32, read_i32;
    i64, I64, write_i64, read_i64;
}

impl WireValue for String {
    const TYPE: TType = TType::String;

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        out.write_string(self)
    }

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        input.read_string()
    }
}

/// Thrift's `binary`.
impl WireValue for Vec<u8> {
    const TYPE: TType = TType::String;

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        out.write_bytes(self)
    }

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        input.read_bytes()
    }
}

/// A list holds at most 2^31 - 1 elements; the messages of this service are far smaller.
impl<T: WireValue> WireValue for Vec<T> {
    const TYPE: TType = TType::List;

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        out.write_list_begin(&TListIdentifier::new(T::TYPE, i32::try_from(self.len()).unwrap_or(i32::MAX)))?;
        self.iter().try_for_each(|element| element.write(out))?;
        out.write_list_end()
    }

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        let list = input.read_list_begin()?;
        if list.size > 0 && list.element_type != T::TYPE {
            return Err(thrift::Error::Protocol(thrift::ProtocolError::new(
                thrift::ProtocolErrorKind::InvalidData,
                format!("a list of {:?} stands where one of {:?} belongs", list.element_type, T::TYPE),
            )));
        }
        let elements = (0..list.size).map(|_| T::read(input)).collect::<thrift::Result<_>>()?;
        input.read_list_end()?;
        Ok(elements)
    }
}

/// As few as options of a subscription.
impl<K: WireValue + Ord, V: WireValue> WireValue for BTreeMap<K, V> {
    const TYPE: TType = TType::Map;

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        out.write_map_begin(&TMapIdentifier::new(K::TYPE, V::TYPE, i32::try_from(self.len()).unwrap_or(i32::MAX)))?;
        self.iter().try_for_each(|(key, value)| {
            key.write(out)?;
            value.write(out)
        })?;
        out.write_map_end()
    }

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
        let map = input.read_map_begin()?;
        // An empty one does not say what is in it, in compact.
        let fits = |found: Option<TType>, wanted| map.size <= 0 || found.is_none_or(|found| found == wanted);
        if !fits(map.key_type, K::TYPE) || !fits(map.value_type, V::TYPE) {
            return Err(thrift::Error::Protocol(thrift::ProtocolError::new(
                thrift::ProtocolErrorKind::InvalidData,
                format!(
                    "a map of {:?} to {:?} stands where one of {:?} to {:?} belongs",
                    map.key_type,
                    map.value_type,
                    K::TYPE,
                    V::TYPE
                ),
            )));
        }
        let entries = (0..map.size).map(|_| Ok((K::read(input)?, V::read(input)?))).collect::<thrift::Result<_>>()?;
        input.read_map_end()?;
        Ok(entries)
    }
}

macro_rules! structs {
    ($($t:ty),*) => { $(
        impl WireValue for $t {
            const TYPE: TType = TType::Struct;

            fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
                self.write_to_out_protocol(out)
            }

            fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Self> {
                Self::read_from_in_protocol(input)
            }
        }
    )* };
}

structs!(
    TMessageID,
    TFetch,
    TFetched,
    TDeadLetterID,
    TRedriven,
    TExplanation,
    TKeptLetter,
    HQueueError,
    TMessage,
    TMessageScan,
    TScanReport,
    TPutResult,
    TRegistration,
    TRegistered,
    TQueueSpec,
    TQueueDescription,
    TSubscriberSpec,
    TSubscriptionStatus,
    TQueueStatus,
    TClusterStatus
);

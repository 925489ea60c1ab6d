//! Random Thrift values, written by the stock protocols: what an application of another version may send.

use hqueue_protocol::wire::Protocol;
use proptest::prelude::*;
use thrift::protocol::{
    TFieldIdentifier, TListIdentifier, TMapIdentifier, TOutputProtocol, TSetIdentifier, TStructIdentifier, TType,
};

use super::support::{Written, output};

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    Double(f64),
    Uuid(u128),
    String(Vec<u8>),
    Struct(Vec<(i16, Value)>),
    /// All elements are of the kind of the first value, which is not written.
    List(Box<Value>, Vec<Value>),
    Set(Box<Value>, Vec<Value>),
    Map(Box<Value>, Box<Value>, Vec<(Value, Value)>),
}

impl Value {
    fn ttype(&self) -> TType {
        match self {
            Self::Bool(_) => TType::Bool,
            Self::I8(_) => TType::I08,
            Self::I16(_) => TType::I16,
            Self::I32(_) => TType::I32,
            Self::I64(_) => TType::I64,
            Self::Double(_) => TType::Double,
            Self::Uuid(_) => TType::Uuid,
            Self::String(_) => TType::String,
            Self::Struct(_) => TType::Struct,
            Self::List(..) => TType::List,
            Self::Set(..) => TType::Set,
            Self::Map(..) => TType::Map,
        }
    }

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        match self {
            Self::Bool(value) => out.write_bool(*value),
            Self::I8(value) => out.write_i8(*value),
            Self::I16(value) => out.write_i16(*value),
            Self::I32(value) => out.write_i32(*value),
            Self::I64(value) => out.write_i64(*value),
            Self::Double(value) => out.write_double(*value),
            Self::Uuid(value) => out.write_uuid(&uuid::Uuid::from_u128(*value)),
            Self::String(value) => out.write_bytes(value),
            Self::Struct(fields) => {
                out.write_struct_begin(&TStructIdentifier::new("s"))?;
                for (id, value) in fields {
                    out.write_field_begin(&TFieldIdentifier::new("f", value.ttype(), *id))?;
                    value.write(out)?;
                    out.write_field_end()?;
                }
                out.write_field_stop()?;
                out.write_struct_end()
            }
            Self::List(element, values) => {
                out.write_list_begin(&TListIdentifier::new(element.ttype(), values.len() as i32))?;
                values.iter().try_for_each(|value| value.write(out))
            }
            Self::Set(element, values) => {
                out.write_set_begin(&TSetIdentifier::new(element.ttype(), values.len() as i32))?;
                values.iter().try_for_each(|value| value.write(out))
            }
            Self::Map(key, value, entries) => {
                out.write_map_begin(&TMapIdentifier::new(key.ttype(), value.ttype(), entries.len() as i32))?;
                entries.iter().try_for_each(|(key, value)| key.write(out).and_then(|()| value.write(out)))
            }
        }
    }

    pub(crate) fn encode(&self, protocol: Protocol) -> Vec<u8> {
        let written = Written::default();
        self.write(&mut *output(protocol, &written)).unwrap();
        written.take()
    }

    /// A value of the same kind, and of the same kinds within, made of a few bytes of randomness.
    fn like(&self, seed: u64) -> Value {
        match self {
            Self::Bool(_) => Self::Bool(seed % 2 == 1),
            Self::I8(_) => Self::I8(seed as i8),
            Self::I16(_) => Self::I16(seed as i16),
            Self::I32(_) => Self::I32((seed as i32) >> (seed % 31)),
            Self::I64(_) => Self::I64((seed as i64) >> (seed % 63)),
            Self::Double(_) => Self::Double(seed as f64),
            Self::Uuid(_) => Self::Uuid(u128::from(seed) << 64 | 7),
            Self::String(_) => Self::String(vec![seed as u8; (seed % 40) as usize]),
            other => other.clone(),
        }
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        (-1e300..1e300f64).prop_map(Value::Double),
        any::<u128>().prop_map(Value::Uuid),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Value::String),
    ]
}

/// Any value: a struct now and then, lists of up to 20 elements.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 20, |inner| {
        let seeds = || prop::collection::vec(any::<u64>(), 0..20);
        let many = |value: &Value, seeds: Vec<u64>| seeds.iter().map(|seed| value.like(*seed)).collect::<Vec<_>>();
        prop_oneof![
            prop::collection::vec((any::<i16>().prop_filter("0 ends nothing but confuses", |id| *id != 0), inner.clone()), 0..5)
                .prop_map(|fields| Value::Struct(increasing(fields))),
            (inner.clone(), seeds()).prop_map(move |(value, seeds)| Value::List(value.clone().into(), many(&value, seeds))),
            (inner.clone(), seeds()).prop_map(move |(value, seeds)| Value::Set(value.clone().into(), many(&value, seeds))),
            (inner.clone(), inner, seeds()).prop_map(move |(key, value, seeds)| {
                let entries: Vec<_> = many(&key, seeds.clone()).into_iter().zip(many(&value, seeds)).collect();
                match entries.is_empty() {
                    // The compact protocol does not say of what an empty map is.
                    true => Value::Map(Value::I8(0).into(), Value::I8(0).into(), entries),
                    false => Value::Map(key.into(), value.into(), entries),
                }
            }),
        ]
    })
}

/// Ids that are far apart make the stock writer of the compact protocol overflow, so some are brought near.
fn increasing(fields: Vec<(i16, Value)>) -> Vec<(i16, Value)> {
    fields.into_iter().map(|(id, value)| (id / 3, value)).collect()
}

/// Fields that a `TMessage` of another version may have behind ours.
pub(crate) fn unknown_fields() -> impl Strategy<Value = Vec<(i16, Value)>> {
    prop::collection::vec((6i16..40, any_value()), 0..3)
}

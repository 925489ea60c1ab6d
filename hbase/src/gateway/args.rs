//! Arguments of calls, from parts.

use bytes::Bytes;
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encode, Kind};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TSerializable};

use super::GatewayError;

/// A struct of arguments while it is written.
#[derive(Debug, Default)]
pub(crate) struct Args(Vec<u8>);

/// Begins a struct of arguments.
pub(crate) fn args() -> Args {
    Args::default()
}

impl Args {
    pub(crate) fn bytes(mut self, id: i16, value: &[u8]) -> Self {
        Binary::write_field(&mut self.0, Kind::String, id, 0);
        Binary::write_string(&mut self.0, value);
        self
    }

    pub(crate) fn list(mut self, id: i16, values: &[Vec<u8>]) -> Self {
        Binary::write_field(&mut self.0, Kind::List, id, 0);
        Binary::write_list(&mut self.0, Kind::String, u32::try_from(values.len()).unwrap_or(u32::MAX));
        values.iter().for_each(|value| Binary::write_string(&mut self.0, value));
        self
    }

    pub(crate) fn flag(mut self, id: i16, value: bool) -> Self {
        Binary::write_field(&mut self.0, Kind::Bool, id, 0);
        Binary::write_bool(&mut self.0, value);
        self
    }

    pub(crate) fn structure(mut self, id: i16, value: &impl TSerializable) -> Self {
        Binary::write_field(&mut self.0, Kind::Struct, id, 0);
        let written = value.write_to_out_protocol(&mut TBinaryOutputProtocol::new(&mut self.0, true));
        debug_assert!(written.is_ok(), "writing into memory cannot fail: {written:?}");
        self
    }

    pub(crate) fn structures(mut self, id: i16, values: &[impl TSerializable]) -> Self {
        Binary::write_field(&mut self.0, Kind::List, id, 0);
        Binary::write_list(&mut self.0, Kind::Struct, u32::try_from(values.len()).unwrap_or(u32::MAX));
        for value in values {
            let written = value.write_to_out_protocol(&mut TBinaryOutputProtocol::new(&mut self.0, true));
            debug_assert!(written.is_ok(), "writing into memory cannot fail: {written:?}");
        }
        self
    }

    pub(crate) fn end(mut self) -> Bytes {
        Binary::write_end(&mut self.0);
        self.0.into()
    }
}

/// Reads a struct that stands alone.
pub(crate) fn decode<T: TSerializable>(bytes: &[u8]) -> Result<T, GatewayError> {
    T::read_from_in_protocol(&mut TBinaryInputProtocol::new(bytes, true))
        .map_err(|error| GatewayError::Foreign { reason: error.to_string() })
}

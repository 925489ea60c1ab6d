//! The calls of the gateway and of administration: names, arguments, results, and their bytes.
//!
//! One table (`methods.rs`) has a line for each method of the three services. A line becomes a marker type that
//! is a [`Method`], and a struct of its arguments. Arguments and results are encoded apart from the message header, which belongs
//! to whoever owns the connection.
//!
//! ```text
//! arguments  struct { 1: first argument, 2: second argument, ... }
//! result     struct { 0: success, unless the method is void } or struct { 1: HQueueError }
//! ```
//!
//! Decoding reads what was checked for depth and sizes before ([`crate::server`] and [`crate::client`] do that); it never
//! panics on other bytes, but may take memory for what they announce.

mod methods;
#[cfg(test)]
mod tests;
mod value;

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TFieldIdentifier, TInputProtocol,
    TOutputProtocol, TStructIdentifier, TType,
};

pub use self::methods::*;
pub use self::value::WireValue;
use crate::generated::HQueueError;
use crate::wire::Protocol;

/// The bytes are no arguments, or no result, of the method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// No Thrift, or values of other types than the method has.
    #[error("{method}: {reason}")]
    Malformed { method: &'static str, reason: String },
    /// An argument is absent, or has another type.
    #[error("{method}: the argument {argument} is missing or has the wrong type")]
    MissingArgument { method: &'static str, argument: &'static str },
    /// Neither a value nor an error.
    #[error("{method}: the reply holds neither a result nor an error")]
    MissingResult { method: &'static str },
}

/// What a method takes. Made by the table.
pub trait Arguments: Sized {
    /// Writes the fields, without the end of the struct.
    fn write_fields(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()>;

    /// Reads the struct up to its end. The inner error names an argument that is not there.
    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Result<Self, &'static str>>;
}

/// A method of a service.
pub trait Method {
    /// As on the wire.
    const NAME: &'static str;
    /// The name between brokers: the one that is called answers for what it owns, and asks nobody else.
    const AT_OWNER: &'static str;
    type Args: Arguments;
    /// `()` for a method that returns nothing.
    type Success: WireValue;

    /// The struct of the arguments.
    #[must_use]
    fn encode_args(protocol: Protocol, args: &Self::Args) -> Vec<u8> {
        encode(protocol, |out| args.write_fields(out))
    }

    /// Reads a struct of arguments. Unknown fields are skipped, as Thrift has it.
    fn decode_args(protocol: Protocol, bytes: &[u8]) -> Result<Self::Args, RpcError> {
        decode(protocol, bytes, Self::Args::read)
            .map_err(|e| RpcError::Malformed { method: Self::NAME, reason: e.to_string() })?
            .map_err(|argument| RpcError::MissingArgument { method: Self::NAME, argument })
    }

    /// The struct of the result.
    #[must_use]
    fn encode_result(protocol: Protocol, result: &Result<Self::Success, HQueueError>) -> Vec<u8> {
        encode(protocol, |out| match result {
            Ok(_) if Self::Success::TYPE == TType::Void => Ok(()),
            Ok(success) => write_field(out, 0, success),
            Err(error) => write_field(out, 1, error),
        })
    }

    /// Reads a struct of a result.
    fn decode_result(protocol: Protocol, bytes: &[u8]) -> Result<Result<Self::Success, HQueueError>, RpcError> {
        let (mut success, mut error) = (Self::Success::absent(), None);
        decode(protocol, bytes, |input| {
            read_fields(input, |input, field| match field {
                (0, ttype) if ttype == Self::Success::TYPE => Self::Success::read(input).map(|v| success = Some(v)),
                (1, TType::Struct) => HQueueError::read(input).map(|v| error = Some(v)),
                (_, ttype) => input.skip(ttype),
            })
        })
        .map_err(|e| RpcError::Malformed { method: Self::NAME, reason: e.to_string() })?;
        match (error, success) {
            (Some(error), _) => Ok(Err(error)),
            (None, Some(success)) => Ok(Ok(success)),
            (None, None) => Err(RpcError::MissingResult { method: Self::NAME }),
        }
    }
}

/// Writes one field with its header.
fn write_field<T: WireValue>(out: &mut dyn TOutputProtocol, id: i16, value: &T) -> thrift::Result<()> {
    out.write_field_begin(&TFieldIdentifier { name: None, field_type: T::TYPE, id: Some(id) })?;
    value.write(out)?;
    out.write_field_end()
}

/// Reads a struct; `read` is given each field's number and type, and reads or skips its value.
fn read_fields(
    input: &mut dyn TInputProtocol,
    mut read: impl FnMut(&mut dyn TInputProtocol, (i16, TType)) -> thrift::Result<()>,
) -> thrift::Result<()> {
    input.read_struct_begin()?;
    loop {
        let field = input.read_field_begin()?;
        if field.field_type == TType::Stop {
            break;
        }
        read(input, (field.id.unwrap_or(-1), field.field_type))?;
        input.read_field_end()?;
    }
    input.read_struct_end()
}

fn encode(protocol: Protocol, fields: impl Fn(&mut dyn TOutputProtocol) -> thrift::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = match protocol {
        Protocol::Binary => write_struct(&mut TBinaryOutputProtocol::new(&mut bytes, true), fields),
        Protocol::Compact => write_struct(&mut TCompactOutputProtocol::new(&mut bytes), fields),
    };
    debug_assert!(written.is_ok(), "writing into memory cannot fail: {written:?}");
    bytes
}

fn write_struct(
    out: &mut dyn TOutputProtocol,
    fields: impl Fn(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> thrift::Result<()> {
    out.write_struct_begin(&TStructIdentifier::new(""))?;
    fields(out)?;
    out.write_field_stop()?;
    out.write_struct_end()
}

fn decode<T>(
    protocol: Protocol,
    bytes: &[u8],
    read: impl FnOnce(&mut dyn TInputProtocol) -> thrift::Result<T>,
) -> thrift::Result<T> {
    match protocol {
        Protocol::Binary => read(&mut TBinaryInputProtocol::new(bytes, true)),
        Protocol::Compact => read(&mut TCompactInputProtocol::new(bytes)),
    }
}

//! Writes the values of one protocol in another, stepping over them: no value is decoded into a struct.

use super::encoding::Encoding;
use super::kind::{Field, Kind};
use super::{MAX_DEPTH, WireError};

/// Writes the heads of values, and numbers.
pub trait Encode {
    /// The head of a field that is no bool. `last` is the id of the field before it, 0 in front.
    fn write_field(out: &mut Vec<u8>, kind: Kind, id: i16, last: i16);
    /// A field that is a bool, value included.
    fn write_bool_field(out: &mut Vec<u8>, value: bool, id: i16, last: i16);
    /// The head of a list or set.
    fn write_list(out: &mut Vec<u8>, element: Kind, count: u32);
    fn write_map(out: &mut Vec<u8>, key: Kind, value: Kind, count: u32);
    fn write_string(out: &mut Vec<u8>, string: &[u8]);
    /// A bool that is an element.
    fn write_bool(out: &mut Vec<u8>, value: bool);
    /// A number of 16, 32 or 64 bits that is within its kind.
    fn write_number(out: &mut Vec<u8>, kind: Kind, number: i64);
    fn write_double(out: &mut Vec<u8>, bits: u64);

    /// The end of a struct: the same in all protocols.
    fn write_end(out: &mut Vec<u8>) {
        out.push(0);
    }
}

/// Writes the value at `at` to `out`. It stands in `outside` containers; deeper than [`MAX_DEPTH`] is refused, and so is what would
/// make `out` longer than `limit`: one protocol may say in a byte what takes the other eight.
pub fn copy<From: Encoding, To: Encode>(
    bytes: &[u8],
    at: &mut usize,
    kind: Kind,
    outside: usize,
    out: &mut Vec<u8>,
    limit: usize,
) -> Result<(), WireError> {
    let is_container = matches!(kind, Kind::Struct | Kind::List | Kind::Set | Kind::Map);
    if is_container && outside >= MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    match kind {
        Kind::Struct => {
            let mut last = 0;
            while let Some(field) = From::field(bytes, at, last)? {
                copy_field::<From, To>(bytes, at, field, last, outside + 1, out, limit)?;
                last = field.id;
            }
            To::write_end(out);
        }
        Kind::List | Kind::Set => {
            let (element, count) = From::list(bytes, at)?;
            To::write_list(out, element, count);
            for _ in 0..count {
                copy::<From, To>(bytes, at, element, outside + 1, out, limit)?;
            }
        }
        Kind::Map => {
            let (key, value, count) = From::map(bytes, at)?;
            To::write_map(out, key, value, count);
            for _ in 0..count {
                copy::<From, To>(bytes, at, key, outside + 1, out, limit)?;
                copy::<From, To>(bytes, at, value, outside + 1, out, limit)?;
            }
        }
        Kind::String => To::write_string(out, From::string(bytes, at)?),
        Kind::Bool => To::write_bool(out, From::bool(bytes, at)?),
        Kind::Double => To::write_double(out, From::double(bytes, at)?),
        Kind::I8 | Kind::Uuid => {
            let size = if kind == Kind::I8 { 1 } else { 16 };
            out.extend_from_slice(bytes.get(*at..).and_then(|rest| rest.get(..size)).ok_or(WireError::Truncated)?);
            *at += size;
        }
        Kind::I16 | Kind::I32 | Kind::I64 => To::write_number(out, kind, From::number(bytes, at, kind)?),
    }
    if out.len() > limit { Err(WireError::TooLarge { size: out.len(), limit }) } else { Ok(()) }
}

/// Writes a field whose head has been read. It stands in `outside` containers, its struct counted.
pub fn copy_field<From: Encoding, To: Encode>(
    bytes: &[u8],
    at: &mut usize,
    field: Field,
    last: i16,
    outside: usize,
    out: &mut Vec<u8>,
    limit: usize,
) -> Result<(), WireError> {
    if field.kind == Kind::Bool {
        let value = field.inline.map_or_else(|| From::bool(bytes, at), Ok)?;
        To::write_bool_field(out, value, field.id, last);
        return Ok(());
    }
    To::write_field(out, field.kind, field.id, last);
    copy::<From, To>(bytes, at, field.kind, outside, out, limit)
}

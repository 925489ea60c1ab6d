//! Thrift's binary protocol: big-endian numbers, sizes in four bytes.
//!
//! ```text
//! field   type (1)  id (2)  value          a struct ends with type 0
//! string  size (4)  bytes
//! list    type (1)  count (4)  elements    a set likewise
//! map     key type (1)  value type (1)  count (4)  keys and values in turn
//! ```

use super::copy::Encode;
use super::encoding::Encoding;
use super::kind::{Field, Kind};
use super::{WireError, walk};

/// Steps over the binary protocol.
#[derive(Clone, Copy, Debug)]
pub struct Binary;

#[inline]
fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Result<[u8; N], WireError> {
    let found = bytes.get(*at..).and_then(|rest| rest.first_chunk::<N>()).ok_or(WireError::Truncated)?;
    *at += N;
    Ok(*found)
}

#[inline]
pub fn read_u8(bytes: &[u8], at: &mut usize) -> Result<u8, WireError> {
    take::<1>(bytes, at).map(|[b]| b)
}

#[inline]
pub fn read_i16(bytes: &[u8], at: &mut usize) -> Result<i16, WireError> {
    take(bytes, at).map(i16::from_be_bytes)
}

#[inline]
pub fn read_i32(bytes: &[u8], at: &mut usize) -> Result<i32, WireError> {
    take(bytes, at).map(i32::from_be_bytes)
}

#[inline]
pub fn read_i64(bytes: &[u8], at: &mut usize) -> Result<i64, WireError> {
    take(bytes, at).map(i64::from_be_bytes)
}

/// A size: not negative.
#[inline]
pub fn read_size(bytes: &[u8], at: &mut usize) -> Result<usize, WireError> {
    let size = read_i32(bytes, at)?;
    usize::try_from(size).map_err(|_| WireError::NegativeSize(size.into()))
}

/// A string or binary.
#[inline]
pub fn read_bytes<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8], WireError> {
    Binary::string(bytes, at)
}

/// Steps over a value of a type. `depth` is how many structs, lists and maps it stands in.
pub fn skip(bytes: &[u8], at: &mut usize, ttype: u8, depth: usize) -> Result<(), WireError> {
    walk::skip::<Binary>(bytes, at, Kind::from_binary(ttype)?, depth)
}

fn read_count(bytes: &[u8], at: &mut usize) -> Result<u32, WireError> {
    let count = read_i32(bytes, at)?;
    u32::try_from(count).map_err(|_| WireError::NegativeSize(count.into()))
}

fn element(code: u8, count: u32) -> Result<Kind, WireError> {
    if code == 0 && count == 0 { Ok(Kind::I8) } else { Kind::from_binary(code) }
}

impl Encoding for Binary {
    // Two fields of 3 + 4 bytes, one byte of topic, the end.
    const MIN_MESSAGE_BYTES: usize = 16;

    #[inline]
    fn field(bytes: &[u8], at: &mut usize, _last: i16) -> Result<Option<Field>, WireError> {
        let code = read_u8(bytes, at)?;
        if code == 0 {
            return Ok(None);
        }
        let kind = Kind::from_binary(code)?;
        Ok(Some(Field { id: read_i16(bytes, at)?, kind, inline: None }))
    }

    fn list(bytes: &[u8], at: &mut usize) -> Result<(Kind, u32), WireError> {
        let code = read_u8(bytes, at)?;
        let count = read_count(bytes, at)?;
        Ok((element(code, count)?, count))
    }

    fn map(bytes: &[u8], at: &mut usize) -> Result<(Kind, Kind, u32), WireError> {
        let (key, value) = (read_u8(bytes, at)?, read_u8(bytes, at)?);
        let count = read_count(bytes, at)?;
        Ok((element(key, count)?, element(value, count)?, count))
    }

    #[inline]
    fn size(bytes: &[u8], at: &mut usize) -> Result<usize, WireError> {
        read_size(bytes, at)
    }

    #[inline]
    fn number(bytes: &[u8], at: &mut usize, kind: Kind) -> Result<i64, WireError> {
        match kind {
            Kind::I16 => read_i16(bytes, at).map(i64::from),
            Kind::I32 => read_i32(bytes, at).map(i64::from),
            Kind::I64 => read_i64(bytes, at),
            other => Err(WireError::BadType(other.binary_code())),
        }
    }

    fn double(bytes: &[u8], at: &mut usize) -> Result<u64, WireError> {
        take(bytes, at).map(u64::from_be_bytes)
    }

    fn bool(bytes: &[u8], at: &mut usize) -> Result<bool, WireError> {
        read_u8(bytes, at).map(|byte| byte != 0)
    }

    #[inline]
    fn width(kind: Kind) -> Option<usize> {
        match kind {
            Kind::Bool | Kind::I8 => Some(1),
            Kind::I16 => Some(2),
            Kind::I32 => Some(4),
            Kind::I64 | Kind::Double => Some(8),
            Kind::Uuid => Some(16),
            Kind::String | Kind::Struct | Kind::Map | Kind::Set | Kind::List => None,
        }
    }
}

impl Encode for Binary {
    fn write_field(out: &mut Vec<u8>, kind: Kind, id: i16, _last: i16) {
        let [high, low] = id.to_be_bytes();
        out.extend_from_slice(&[kind.binary_code(), high, low]);
    }

    fn write_bool_field(out: &mut Vec<u8>, value: bool, id: i16, last: i16) {
        Self::write_field(out, Kind::Bool, id, last);
        Self::write_bool(out, value);
    }

    fn write_list(out: &mut Vec<u8>, element: Kind, count: u32) {
        out.push(element.binary_code());
        out.extend_from_slice(&count.to_be_bytes());
    }

    fn write_map(out: &mut Vec<u8>, key: Kind, value: Kind, count: u32) {
        out.push(key.binary_code());
        Self::write_list(out, value, count);
    }

    fn write_string(out: &mut Vec<u8>, string: &[u8]) {
        // A longer one cannot be said in this protocol; all that come here are within a limit far below.
        out.extend_from_slice(&u32::try_from(string.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(string);
    }

    fn write_bool(out: &mut Vec<u8>, value: bool) {
        out.push(value.into());
    }

    fn write_number(out: &mut Vec<u8>, kind: Kind, number: i64) {
        let width = Self::width(kind).unwrap_or(8);
        let bytes = number.to_be_bytes();
        out.extend_from_slice(bytes.get(bytes.len().saturating_sub(width)..).unwrap_or(&bytes));
    }

    fn write_double(out: &mut Vec<u8>, bits: u64) {
        out.extend_from_slice(&bits.to_be_bytes());
    }
}

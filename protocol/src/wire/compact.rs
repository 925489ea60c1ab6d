//! Thrift's compact protocol: numbers and sizes in as few bytes as they need.
//!
//! ```text
//! varint  7 bits a byte, lowest first, top bit set in all but the last; signed numbers zigzag: 0 -1 1 -2 are 0 1 2 3
//! field   delta << 4 | type  value         delta: id less the id before, 1 to 15
//!         type  id (zigzag)  value         any other id; a struct ends with a byte 0
//!         bool: type 1 is true, type 2 is false, no value follows
//! string  size (varint)  bytes
//! list    count << 4 | type  elements      up to 14 elements; a set likewise; a bool is a byte, 1 true, 2 (or 0) false
//!         0xf0 | type  count (varint)  elements
//! map     count (varint)  key type << 4 | value type  keys and values in turn; an empty one is the byte 0
//! double  8 bytes, little-endian
//! ```

use super::WireError;
use super::binary::read_u8;
use super::copy::Encode;
use super::encoding::Encoding;
use super::kind::{Field, Kind};

/// Steps over the compact protocol.
#[derive(Clone, Copy, Debug)]
pub struct Compact;

/// A number of up to `bits` bits.
#[inline]
fn read_varint(bytes: &[u8], at: &mut usize, bits: u32) -> Result<u64, WireError> {
    let mut number = 0u64;
    let mut shift = 0;
    loop {
        let byte = read_u8(bytes, at)?;
        number |= u64::from(byte & 0x7f) << shift;
        if shift + 7 > bits && (byte & 0x7f) >> (bits - shift) != 0 {
            return Err(WireError::LongNumber);
        }
        if byte & 0x80 == 0 {
            return Ok(number);
        }
        shift += 7;
        if shift >= bits {
            return Err(WireError::LongNumber);
        }
    }
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

pub fn read_u32(bytes: &[u8], at: &mut usize) -> Result<u32, WireError> {
    u32::try_from(read_varint(bytes, at, 32)?).map_err(|_| WireError::LongNumber)
}

pub fn read_i16(bytes: &[u8], at: &mut usize) -> Result<i16, WireError> {
    i16::try_from(unzigzag(read_varint(bytes, at, 32)?)).map_err(|_| WireError::LongNumber)
}

pub fn read_i32(bytes: &[u8], at: &mut usize) -> Result<i32, WireError> {
    i32::try_from(unzigzag(read_varint(bytes, at, 32)?)).map_err(|_| WireError::LongNumber)
}

pub fn read_i64(bytes: &[u8], at: &mut usize) -> Result<i64, WireError> {
    read_varint(bytes, at, 64).map(unzigzag)
}

/// A number that has no sign.
pub fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// A number of any signed type.
pub fn write_int(out: &mut Vec<u8>, number: i64) {
    write_varint(out, zigzag(number));
}

/// A string or binary.
pub fn write_string(out: &mut Vec<u8>, string: &[u8]) {
    write_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Other libraries take sizes for i32.
fn read_count(bytes: &[u8], at: &mut usize) -> Result<u32, WireError> {
    let count = read_u32(bytes, at)?;
    if i32::try_from(count).is_err() {
        return Err(WireError::NegativeSize(count.cast_signed().into()));
    }
    Ok(count)
}

fn element(code: u8, count: u32) -> Result<Kind, WireError> {
    if code == 0 && count == 0 { Ok(Kind::I8) } else { Kind::from_compact(code) }
}

impl Encoding for Compact {
    // Two fields of 1 + 1 bytes, one byte of topic, the end.
    const MIN_MESSAGE_BYTES: usize = 6;

    #[inline]
    fn field(bytes: &[u8], at: &mut usize, last: i16) -> Result<Option<Field>, WireError> {
        let head = read_u8(bytes, at)?;
        let code = head & 0x0f;
        if code == 0 {
            return Ok(None);
        }
        let kind = Kind::from_compact(code)?;
        let id = match head >> 4 {
            0 => read_i16(bytes, at)?,
            delta => last.checked_add(delta.into()).ok_or(WireError::LongNumber)?,
        };
        let inline = (kind == Kind::Bool).then_some(code == 1);
        Ok(Some(Field { id, kind, inline }))
    }

    fn list(bytes: &[u8], at: &mut usize) -> Result<(Kind, u32), WireError> {
        let head = read_u8(bytes, at)?;
        let count = match head >> 4 {
            15 => read_count(bytes, at)?,
            count => count.into(),
        };
        Ok((element(head & 0x0f, count)?, count))
    }

    fn map(bytes: &[u8], at: &mut usize) -> Result<(Kind, Kind, u32), WireError> {
        let count = read_count(bytes, at)?;
        if count == 0 {
            return Ok((Kind::I8, Kind::I8, 0));
        }
        let kinds = read_u8(bytes, at)?;
        Ok((Kind::from_compact(kinds >> 4)?, Kind::from_compact(kinds & 0x0f)?, count))
    }

    #[inline]
    fn size(bytes: &[u8], at: &mut usize) -> Result<usize, WireError> {
        read_count(bytes, at).map(|size| size as usize)
    }

    #[inline]
    fn number(bytes: &[u8], at: &mut usize, kind: Kind) -> Result<i64, WireError> {
        match kind {
            Kind::I16 => read_i16(bytes, at).map(i64::from),
            Kind::I32 => read_i32(bytes, at).map(i64::from),
            Kind::I64 => read_i64(bytes, at),
            other => Err(WireError::BadType(other.compact_code())),
        }
    }

    fn double(bytes: &[u8], at: &mut usize) -> Result<u64, WireError> {
        let found = bytes.get(*at..).and_then(|rest| rest.first_chunk()).ok_or(WireError::Truncated)?;
        *at += found.len();
        Ok(u64::from_le_bytes(*found))
    }

    fn bool(bytes: &[u8], at: &mut usize) -> Result<bool, WireError> {
        read_u8(bytes, at).map(|byte| byte == 1)
    }

    #[inline]
    fn width(kind: Kind) -> Option<usize> {
        match kind {
            // A bool here is an element; as a field it stands in the head.
            Kind::Bool | Kind::I8 => Some(1),
            Kind::Double => Some(8),
            Kind::Uuid => Some(16),
            _ => None,
        }
    }
}

/// The head of a field. `code` is the kind's, for a bool the one of its value.
fn write_field_head(out: &mut Vec<u8>, code: u8, id: i16, last: i16) {
    match i32::from(id) - i32::from(last) {
        // Most libraries write a delta of 15 in full, and all read both.
        delta @ 1..15 => out.push((delta.to_le_bytes()[0] << 4) | code),
        _ => {
            out.push(code);
            write_int(out, id.into());
        }
    }
}

impl Encode for Compact {
    fn write_field(out: &mut Vec<u8>, kind: Kind, id: i16, last: i16) {
        write_field_head(out, kind.compact_code(), id, last);
    }

    fn write_bool_field(out: &mut Vec<u8>, value: bool, id: i16, last: i16) {
        write_field_head(out, if value { 1 } else { 2 }, id, last);
    }

    fn write_list(out: &mut Vec<u8>, element: Kind, count: u32) {
        if count < 15 {
            out.push((count.to_le_bytes()[0] << 4) | element.compact_code());
        } else {
            out.push(0xf0 | element.compact_code());
            write_varint(out, count.into());
        }
    }

    fn write_map(out: &mut Vec<u8>, key: Kind, value: Kind, count: u32) {
        write_varint(out, count.into());
        if count > 0 {
            out.push((key.compact_code() << 4) | value.compact_code());
        }
    }

    fn write_string(out: &mut Vec<u8>, string: &[u8]) {
        write_string(out, string);
    }

    fn write_bool(out: &mut Vec<u8>, value: bool) {
        out.push(if value { 1 } else { 2 });
    }

    fn write_number(out: &mut Vec<u8>, _kind: Kind, number: i64) {
        write_int(out, number);
    }

    fn write_double(out: &mut Vec<u8>, bits: u64) {
        out.extend_from_slice(&bits.to_le_bytes());
    }
}

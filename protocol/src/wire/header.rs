//! The header of a message: method, type, sequence id.
//!
//! ```text
//! binary      80 01 00 type  name size (4)  name  sequence (4)
//! without     name size (4)  name  type (1)  sequence (4)              "non-strict": old clients, and the replies of PHP
//! compact     82  type << 5 | 1  sequence (varint)  name size (varint)  name
//! ```

use super::compact::Compact;
use super::encoding::Encoding;
use super::{Protocol, WireError, binary, compact};

/// A longer name of a method is refused. Bytes.
pub const MAX_METHOD_BYTES: usize = 256;

const COMPACT_ID: u8 = 0x82;
const VERSION: u8 = 1;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    Call,
    Reply,
    /// Carries a `TApplicationException`.
    Exception,
    /// A call that is not answered.
    Oneway,
}

impl MessageType {
    const fn from_code(code: u8) -> Result<Self, WireError> {
        Ok(match code {
            1 => Self::Call,
            2 => Self::Reply,
            3 => Self::Exception,
            4 => Self::Oneway,
            other => return Err(WireError::BadMessageType(other)),
        })
    }

    const fn code(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Reply => 2,
            Self::Exception => 3,
            Self::Oneway => 4,
        }
    }
}

/// What stands in front of the arguments, or of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader<'a> {
    pub method: &'a [u8],
    pub message_type: MessageType,
    /// Chosen by the caller, repeated in the reply.
    pub sequence: i32,
}

/// Reads the header at the beginning of `bytes` and tells where it ends. The binary protocol may leave out its version.
pub fn read(protocol: Protocol, bytes: &[u8]) -> Result<(MessageHeader<'_>, usize), WireError> {
    let mut at = 0;
    let header = match protocol {
        Protocol::Binary => read_binary(bytes, &mut at)?,
        Protocol::Compact => read_compact(bytes, &mut at)?,
    };
    Ok((header, at))
}

/// Writes a header, in the binary protocol with its version.
pub fn write(out: &mut Vec<u8>, protocol: Protocol, header: &MessageHeader<'_>) {
    let code = header.message_type.code();
    match protocol {
        Protocol::Binary => {
            out.extend_from_slice(&[0x80, VERSION, 0, code]);
            out.extend_from_slice(&super::frame::length_of(header.method.len()));
            out.extend_from_slice(header.method);
            out.extend_from_slice(&header.sequence.to_be_bytes());
        }
        Protocol::Compact => {
            out.extend_from_slice(&[COMPACT_ID, (code << 5) | VERSION]);
            compact::write_varint(out, header.sequence.cast_unsigned().into());
            compact::write_string(out, header.method);
        }
    }
}

fn read_binary<'a>(bytes: &'a [u8], at: &mut usize) -> Result<MessageHeader<'a>, WireError> {
    let first = bytes.first().copied().ok_or(WireError::Truncated)?;
    if first & 0x80 == 0 {
        let method = read_method(bytes, at, binary::read_size)?;
        let message_type = MessageType::from_code(binary::read_u8(bytes, at)?)?;
        return Ok(MessageHeader { method, message_type, sequence: binary::read_i32(bytes, at)? });
    }
    let [high, low] = *bytes.first_chunk().ok_or(WireError::Truncated)?;
    if [high, low] != [0x80, VERSION] {
        return Err(WireError::BadVersion(high, low));
    }
    let [_, _, _, code] = *bytes.first_chunk().ok_or(WireError::Truncated)?;
    *at = 4;
    let message_type = MessageType::from_code(code)?;
    let method = read_method(bytes, at, binary::read_size)?;
    Ok(MessageHeader { method, message_type, sequence: binary::read_i32(bytes, at)? })
}

fn read_compact<'a>(bytes: &'a [u8], at: &mut usize) -> Result<MessageHeader<'a>, WireError> {
    let [id, version] = *bytes.first_chunk().ok_or(WireError::Truncated)?;
    if !is_compact(id, version) {
        return Err(WireError::BadVersion(id, version));
    }
    *at = 2;
    let message_type = MessageType::from_code(version >> 5)?;
    let sequence = compact::read_u32(bytes, at)?.cast_signed();
    let method = read_method(bytes, at, Compact::size)?;
    Ok(MessageHeader { method, message_type, sequence })
}

/// Does the compact protocol begin with these two bytes?
pub(super) const fn is_compact(id: u8, version: u8) -> bool {
    id == COMPACT_ID && version & 0x1f == VERSION
}

/// A name, refused as early as what has arrived shows that it is none.
fn read_method<'a>(
    bytes: &'a [u8],
    at: &mut usize,
    size: impl Fn(&[u8], &mut usize) -> Result<usize, WireError>,
) -> Result<&'a [u8], WireError> {
    let size = size(bytes, at)?;
    let here = bytes.get(*at..).unwrap_or_default();
    let method = here.get(..size).unwrap_or(here);
    if size == 0 || size > MAX_METHOD_BYTES || !method.iter().all(u8::is_ascii_graphic) {
        return Err(WireError::BadMethodName);
    }
    if method.len() < size {
        return Err(WireError::Truncated);
    }
    *at += size;
    Ok(method)
}

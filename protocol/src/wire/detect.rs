//! Tells from the first bytes of a connection what its peer speaks.
//!
//! ```text
//! 80 01 ..                     buffered, binary
//! 82 t1 ..                     buffered, compact
//! length (4)  80 01 ..         framed, binary
//! length (4)  82 t1 ..         framed, compact
//! length (4)  00 ..            framed, binary without a version: the size of a method's name, so small that it begins with 0
//! size (4)  name  type ..      buffered, binary without a version: a printable name, no larger than a name may be
//! ```
//!
//! So the fifth byte decides between the last two: no printable name begins with 00, 80 or 82.

use std::fmt;

use super::frame::{self, LENGTH_BYTES};
use super::header::{self, MAX_METHOD_BYTES};
use super::{Dialect, Protocol, Transport, WireError};

/// What the first bytes of a connection say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detection {
    /// The peer speaks this.
    Dialect(Dialect),
    /// Nothing can be said yet.
    NeedMore,
    /// The peer speaks something else: close the connection.
    Foreign(Foreign),
}

/// What a peer that speaks no Thrift seems to speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    Http,
    Tls,
    Ssh,
    /// Printable characters.
    Text,
    /// Taken for a frame, its length is out of bounds.
    Frame(WireError),
    /// None of these.
    Unknown,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http => f.write_str("not Thrift: looks like HTTP"),
            Self::Tls => f.write_str("not Thrift: looks like TLS"),
            Self::Ssh => f.write_str("not Thrift: looks like SSH"),
            Self::Text => f.write_str("not Thrift: looks like text"),
            Self::Frame(error) => write!(f, "no frame of Thrift: {error}"),
            Self::Unknown => f.write_str("not Thrift"),
        }
    }
}

/// Looks at the bytes that a peer has sent so far. `max_bytes` is the largest frame that would be taken.
#[must_use]
pub fn detect(bytes: &[u8], max_bytes: usize) -> Detection {
    let dialect = |transport, protocol| Detection::Dialect(Dialect { transport, protocol });
    match message_begins(bytes) {
        Begins::With(protocol) => return dialect(Transport::Buffered, protocol),
        Begins::Open => return Detection::NeedMore,
        Begins::Otherwise => {}
    }
    let length = match frame::read_length(bytes, max_bytes) {
        Ok(None) => return Detection::NeedMore,
        Ok(Some(length)) => length,
        Err(error) => return Detection::Foreign(known_prefix(bytes).unwrap_or(Foreign::Frame(error))),
    };
    let behind = bytes.get(LENGTH_BYTES..).unwrap_or_default();
    let behind = behind.get(..length).unwrap_or(behind);
    match message_begins(behind) {
        Begins::With(protocol) => return dialect(Transport::Framed, protocol),
        Begins::Open => return Detection::NeedMore,
        Begins::Otherwise => {}
    }
    // Only the binary protocol without its version is left.
    let framed = behind.first() == Some(&0);
    let message = if framed { behind } else { bytes };
    match header::read(Protocol::Binary, message) {
        Ok(_) => dialect(if framed { Transport::Framed } else { Transport::Buffered }, Protocol::Binary),
        Err(WireError::Truncated) if !framed || behind.len() < length.min(MAX_HEADER_BYTES) => Detection::NeedMore,
        Err(_) => Detection::Foreign(known_prefix(bytes).unwrap_or(Foreign::Unknown)),
    }
}

/// Size and bytes of a name, type, sequence id.
const MAX_HEADER_BYTES: usize = 4 + MAX_METHOD_BYTES + 1 + 4;

enum Begins {
    With(Protocol),
    /// Too few bytes to tell.
    Open,
    Otherwise,
}

/// Does a message with a version begin here?
fn message_begins(bytes: &[u8]) -> Begins {
    match bytes {
        [0x80, 0x01, ..] => Begins::With(Protocol::Binary),
        [id, version, ..] if header::is_compact(*id, *version) => Begins::With(Protocol::Compact),
        [] | [0x80 | 0x82] => Begins::Open,
        _ => Begins::Otherwise,
    }
}

/// What others begin with. At least four bytes are there.
fn known_prefix(bytes: &[u8]) -> Option<Foreign> {
    const HTTP: [&[u8]; 11] = [b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ", b"HTTP"];
    if HTTP.iter().any(|method| bytes.starts_with(method)) {
        Some(Foreign::Http)
    } else if bytes.starts_with(b"SSH-") {
        Some(Foreign::Ssh)
    } else if bytes.starts_with(&[0x16, 0x03]) {
        Some(Foreign::Tls)
    } else if bytes.iter().take(16).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        Some(Foreign::Text)
    } else {
        None
    }
}

//! Thrift's encodings, stepped over rather than decoded.
//!
//! What came from a peer is checked here once: sizes against the bytes that are there or against a limit, nesting against
//! [`MAX_DEPTH`], codes against those that Thrift has. Nothing is allocated for what was only announced.

pub mod binary;
pub mod compact;
mod copy;
mod delimit;
mod detect;
mod dialect;
mod encoding;
pub mod frame;
pub mod header;
mod kind;
mod walk;

pub use copy::{Encode, copy, copy_field};
pub use delimit::{Delimiter, Progress};
pub use detect::{Detection, Foreign, detect};
pub use dialect::{Dialect, Protocol, Transport};
pub use encoding::Encoding;
pub use header::{MessageHeader, MessageType};
pub use kind::{Field, Kind};
pub use walk::skip;

/// The bytes are no Thrift, or not within our limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// More bytes may still make sense of it.
    #[error("the bytes end in the middle of a value")]
    Truncated,
    #[error("a length or count of {0} is negative")]
    NegativeSize(i64),
    /// Announced or arrived: a message that large is not taken.
    #[error("a message of {size} bytes or more is too large, the limit is {limit} bytes")]
    TooLarge { size: usize, limit: usize },
    #[error("a frame of 0 bytes holds no message")]
    EmptyFrame,
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("{0} is no Thrift type")]
    BadType(u8),
    #[error("a number has more bits than its type")]
    LongNumber,
    #[error("no Thrift message begins with the bytes {0:02x} {1:02x}")]
    BadVersion(u8, u8),
    #[error("{0} is no type of a Thrift message (1 to 4)")]
    BadMessageType(u8),
    #[error("a method's name is 1 to {} printable characters", header::MAX_METHOD_BYTES)]
    BadMethodName,
}

/// Structs, lists and maps within one another, the arguments' struct counted: deeper is refused.
pub const MAX_DEPTH: usize = 64;

//! Why a put is refused before it has reached a queue.

use crate::generated::TErrorCode;
use crate::limits::MAX_TOPIC_BYTES;
use crate::wire::WireError;

/// Nothing of the put was taken. Messages are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    #[error("the arguments cannot be read: {0}")]
    Malformed(#[from] WireError),
    #[error("the argument {name} is missing")]
    ArgumentMissing { name: &'static str },
    #[error("the argument {name} is given twice")]
    ArgumentTwice { name: &'static str },
    #[error("argument {field} has the wrong type")]
    ArgumentKind { field: i16 },
    #[error("the list does not hold messages")]
    NotMessages,
    #[error("message {message}: field {field} has the wrong type")]
    FieldKind { message: usize, field: i16 },
    #[error("message {message} has no topic: 1 to {MAX_TOPIC_BYTES} bytes are required")]
    NoTopic { message: usize },
    #[error("message {message}: a topic of {size} bytes is not allowed, 1 to {MAX_TOPIC_BYTES} bytes are")]
    TopicSize { message: usize, size: usize },
    #[error("message {message} has no value; an empty one is allowed")]
    NoValue { message: usize },
    #[error("message {message}: the name of a header is not UTF-8")]
    HeaderName { message: usize },
    #[error("message {message}: a value of {size} bytes is too large, max_message_bytes is {limit}")]
    ValueTooLarge { message: usize, size: usize, limit: usize },
    /// With its headers and unknown fields it would not fit into a call of a subscriber.
    #[error("message {message}: {size} bytes with headers and all are too large, the limit is {limit} bytes")]
    MessageTooLarge { message: usize, size: usize, limit: usize },
    #[error("the messages of the put are {size} bytes or more in stored form, the limit is {limit} bytes")]
    PutTooLarge { size: usize, limit: usize },
}

impl PutError {
    /// The code that tells a client.
    #[must_use]
    pub const fn code(&self) -> TErrorCode {
        match self {
            Self::ValueTooLarge { .. } | Self::MessageTooLarge { .. } | Self::PutTooLarge { .. } => TErrorCode::TOO_LARGE,
            _ => TErrorCode::INVALID,
        }
    }

    /// Are the bytes no arguments of this method at all? Then they are answered with a protocol error rather than a refusal.
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::ArgumentMissing { .. } | Self::ArgumentTwice { .. } | Self::ArgumentKind { .. })
    }
}

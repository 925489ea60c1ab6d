//! What can go wrong, as questions that a caller asks.

use std::fmt;

use hqueue_coordination::CoordinationError;
use hqueue_protocol::client::ClientError;
use hqueue_protocol::generated::TErrorCode;

/// Why something was not done, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The broker refused. The message says what, why and which limit.
    #[error("{message}")]
    Refused { code: ErrorCode, message: String },
    /// What was asked for is wrong in itself; nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// No broker, or no ZooKeeper, could be reached; nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// A request was sent, and its outcome is not known: the connection broke, or no reply came in time.
    #[error("{0}")]
    Unknown(String),
    /// The connection broke before the request was sent.
    #[error("{0}")]
    NotSent(String),
    /// The peer is no broker of this kind: what it answered cannot be understood.
    #[error("{0}")]
    Protocol(String),
    /// A port cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen { address: String, reason: String },
    /// The producer was closed, or dropped with messages in it that were not sent.
    #[error("the producer is closed")]
    Closed,
}

/// What kind of refusal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The request itself is wrong: a name, a number, a position. Repeating it will not help.
    Invalid,
    /// There is no such queue, subscriber or registration.
    NotFound,
    /// What was to be made exists.
    Exists,
    /// The queue is disabled, or has to be for this.
    WrongState,
    /// A limit is reached.
    TooLarge,
    /// The partition cannot be served now.
    Offline,
    /// No space on the broker's disk.
    NoSpace,
    /// The broker is stopping, or too much is waiting.
    Busy,
    /// The broker could not do it; its log says more. Also any code that this version does not know.
    Failed,
}

impl Error {
    /// A later try of the same may succeed. If [`may_have_been_carried_out`](Self::may_have_been_carried_out), it may also do the
    /// same a second time.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { code, .. } => matches!(code, ErrorCode::Offline | ErrorCode::NoSpace | ErrorCode::Busy),
            Self::Unreachable(_) | Self::Unknown(_) | Self::NotSent(_) => true,
            Self::Invalid(_) | Self::Protocol(_) | Self::Listen { .. } | Self::Closed => false,
        }
    }

    /// Nobody knows whether the broker did what it was asked to.
    #[must_use]
    pub const fn may_have_been_carried_out(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Protocol(_))
    }

    /// Another broker may do what this one did not.
    pub(crate) const fn may_be_done_elsewhere(&self) -> bool {
        match self {
            Self::Refused { code, .. } => {
                matches!(code, ErrorCode::Offline | ErrorCode::NoSpace | ErrorCode::Busy | ErrorCode::Failed)
            }
            Self::Unknown(_) | Self::NotSent(_) | Self::Protocol(_) => true,
            // All were tried, or it was no broker's doing.
            Self::Unreachable(_) | Self::Invalid(_) | Self::Listen { .. } | Self::Closed => false,
        }
    }

    /// The code, if the broker refused.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// A reply, or what stands in it, cannot be understood.
    pub(crate) fn bad_reply(method: &str, reason: impl fmt::Display) -> Self {
        Self::Protocol(format!("the broker's reply to {method} cannot be read: {reason}"))
    }
}

impl From<TErrorCode> for ErrorCode {
    fn from(code: TErrorCode) -> Self {
        match code {
            TErrorCode::INVALID => Self::Invalid,
            TErrorCode::NOT_FOUND => Self::NotFound,
            TErrorCode::EXISTS => Self::Exists,
            TErrorCode::WRONG_STATE => Self::WrongState,
            TErrorCode::TOO_LARGE => Self::TooLarge,
            TErrorCode::OFFLINE => Self::Offline,
            TErrorCode::NO_SPACE => Self::NoSpace,
            TErrorCode::BUSY => Self::Busy,
            _ => Self::Failed,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        let text = error.to_string();
        match error {
            ClientError::Refused { code, message } => Self::Refused { code: code.into(), message },
            ClientError::Connect { .. } => Self::Unreachable(text),
            ClientError::Lost { sent: false, .. } => Self::NotSent(text),
            ClientError::Lost { sent: true, .. } | ClientError::Timeout { .. } => Self::Unknown(text),
            ClientError::Exception { .. } | ClientError::BadReply { .. } => Self::Protocol(text),
        }
    }
}

impl From<CoordinationError> for Error {
    fn from(error: CoordinationError) -> Self {
        let text = error.to_string();
        match error {
            CoordinationError::Away(_) | CoordinationError::Closed => Self::Unreachable(text),
            CoordinationError::TooLarge { .. } | CoordinationError::BadPath { .. } => Self::Invalid(text),
            _ => Self::Refused { code: ErrorCode::Failed, message: text },
        }
    }
}

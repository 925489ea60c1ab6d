//! Why a call has no result.

use std::time::Duration;

use crate::generated::{HQueueError, TErrorCode};

/// Why a call has no result, and whether it may have had an effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// None of the addresses could be connected to: nothing was sent.
    #[error("cannot connect to {address}: {reason}")]
    Connect { address: String, reason: String },
    /// The connection broke, or was given up, before the reply was there.
    #[error("the connection to {address} broke before the reply came: {reason}{}", if *sent { "; the request may have been carried out" } else { "; the request was not sent" })]
    Lost { address: String, reason: String, sent: bool },
    /// No reply in time. The connection is closed with all calls that wait on it.
    #[error("no reply from {address} within {after:?} (timeout); the request may have been carried out")]
    Timeout { address: String, after: Duration },
    /// The broker refused.
    #[error("{message}")]
    Refused { code: TErrorCode, message: String },
    /// A `TApplicationException`: the peer does not know the method or could not read the call.
    #[error("{address} answered with an exception: {reason}")]
    Exception { address: String, reason: String },
    /// The reply is no result of the method, or larger than allowed.
    #[error("the reply from {address} cannot be read: {reason}")]
    BadReply { address: String, reason: String },
}

impl ClientError {
    /// Nobody knows whether the broker did what it was asked to.
    #[must_use]
    pub const fn may_have_been_carried_out(&self) -> bool {
        matches!(self, Self::Lost { sent: true, .. } | Self::Timeout { .. } | Self::BadReply { .. })
    }

    /// A later try of the same may succeed. It may also do the same a second time if
    /// [`may_have_been_carried_out`](Self::may_have_been_carried_out).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Lost { .. } | Self::Timeout { .. } => true,
            Self::Refused { code, .. } => [TErrorCode::OFFLINE, TErrorCode::NO_SPACE, TErrorCode::BUSY].contains(code),
            Self::Exception { .. } | Self::BadReply { .. } => false,
        }
    }

    /// The code of a refusal.
    #[must_use]
    pub const fn code(&self) -> Option<TErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<HQueueError> for ClientError {
    fn from(error: HQueueError) -> Self {
        let code = error.code.map_or(TErrorCode::FAILED, TErrorCode::from);
        Self::Refused { code, message: error.message.unwrap_or_else(|| "refused without a reason".to_owned()) }
    }
}

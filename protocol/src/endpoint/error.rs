//! Why a call has no result.

use std::time::Duration;

/// Why a call has no result. `address` is the endpoint's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No connection could be made, or name resolution failed: nothing was sent.
    #[error("cannot connect to {address}: {reason}")]
    Connect { address: String, reason: String },
    /// The stored bytes are damaged: they cannot be put into the protocol of the endpoint. Nothing was sent.
    #[error("the messages for {address} cannot be read as they are stored: {reason}")]
    Unsendable { address: String, reason: String },
    /// The call was sent, or part of it, and no answer came in time.
    #[error("no answer from {address} within {after:?} (timeout)")]
    Timeout { address: String, after: Duration },
    /// The connection broke before the answer was complete.
    #[error("{address} closed the connection before it answered: {reason}")]
    Closed { address: String, reason: String },
    /// As `Closed`, by a reset and with a large call: `sent` of `size` bytes had gone.
    #[error(
        "{address} reset the connection after {sent} of {size} bytes of the call were sent: perhaps the call is too large for it"
    )]
    Reset { address: String, sent: usize, size: usize },
    /// A connection that had been idle ended with the call on it, and no other could be made.
    #[error("{address} closed an idle connection when it was called ({reason}), and cannot be connected to again: {connect}")]
    Lost { address: String, reason: String, connect: String },
    /// Connections could be made, and an empty call was answered in no dialect. `silent`: in one of them at least nothing came in time.
    #[error("{address} answers consumeMessages in none of Thrift's dialects ({tried})")]
    Undetected { address: String, tried: String, silent: bool },
    /// A `TApplicationException` or a result without a value: an answer, but no result.
    #[error("{address} answered with an exception: {text}")]
    Exception { address: String, text: String },
    /// What came is no answer to this call.
    #[error("{address} answered with something that is no reply of consumeMessages: {reason}")]
    BadReply { address: String, reason: String },
}

impl CallError {
    /// Did the endpoint answer at all? If not, nobody knows what it has consumed.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(self, Self::Exception { .. })
    }

    /// Could no connection be made, so that nothing was sent? Never an attempt. [`CallError::Lost`] is none of these: a call was sent.
    #[must_use]
    pub const fn is_connect(&self) -> bool {
        matches!(self, Self::Connect { .. })
    }

    /// Did the time run out after the call was sent? The endpoint may be at work on it.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// Was an empty call answered in no dialect?
    #[must_use]
    pub const fn is_undetected(&self) -> bool {
        matches!(self, Self::Undetected { .. })
    }

    /// Is a smaller call worth trying before the messages are blamed?
    #[must_use]
    pub const fn may_be_too_large(&self) -> bool {
        matches!(self, Self::Reset { .. })
    }
}

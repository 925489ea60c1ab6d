//! Why a call to HBase has no result.

use hqueue_protocol::wire::WireError;

/// Why a call has no result, and whether it may have had an effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// No gateway could be connected to: nothing was sent.
    #[error("no Thrift2 gateway of HBase can be reached: {reason}")]
    Unreachable { reason: String },
    /// The connection broke, or no answer came in time: the call may have been carried out, or may be at any later time.
    #[error("no answer from HBase's gateway: {reason}")]
    Unanswered { reason: String },
    /// HBase refused or failed (`TIOError`).
    #[error("HBase says: {message}")]
    Failed { message: String, can_retry: bool },
    /// What answers is no Thrift2 gateway, or one of another version.
    #[error("HBase's gateway gives an answer that cannot be understood: {reason}")]
    Foreign { reason: String },
}

impl GatewayError {
    /// May the same call succeed later without anybody's doing?
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unanswered { .. } => true,
            Self::Failed { can_retry, .. } => *can_retry,
            Self::Foreign { .. } => false,
        }
    }

    /// Nobody knows whether HBase did what it was asked to.
    #[must_use]
    pub const fn may_have_been_carried_out(&self) -> bool {
        !matches!(self, Self::Unreachable { .. })
    }
}

impl From<WireError> for GatewayError {
    fn from(error: WireError) -> Self {
        Self::Foreign { reason: error.to_string() }
    }
}

//! What a broker answers when it does not do what it was asked.

use hqueue_coordination::CoordinationError;
use hqueue_protocol::generated::{HQueueError, TErrorCode};
use hqueue_storage::store::StoreError;

/// A refusal: what, why, and which limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: TErrorCode,
    pub message: String,
}

impl Refusal {
    #[must_use]
    pub fn new(code: TErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The request itself is wrong.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(TErrorCode::INVALID, message)
    }

    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(TErrorCode::NOT_FOUND, message)
    }

    #[must_use]
    pub fn no_queue(name: &str) -> Self {
        Self::not_found(format!("there is no queue {name:?}"))
    }

    #[must_use]
    pub fn no_subscriber(queue: &str, name: &str) -> Self {
        Self::not_found(format!("queue {queue} has no subscriber {name:?}"))
    }
}

impl From<Refusal> for HQueueError {
    fn from(refusal: Refusal) -> Self {
        Self { code: Some(refusal.code.0), message: Some(refusal.message) }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let code = match error {
            StoreError::NoSuchPartition { .. } => TErrorCode::INVALID,
            StoreError::NoSpace { .. } | StoreError::QueueFull { .. } => TErrorCode::NO_SPACE,
            StoreError::Busy { .. } => TErrorCode::BUSY,
            StoreError::Closed | StoreError::NotHeld { .. } | StoreError::NoIds { .. } => TErrorCode::OFFLINE,
            StoreError::Remote { retryable: true, .. } => TErrorCode::OFFLINE,
            StoreError::Remote { .. } => TErrorCode::FAILED,
            StoreError::Poisoned { .. } | StoreError::Io { .. } | StoreError::Damaged { .. } => TErrorCode::FAILED,
        };
        Self::new(code, error.to_string())
    }
}

impl From<CoordinationError> for Refusal {
    fn from(error: CoordinationError) -> Self {
        let code = match error {
            CoordinationError::NodeExists(_) => TErrorCode::EXISTS,
            CoordinationError::NoNode(_) => TErrorCode::NOT_FOUND,
            CoordinationError::TooLarge { .. } => TErrorCode::TOO_LARGE,
            CoordinationError::Away(_) => TErrorCode::BUSY,
            _ => TErrorCode::FAILED,
        };
        Self::new(code, error.to_string())
    }
}

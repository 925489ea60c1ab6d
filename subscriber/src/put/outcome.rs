//! What became of a gathered batch, for everyone who waits for it.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use super::{Placed, PlacedBatch};
use crate::error::Error;

/// Set once. Shared by all messages of the batch, so that a message costs no memory of its own.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    result: OnceLock<Result<PlacedBatch, Error>>,
    settled: Notify,
}

impl Outcome {
    /// The first one counts.
    pub(super) fn settle(&self, result: Result<PlacedBatch, Error>) {
        if self.result.set(result).is_ok() {
            self.settled.notify_waiters();
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.result.get().is_some()
    }
}

/// A message that a producer has taken, on its way into the queue. Dropping it does not take the message back.
#[derive(Debug)]
#[must_use = "what became of the message is known only to who waits for it"]
pub struct PendingPut {
    outcome: Arc<Outcome>,
    /// Of the message in its batch.
    index: usize,
}

impl PendingPut {
    pub(super) const fn new(outcome: Arc<Outcome>, index: usize) -> Self {
        Self { outcome, index }
    }

    /// The outcome is known: [`placed`](Self::placed) will not wait.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.outcome.is_settled()
    }

    /// Waits until the message is durable, or not.
    pub async fn placed(self) -> Result<Placed, Error> {
        let settled = self.outcome.settled.notified();
        tokio::pin!(settled);
        // From here on a settling is not missed.
        settled.as_mut().enable();
        if !self.is_settled() {
            settled.await;
        }
        let batch = self.outcome.result.get().ok_or(Error::Closed)?.as_ref().map_err(Clone::clone)?;
        let id = batch.ids.get(self.index).copied().ok_or(Error::Closed)?;
        Ok(Placed { partition: batch.partition, id })
    }
}

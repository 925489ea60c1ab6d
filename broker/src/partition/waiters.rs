//! Who is told when a partition's committed position moves.

use std::sync::{Arc, PoisonError, RwLock};

use hqueue_storage::store::CommitListener;
use tokio::sync::Notify;

use crate::subscription::SubscriptionWorker;

/// For each partition of a queue the workers that push it, and the fetches that wait for a message. A worker that has caught up is an
/// entry here and nothing else.
#[derive(Debug)]
pub struct CommitWaiters {
    partitions: Vec<RwLock<Vec<Arc<SubscriptionWorker>>>>,
    fetches: Arc<WaitingFetches>,
}

/// Fetches that wait for a message, by partition. Whoever waits has this in hand and nothing else of the queue, and leaves no trace.
#[derive(Debug)]
pub(crate) struct WaitingFetches(Box<[Notify]>);

impl WaitingFetches {
    fn new(partitions: i16) -> Self {
        Self((0..partitions).map(|_| Notify::new()).collect())
    }

    /// Tells of commits in a partition from the moment on at which `notified` was called, and of the end of the queue.
    pub(crate) fn of(&self, partition: i16) -> Option<&Notify> {
        usize::try_from(partition).ok().and_then(|p| self.0.get(p))
    }
}

impl CommitWaiters {
    #[must_use]
    pub fn new(partitions: i16) -> Self {
        Self {
            partitions: (0..partitions).map(|_| RwLock::default()).collect(),
            fetches: Arc::new(WaitingFetches::new(partitions)),
        }
    }

    fn of(&self, partition: i16) -> Option<&RwLock<Vec<Arc<SubscriptionWorker>>>> {
        usize::try_from(partition).ok().and_then(|p| self.partitions.get(p))
    }

    pub fn add(&self, worker: Arc<SubscriptionWorker>) {
        if let Some(waiters) = self.of(worker.partition()) {
            waiters.write().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }

    pub fn remove(&self, worker: &Arc<SubscriptionWorker>) {
        if let Some(waiters) = self.of(worker.partition()) {
            waiters.write().unwrap_or_else(PoisonError::into_inner).retain(|w| !Arc::ptr_eq(w, worker));
        }
    }

    /// Where a fetch waits for a message.
    pub(crate) fn fetches(&self) -> Arc<WaitingFetches> {
        Arc::clone(&self.fetches)
    }
}

impl CommitListener for CommitWaiters {
    fn committed(&self, partition: i16) {
        if let Some(waiters) = self.of(partition) {
            for worker in waiters.read().unwrap_or_else(PoisonError::into_inner).iter() {
                SubscriptionWorker::wake(worker);
            }
        }
        if let Some(fetches) = self.fetches.of(partition) {
            fetches.notify_waiters();
        }
    }
}

impl Drop for CommitWaiters {
    /// The queue is gone, or is opened anew: those that wait for its messages look for it again.
    fn drop(&mut self) {
        self.fetches.0.iter().for_each(Notify::notify_waiters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_commit_wakes_the_fetches_of_its_partition() {
        let waiters = CommitWaiters::new(2);
        let fetches = waiters.fetches();
        let (first, second, other) =
            (fetches.of(1).unwrap().notified(), fetches.of(1).unwrap().notified(), fetches.of(0).unwrap().notified());
        // They were not polled yet: a commit between the look and the wait is not missed.
        waiters.committed(1);
        tokio::join!(first, second);
        tokio::pin!(other);
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        assert!(futures_util::poll!(std::pin::pin!(fetches.of(1).unwrap().notified())).is_pending(), "only those that waited");
        drop(waiters);
        other.await;
        assert!(fetches.of(2).is_none() && fetches.of(-1).is_none());
    }
}

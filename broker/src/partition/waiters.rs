//! Who is told when a partition's committed position moves.

use std::sync::{Arc, PoisonError, RwLock};

use hqueue_storage::store::CommitListener;

use crate::subscription::SubscriptionWorker;

/// For each partition of a queue the workers that push it. A worker that has caught up is an entry here and nothing else.
#[derive(Debug)]
pub struct CommitWaiters {
    partitions: Vec<RwLock<Vec<Arc<SubscriptionWorker>>>>,
}

impl CommitWaiters {
    #[must_use]
    pub fn new(partitions: i16) -> Self {
        Self { partitions: (0..partitions).map(|_| RwLock::default()).collect() }
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
}

impl CommitListener for CommitWaiters {
    fn committed(&self, partition: i16) {
        if let Some(waiters) = self.of(partition) {
            for worker in waiters.read().unwrap_or_else(PoisonError::into_inner).iter() {
                SubscriptionWorker::wake(worker);
            }
        }
    }
}

//! A listener that remembers what it was told.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::store::CommitListener;

/// Counts the commits of each partition, and wakes who waits for one.
#[derive(Debug, Default)]
pub struct Recorder {
    commits: Mutex<HashMap<i16, u64>>,
    told: Notify,
}

impl Recorder {
    /// How often it was told of the partition.
    pub fn commits(&self, partition: i16) -> u64 {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).get(&partition).copied().unwrap_or(0)
    }

    /// How often it was told of any partition.
    pub fn all_commits(&self) -> u64 {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Waits until it was told of the partition more than `seen` times. Safe to drop at any time.
    pub async fn more_than(&self, partition: i16, seen: u64) -> u64 {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            let now = self.commits(partition);
            if now > seen {
                return now;
            }
            told.await;
        }
    }
}

impl CommitListener for Recorder {
    fn committed(&self, partition: i16) {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner).entry(partition).or_default() += 1;
        self.told.notify_waiters();
    }
}

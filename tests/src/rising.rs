//! Checkpoints as a watch in ZooKeeper sees them: they never go down unless somebody moves them.

use std::sync::{Arc, Mutex, PoisonError};

use hqueue_coordination::Observed;
use tokio::task::JoinHandle;

use crate::hand::{Hand, read_checkpoint};
use crate::message::Id;

/// Watches the checkpoints of a subscription until it is asked what it saw.
#[derive(Debug)]
pub struct Rising {
    seen: Arc<Mutex<Vec<Vec<Id>>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Rising {
    /// Begins to watch. The hand has to outlive it.
    #[must_use]
    pub fn watch(hand: &Hand, queue: &str, partitions: i16, name: &str) -> Self {
        let seen = Arc::new(Mutex::new(vec![Vec::new(); usize::try_from(partitions).expect("a number of partitions")]));
        let tasks = (0..partitions).map(|partition| {
            let path = format!("/queues/{queue}/{partition}/{name}");
            let mut node = hand.coordinator().watch_node(&path);
            let seen = Arc::clone(&seen);
            hand.runtime().spawn(async move {
                loop {
                    if let Observed::Seen(Some(node)) = &*node.borrow_and_update()
                        && !node.payload.is_empty()
                    {
                        let place = usize::try_from(partition).expect("a partition");
                        seen.lock().unwrap_or_else(PoisonError::into_inner)[place].push(read_checkpoint(&node.payload));
                    }
                    if node.changed().await.is_err() {
                        return;
                    }
                }
            })
        });
        Self { tasks: tasks.collect(), seen: Arc::clone(&seen) }
    }

    /// Checks what was seen, and returns how many different checkpoints that were.
    ///
    /// # Panics
    /// If one was lower than the one before.
    #[track_caller]
    pub fn finish(self) -> usize {
        self.tasks.iter().for_each(JoinHandle::abort);
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (partition, ids) in seen.iter().enumerate() {
            for pair in ids.windows(2) {
                assert!(pair[0] <= pair[1], "the checkpoint of partition {partition} went from {} down to {}", pair[0], pair[1]);
            }
        }
        seen.iter().map(Vec::len).sum()
    }
}

//! The memory store does what every store must do.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use hqueue_storage::conformance::{Harness, ManualClock};
use hqueue_storage::memory::MemoryStore;
use hqueue_storage::store::{MessageStore, StoreError};

/// Each store is opened over the messages of the one before.
#[derive(Default)]
struct MemoryHarness {
    latest: Mutex<Option<Arc<MemoryStore>>>,
    tail_bytes: Option<usize>,
}

impl Harness for MemoryHarness {
    fn open(&self, clock: Arc<ManualClock>) -> BoxFuture<'_, Result<Arc<dyn MessageStore>, StoreError>> {
        Box::pin(async move {
            let mut latest = self.latest.lock().unwrap();
            let store = Arc::new(match &*latest {
                Some(before) => before.restarted(),
                None => MemoryStore::with_tail(clock, self.tail_bytes.unwrap_or(usize::MAX)),
            });
            *latest = Some(Arc::clone(&store));
            Ok(store as _)
        })
    }
}

hqueue_storage::conformance_tests!(memory: MemoryHarness::default());
// So short a tail that most reads find it cold.
hqueue_storage::conformance_tests!(memory_with_a_short_tail: MemoryHarness { tail_bytes: Some(400), ..Default::default() });

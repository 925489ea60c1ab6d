//! Appends on their way to HBase.

use std::sync::{Mutex, PoisonError};

use hqueue_protocol::stored::{StoredSlice, TopicTable};
use hqueue_storage::store::StoreError;
use tokio::sync::oneshot;

use crate::schema::Anchor;

pub(super) type Answer = oneshot::Sender<Result<(), StoreError>>;

/// One append: visible when all its rows are written and all appends before it are settled.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) partition: i16,
    pub(super) slice: StoredSlice,
    pub(super) topics: TopicTable,
    pub(super) number: u64,
    pub(super) arrival_ms: i64,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    chunks_left: usize,
    failure: Option<StoreError>,
    answer: Option<Answer>,
}

impl Pending {
    pub(super) fn new(
        partition: i16,
        slice: StoredSlice,
        topics: TopicTable,
        number: u64,
        arrival_ms: i64,
        chunks: usize,
    ) -> (Self, oneshot::Receiver<Result<(), StoreError>>) {
        let (answer, done) = oneshot::channel();
        let progress = Mutex::new(Progress { chunks_left: chunks, failure: None, answer: Some(answer) });
        (Self { partition, slice, topics, number, arrival_ms, progress }, done)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Part of it was written, or not. True: that was the last part.
    pub(super) fn settle(&self, result: Result<(), StoreError>) -> bool {
        let mut progress = self.lock();
        progress.chunks_left = progress.chunks_left.saturating_sub(1);
        if let Err(error) = result {
            progress.failure.get_or_insert(error);
        }
        progress.chunks_left == 0
    }

    /// How it ended; `None` while it has not.
    pub(super) fn outcome(&self) -> Option<Result<(), StoreError>> {
        let progress = self.lock();
        (progress.chunks_left == 0).then(|| progress.failure.clone().map_or(Ok(()), Err))
    }

    /// Tells whoever waits; only the first word counts.
    pub(super) fn answer(&self, result: Result<(), StoreError>) {
        if let Some(answer) = self.lock().answer.take() {
            // Nobody may be waiting any more.
            let _ = answer.send(result);
        }
    }
}

/// Some rows of an append that go in one call.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) of: std::sync::Arc<Pending>,
    pub(super) slice: StoredSlice,
    /// What its first row carries.
    pub(super) anchor: Option<Anchor>,
    /// It fails then.
    pub(super) deadline: tokio::time::Instant,
}

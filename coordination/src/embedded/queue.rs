//! What waits for the writer.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::change::RECORD_OVERHEAD;
use super::stage::{Write, Written};
use crate::CoordinationError;

/// Paths and payloads that wait for the writer or are being written, at most. A call that finds no room waits for it. Bytes.
pub(super) const WAITING_BYTES: usize = 4 * 1024 * 1024;

/// A write counts for so much beside its path and payload: what its record, its answer and its place here take. Bytes.
const WRITE_OVERHEAD: usize = 128;

// Whatever waits fits into one batch. A sequential node has two records with the path of its parent in the second.
const _: () =
    assert!(WRITE_OVERHEAD >= 2 * RECORD_OVERHEAD + 10 && WAITING_BYTES * 2 <= hqueue_storage::journal::MAX_BATCH_BYTES);

/// A write that waits.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) session: i64,
    pub(super) write: Write,
    pub(super) answer: oneshot::Sender<Result<Written, CoordinationError>>,
    /// Its room here, given back when it is dropped.
    _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(super) enum Item {
    Call(Call),
    /// The session is over; `_done` is dropped when its nodes are gone.
    End {
        session: i64,
        _done: oneshot::Sender<()>,
    },
}

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    items: Vec<Item>,
    over: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), filled: Condvar::new(), room: Arc::new(Semaphore::new(WAITING_BYTES)) }
    }

    /// Waits for room, then for the answer. Dropping the future later than that changes nothing: the write is carried out.
    pub(super) async fn call(&self, session: i64, write: Write) -> Result<Written, CoordinationError> {
        let cost = u32::try_from(write.byte_len() + WRITE_OVERHEAD).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(cost).await.map_err(|_| CoordinationError::Closed)?;
        let (answer, answered) = oneshot::channel();
        self.push(Item::Call(Call { session, write, answer, _room: room }));
        answered.await.unwrap_or(Err(CoordinationError::Closed))
    }

    /// Queues an item, or drops it if the writer has ended.
    pub(super) fn push(&self, item: Item) {
        let mut state = self.lock();
        if !state.over {
            state.items.push(item);
            self.filled.notify_one();
        }
    }

    /// Blocks until there is something, and takes all of it.
    pub(super) fn take(&self) -> Vec<Item> {
        let state = self.filled.wait_while(self.lock(), |state| state.items.is_empty());
        mem::take(&mut state.unwrap_or_else(PoisonError::into_inner).items)
    }

    /// Nothing is taken any more. Who waits is told so.
    pub(super) fn end(&self) {
        self.room.close();
        let mut state = self.lock();
        state.over = true;
        let items = mem::take(&mut state.items);
        drop(state);
        drop(items);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

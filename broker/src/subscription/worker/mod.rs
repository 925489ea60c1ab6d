//! One subscription in one partition: from the scanner through the calls to the checkpoint.

mod read;
mod settle;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_storage::store::QueueStore;

use super::checkpoint::Checkpoint;
use super::shared::SubscriptionShared;
use super::turn::Turn;
use crate::partition::MessageScanner;

/// Pushes one partition to one subscription. At most one call is in flight for it, so the partition stays in order.
#[derive(Debug)]
pub struct SubscriptionWorker {
    partition: i16,
    shared: Arc<SubscriptionShared>,
    turn: Turn,
    progress: Mutex<Progress>,
    /// The checkpoint has moved since it was last written.
    pub(super) dirty: AtomicBool,
    /// Deleted: its checkpoint is nobody's business any more.
    forgotten: AtomicBool,
    in_flight: AtomicU64,
}

#[derive(Debug)]
struct Progress {
    /// `None` while a read from disk is under way.
    scanner: Option<MessageScanner>,
    checkpoint: Checkpoint,
    /// Most messages of the next call: halved by a timeout, growing back with success.
    limit: u32,
    /// Repetitions asked for by the endpoint (-2) in a row.
    busy: u32,
    /// Rises when somebody else moves the checkpoint: a call that began before does not move it any more.
    generation: u64,
    /// What was read does not count any more: the scanner begins behind the checkpoint, once whoever has it gives it back.
    restart: bool,
    closed: bool,
}

/// A batch to be sent.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) slices: Vec<StoredSlice>,
    pub(super) messages: u32,
    generation: u64,
}

/// What is to be done with a worker after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It may have more to send.
    Again,
    /// Nothing of it before so long.
    Wait(Duration),
    /// Its endpoint did not answer: it has to be asked whether it is there before anything is sent.
    Ask,
}

impl SubscriptionWorker {
    #[must_use]
    pub fn new(shared: Arc<SubscriptionShared>, store: Arc<dyn QueueStore>, partition: i16, checkpoint: Checkpoint) -> Self {
        let from = checkpoint.id.successor();
        let mut scanner = MessageScanner::new(store, partition, shared.filter(), from, MessageId::MAX);
        scanner.reset(from, checkpoint.number);
        let limit = shared.options.batch_messages;
        let progress =
            Progress { scanner: Some(scanner), checkpoint, limit, busy: 0, generation: 0, restart: false, closed: false };
        Self {
            partition,
            shared,
            turn: Turn::default(),
            progress: Mutex::new(progress),
            dirty: AtomicBool::new(false),
            forgotten: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
        }
    }

    #[must_use]
    pub fn partition(&self) -> i16 {
        self.partition
    }

    #[must_use]
    pub fn shared(&self) -> &Arc<SubscriptionShared> {
        &self.shared
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.lock().checkpoint
    }

    /// The checkpoint's node has been written and has this version now.
    pub(super) fn stored_as(&self, version: i32) {
        self.lock().checkpoint.version = version;
    }

    /// Its oldest batch has failed and was not consumed since: it waits to be sent again, or is under way again.
    #[must_use]
    pub fn is_retrying(&self) -> bool {
        self.turn.is_waiting() || self.lock().checkpoint.attempts > 0
    }

    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// There may be something to send. Cheap, never blocks for long, callable from any thread.
    pub fn wake(worker: &Arc<Self>) {
        if worker.turn.wake() {
            worker.shared.enqueue(worker);
        }
    }

    /// Ends a wait before its time, or wakes.
    pub(super) fn hurry(worker: &Arc<Self>) {
        if worker.turn.wait_over() {
            worker.shared.enqueue(worker);
        } else {
            Self::wake(worker);
        }
    }

    /// There is nowhere to go for it: idle until it is woken.
    pub(super) fn rest(&self) {
        self.turn.rest();
    }

    pub(super) fn begin_turn(&self) {
        self.turn.begin();
    }

    /// No more calls and no more checkpoints of this worker.
    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    pub(super) fn forget(&self) {
        self.forgotten.store(true, Ordering::Release);
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.forgotten.load(Ordering::Acquire)
    }

    /// Ends a turn: back into the line if there is more to send, or something came meanwhile.
    pub(super) fn end_turn(worker: &Arc<Self>, more: bool) {
        if more {
            worker.turn.again();
            worker.shared.enqueue(worker);
        } else if worker.turn.end() {
            worker.shared.enqueue(worker);
        }
    }

    /// Nothing of this worker until `wait` is over.
    pub(super) fn wait(worker: &Arc<Self>, wait: Duration) {
        worker.turn.wait();
        let later = Arc::clone(worker);
        let stop = worker.shared.scope.stop.clone();
        worker.shared.scope.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return,
            }
            if later.turn.wait_over() {
                later.shared.enqueue(&later);
            }
        });
    }
}

/// The id before this one: a position is inclusive, a checkpoint is what lies before it.
#[must_use]
pub const fn before(id: MessageId) -> MessageId {
    if id.sequence > 0 {
        MessageId::new(id.timestamp, id.sequence - 1)
    } else if id.timestamp > 0 {
        MessageId::new(id.timestamp - 1, i16::MAX)
    } else {
        MessageId::MIN
    }
}

//! One subscription in one partition: from the scanner through the calls to the checkpoint.

mod commit;
mod heir;
mod note;
mod poison;
mod read;
mod redeliver;
mod seek;
mod settle;
mod standing;
mod unordered;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_storage::store::QueueStore;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub use self::redeliver::Unaccepted;
use self::redeliver::{Redelivered, Redelivery};
pub use self::standing::Standing;
use super::checkpoint::Checkpoint;
use super::flights::Flights;
use super::letter::DeadLetter;
use super::shared::SubscriptionShared;
use super::turn::Turn;
use super::under_way::UnderWay;
use crate::partition::MessageScanner;

/// Pushes one partition to one subscription. At most one call is in flight for it, so the partition stays in order.
#[derive(Debug)]
pub struct SubscriptionWorker {
    partition: i16,
    shared: Arc<SubscriptionShared>,
    turn: Turn,
    progress: Mutex<Progress>,
    /// The checkpoint has moved since it was last written.
    dirty: AtomicBool,
    /// It stands in the updater's list.
    listed: AtomicBool,
    /// Held while its checkpoint is written.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Deleted: its checkpoint is nobody's business any more.
    forgotten: AtomicBool,
    in_flight: AtomicU64,
    under_way: UnderWay,
    /// It rested on work when it was last looked at.
    rested: AtomicBool,
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
    /// While poison is looked for: messages of the next call.
    hunt: Option<u32>,
    /// Poison that has to be kept as a dead letter before anything else is sent.
    letter: Option<DeadLetter>,
    /// The next message is in the way.
    blocked: bool,
    redelivery: Option<Redelivery>,
    /// Where order does not matter: what is on its way.
    flights: Flights,
    /// When a timer will wake the worker.
    timer: Option<Instant>,
    /// What failed is not tried again before, whatever wakes the worker.
    not_before: Option<Instant>,
    /// That is because its endpoint did not answer: another one need not wait.
    unanswered: bool,
    /// A batch is held back until then because of a rate.
    paced_to: Option<Instant>,
    /// What is missing below it was found and counted already.
    missed_to: MessageId,
    /// What we wrote last to the node, or tried to.
    written: Option<Checkpoint>,
}

/// A batch to be sent.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) slices: Vec<StoredSlice>,
    pub(super) messages: u32,
    /// It came from the disk.
    pub(super) cold: bool,
    generation: u64,
    /// It is no part of the order: who waits for its end.
    redelivery: Option<oneshot::Sender<Redelivered>>,
    /// Where order does not matter: which one of those on their way.
    pub(super) flight: Option<MessageId>,
}

impl Batch {
    pub(super) const fn is_redelivery(&self) -> bool {
        self.redelivery.is_some()
    }

    pub(super) fn bytes(&self) -> usize {
        self.slices.iter().map(|slice| slice.bytes.len()).sum()
    }
}

/// What is to be done with a worker after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It may have more to send.
    Again,
    /// Nothing of it before so long.
    Wait(Duration),
    /// Its endpoint did not answer: it has to be asked whether it is there before anything is sent, and then nothing of this worker
    /// before so long.
    Ask(Duration),
}

impl SubscriptionWorker {
    #[must_use]
    pub fn new(shared: Arc<SubscriptionShared>, store: Arc<dyn QueueStore>, partition: i16, checkpoint: Checkpoint) -> Self {
        let from = checkpoint.id.successor();
        let mut scanner = MessageScanner::new(store, partition, shared.filter(), from, MessageId::MAX);
        scanner.reset(from, checkpoint.number);
        let limit = shared.options.batch_messages;
        let progress = Progress {
            scanner: Some(scanner),
            checkpoint,
            limit,
            busy: 0,
            generation: 0,
            restart: false,
            closed: false,
            // After a restart the batch that failed is tried once more as a whole before it is halved.
            hunt: (checkpoint.attempts >= shared.options.max_attempts).then_some(limit),
            letter: None,
            blocked: false,
            redelivery: None,
            flights: Flights::default(),
            timer: None,
            not_before: None,
            unanswered: false,
            paced_to: None,
            missed_to: MessageId::MIN,
            written: None,
        };
        Self {
            partition,
            shared,
            turn: Turn::default(),
            progress: Mutex::new(progress),
            dirty: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            writing: tokio::sync::Mutex::default(),
            forgotten: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
            under_way: UnderWay::default(),
            rested: AtomicBool::new(false),
        }
    }

    /// Where it stands, for the messages of simulations.
    #[cfg(test)]
    pub(super) fn describe(&self) -> String {
        let p = self.lock();
        let (partition, turn, checkpoint) = (self.partition, &self.turn, p.checkpoint);
        let scanner = p.scanner.as_ref().map(|scanner| (scanner.is_hand_empty(), scanner.scanned_to()));
        format!(
            "partition {partition}: {turn:?}, {checkpoint:?}, scanner {scanner:?}, limit {}, hunt {:?}, letter {}, blocked {}, restart {}, \
             not before {:?}, {} flights",
            p.limit,
            p.hunt,
            p.letter.is_some(),
            p.blocked,
            p.restart,
            p.not_before,
            p.flights.span()
        )
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

    /// The checkpoint that is now to be written to its node.
    pub(super) fn begin_write(&self) -> Checkpoint {
        let mut progress = self.lock();
        progress.written = Some(progress.checkpoint);
        progress.checkpoint
    }

    /// The checkpoint's node has been written and has this version now. Somebody may have written behind us already.
    pub(super) fn stored_as(&self, version: i32) {
        let mut progress = self.lock();
        progress.checkpoint.version = progress.checkpoint.version.max(version);
        self.note_stored(&progress);
    }

    /// What we wrote last stands in the node. We may have gone back since, and that is not there yet.
    fn note_stored(&self, progress: &Progress) {
        if let Some(written) = progress.written.filter(|_| !self.is_forgotten()) {
            self.shared.stored(self.partition, written.id.min(progress.checkpoint.id));
        }
    }

    /// The checkpoint is to be written. Returns itself if the caller is to put it in the updater's list.
    pub(super) fn mark_dirty(self: &Arc<Self>) -> Option<Arc<Self>> {
        self.dirty.store(true, Ordering::Release);
        (!self.listed.swap(true, Ordering::AcqRel)).then(|| Arc::clone(self))
    }

    /// It was taken out of the updater's list: what moves from here on puts it there again.
    pub(super) fn is_out(&self) {
        self.listed.store(false, Ordering::Release);
    }

    /// True: the checkpoint has moved, and is written now.
    pub(super) fn begin_dirty(&self) -> bool {
        self.dirty.swap(false, Ordering::AcqRel)
    }

    /// This stands in the node. If somebody else wrote it, the worker goes on from there: true.
    pub fn seen(self: &Arc<Self>, node: Checkpoint) -> bool {
        let mut progress = self.lock();
        if node.version == progress.checkpoint.version {
            self.shared.stored(self.partition, node.id.min(progress.checkpoint.id));
        }
        if node.version <= progress.checkpoint.version {
            return false;
        }
        let ours = |written: Checkpoint| Checkpoint { version: 0, ..written } == Checkpoint { version: 0, ..node };
        if progress.written.is_some_and(ours) {
            // The answer to our write has been lost, or is still on its way.
            progress.checkpoint.version = node.version;
            self.note_stored(&progress);
            return false;
        }
        drop(progress);
        tracing::info!(
            queue = self.shared.queue,
            subscriber = self.shared.name,
            partition = self.partition,
            "the checkpoint was moved to {} by hand",
            node.id
        );
        self.moved(node);
        true
    }

    /// The same for what was read behind our last write: a node of a lower version is another one, made anew by somebody.
    pub(super) fn reread(self: &Arc<Self>, node: Checkpoint) -> bool {
        if node.version >= self.checkpoint().version {
            return self.seen(node);
        }
        let (queue, subscriber, partition) = (&self.shared.queue, &self.shared.name, self.partition);
        tracing::info!(queue, subscriber, partition, "the checkpoint was made anew by hand, at {}", node.id);
        self.moved(node);
        true
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

    /// It rests although `last` is committed and not read, and did so when it was asked before. `last` is that of the partition.
    pub fn rests_on_work(worker: &Arc<Self>, last: Option<MessageId>) -> bool {
        let progress = worker.lock();
        let has_work = progress
            .scanner
            .as_ref()
            .is_some_and(|scanner| !scanner.is_hand_empty() || last.is_some_and(|last| last >= scanner.scanned_to()));
        let may_work =
            !progress.blocked && !progress.flights.is_blocked() && progress.flights.is_empty() && progress.letter.is_none();
        drop(progress);
        let rests = has_work
            && may_work
            && worker.turn.is_idle()
            && !worker.shared.is_held(worker.partition)
            && worker.shared.has_endpoint(worker.partition);
        worker.rested.swap(rests, Ordering::Relaxed) && rests
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

    /// What is asked of it from now on counts no more: if its partition is still read, another one reads it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
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
        {
            let mut progress = worker.lock();
            (progress.not_before, progress.unanswered) = (Some(Instant::now() + wait), false);
        }
        Self::rest_for(worker, wait);
    }

    /// The same, because its endpoint did not answer.
    pub(super) fn wait_unanswered(worker: &Arc<Self>, wait: Duration) {
        {
            let mut progress = worker.lock();
            (progress.not_before, progress.unanswered) = (Some(Instant::now() + wait), true);
        }
        Self::rest_for(worker, wait);
    }

    /// Endpoints have come or gone: a wait for one that did not answer is over.
    pub(super) fn endpoints_changed(worker: &Arc<Self>) {
        {
            let mut progress = worker.lock();
            if !std::mem::take(&mut progress.unanswered) {
                return;
            }
            progress.not_before = None;
        }
        Self::hurry(worker);
    }

    /// How long what failed still has to wait.
    pub(super) fn has_to_wait(&self) -> Option<Duration> {
        let mut progress = self.lock();
        if progress.redelivery.is_some() {
            return None;
        }
        let left = progress.not_before?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            progress.not_before = None;
            return None;
        }
        Some(left)
    }

    /// Wakes the worker after `wait`, unless something else does.
    pub(super) fn rest_for(worker: &Arc<Self>, wait: Duration) {
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

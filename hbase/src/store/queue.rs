//! One open queue: what it holds, and the calls of the seam.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;
use hqueue_storage::store::{
    Append, CommitListener, Committed, Count, Cursor, IdRuns, PartitionStatistics, QueueSpec, QueueStore, ReadBatch, StoreError,
    TailRead,
};
use hqueue_storage::tails::Tail;
use tokio::sync::{Notify, oneshot};

use super::ids::{Refusal, may_give};
use super::lane::Lane;
use super::partition::{CallSize, Partition, View};
use super::pending::Pending;
use super::shared::Shared;
use crate::table::{Identity, TableName};

/// Locks are taken in this order: a partition, its lane. None is held across an await.
#[derive(Debug)]
pub(super) struct HBaseQueue {
    pub(super) spec: QueueSpec,
    pub(super) identity: Identity,
    pub(super) table: TableName,
    /// The same, as calls for rows name it.
    pub(super) rows_table: Bytes,
    pub(super) shared: Arc<Shared>,
    slots: Box<[Mutex<Option<Box<Partition>>>]>,
    pub(super) lanes: Box<[Lane]>,
    pub(super) partitions_per_region: i16,
    listener: RwLock<Arc<dyn CommitListener>>,
    closed: AtomicBool,
    /// Told when a lane has nothing to do any more, or a partition that is given up has nothing on its way.
    pub(super) idle: Notify,
    /// Records are written by one task at a time, so that each has the latest.
    pub(super) recording: tokio::sync::Mutex<()>,
}

impl Tail for HBaseQueue {
    fn evict(&self, partition: i16, number: u64) {
        // The tail may be another one than the block was in: no harm is done by reading from HBase.
        let _ = self.with(partition, |held| held.evict(number));
    }
}

impl HBaseQueue {
    pub(super) fn new(
        spec: QueueSpec,
        identity: Identity,
        table: TableName,
        shared: Arc<Shared>,
        partitions_per_region: i16,
        listener: Arc<dyn CommitListener>,
    ) -> Arc<Self> {
        let lanes = (0..spec.partitions).step_by(usize::try_from(partitions_per_region).unwrap_or(1)).map(|_| Lane::default());
        Arc::new(Self {
            slots: (0..spec.partitions).map(|_| Mutex::default()).collect(),
            lanes: lanes.collect(),
            rows_table: table.for_rows(),
            spec,
            identity,
            table,
            shared,
            partitions_per_region,
            listener: RwLock::new(listener),
            closed: AtomicBool::new(false),
            idle: Notify::new(),
            recording: tokio::sync::Mutex::default(),
        })
    }

    /// What is held of a partition, if it is.
    pub(super) fn slot(&self, partition: i16) -> Option<MutexGuard<'_, Option<Box<Partition>>>> {
        let index = usize::try_from(partition).ok()?;
        self.slots.get(index).map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Works on a partition that is held.
    pub(super) fn with<R>(&self, partition: i16, work: impl FnOnce(&mut Partition) -> R) -> Result<R, StoreError> {
        let mut slot = self.slot(partition).ok_or(self.no_such(partition))?;
        let held = slot.as_mut().ok_or(StoreError::NotHeld { partition, reason: "it was not acquired" })?;
        Ok(work(held))
    }

    /// Puts what was acquired in the place of what was held before.
    pub(super) fn hold(&self, partition: i16, held: Option<Partition>) {
        let before = self.slot(partition).and_then(|mut slot| std::mem::replace(&mut *slot, held.map(Box::new)));
        for pending in before.into_iter().flat_map(|mut before| before.abandon()) {
            self.shared.waiting_bytes.fetch_sub(pending.slice.bytes.len(), Relaxed);
            pending.answer(Err(StoreError::NotHeld { partition, reason: "it was given up while HBase was asked" }));
        }
    }

    /// What a reader has to know, and when what has expired by now arrived at the latest. Milliseconds.
    pub(super) fn view(&self, partition: i16) -> Result<(View, i64), StoreError> {
        let cut_ms = self.cut_ms();
        self.with(partition, |held| {
            note_expired(held, cut_ms);
            (held.view(), cut_ms)
        })
    }

    /// What arrived before has expired.
    pub(super) fn cut_ms(&self) -> i64 {
        self.shared.expiry_now_ms().saturating_sub(self.spec.ttl_ms)
    }

    pub(super) fn listener(&self) -> Arc<dyn CommitListener> {
        Arc::clone(&self.listener.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    /// Takes nothing more; what is under way goes on.
    pub(super) fn close(&self) {
        self.closed.store(true, Release);
    }

    fn no_such(&self, partition: i16) -> StoreError {
        StoreError::NoSuchPartition { partition, partitions: self.spec.partitions }
    }

    /// Refuses partitions that do not exist, and everything once the queue is closed.
    fn check(&self, partition: i16) -> Result<(), StoreError> {
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        if (0..self.spec.partitions).contains(&partition) { Ok(()) } else { Err(self.no_such(partition)) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    fn append(self: &Arc<Self>, partition: i16, batch: PutBatch) -> Result<Append, StoreError> {
        self.check(partition)?;
        let (messages, bytes) = (batch.count(), batch.byte_len());
        let options = &self.shared.options;
        let waiting_bytes = self.shared.waiting_bytes.load(Relaxed);
        if waiting_bytes > options.waiting_bytes {
            let limit_bytes = options.waiting_bytes as u64;
            return Err(StoreError::Busy { waiting_bytes: waiting_bytes as u64, limit_bytes });
        }
        let size = CallSize { rows: options.rows_per_call, bytes: options.bytes_per_call, patience: options.write_patience };
        let appended = self.with(partition, |held| {
            if messages == 0 {
                return Ok(None);
            }
            if held.is_leaving {
                return Err(StoreError::NotHeld { partition, reason: "it is being handed over" });
            }
            let now_ms = self.shared.clock.now_ms();
            self.check_mark(held, partition, held.would_reach(messages, now_ms))?;
            let appended = held.append(batch, now_ms, size).map_err(|error| damaged(&error))?;
            Ok(appended.map(|(append, chunks)| (append, self.send(held, partition, chunks))))
        })??;
        let Some((append, starts)) = appended else {
            let (answer, done) = oneshot::channel();
            let _ = answer.send(Ok(()));
            return Ok(Append { ids: IdRuns::default(), done });
        };
        self.shared.waiting_bytes.fetch_add(bytes, Relaxed);
        if starts {
            self.start_lane(self.lane_of(partition));
        }
        Ok(append)
    }

    /// May ids up to this millisecond be given? More are reserved in good time.
    fn check_mark(self: &Arc<Self>, held: &Partition, partition: i16, reach_ms: i64) -> Result<(), StoreError> {
        let mark = may_give(self.shared.marks.current(), held.session, reach_ms).map_err(|refusal| match refusal {
            Refusal::NoIds => StoreError::NoIds { partition },
            Refusal::NoSession => StoreError::NotHeld { partition, reason: "there is no session" },
            Refusal::AnotherSession => {
                StoreError::NotHeld { partition, reason: "the session in which it was acquired has ended" }
            }
        })?;
        self.reserve_ahead(reach_ms, mark.below_ms);
        Ok(())
    }
}

/// Remembers what can be seen to be expired by now: it stays gone when the clock steps back.
pub(super) fn note_expired(held: &mut Partition, cut_ms: i64) {
    if let Some(last) = held.committed().last.filter(|_| cut_ms > 0) {
        held.gone.note_expired(last, cut_ms);
    }
}

pub(super) fn damaged(error: &hqueue_protocol::wire::WireError) -> StoreError {
    StoreError::Remote { what: "writing to HBase", reason: format!("a message cannot be read: {error}"), retryable: false }
}

/// The queue as the seam has it.
#[derive(Clone, Debug)]
pub(super) struct OpenQueue(pub(super) Arc<HBaseQueue>);

impl QueueStore for OpenQueue {
    fn append(&self, partition: i16, batch: PutBatch) -> Result<Append, StoreError> {
        self.0.append(partition, batch)
    }

    fn committed(&self, partition: i16) -> Result<Committed, StoreError> {
        self.0.check(partition)?;
        self.0.with(partition, |held| held.committed())
    }

    fn read_tail(&self, partition: i16, from: MessageId, max_bytes: usize) -> Result<TailRead, StoreError> {
        self.0.check(partition)?;
        let cut_ms = self.0.cut_ms();
        self.0.with(partition, |held| {
            note_expired(held, cut_ms);
            held.read_tail(from, max_bytes, cut_ms)
        })
    }

    fn read(&self, partition: i16, from: Cursor, max_bytes: usize) -> BoxFuture<'_, Result<ReadBatch, StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            self.0.read(partition, from.from, max_bytes).await
        })
    }

    fn raise_ids(&self, partition: i16, floor: MessageId) -> Result<(), StoreError> {
        self.0.check(partition)?;
        self.0.with(partition, |held| held.raise_ids(floor))
    }

    /// A queue in HBase has no limit of its size.
    fn keep_from(&self, partition: i16, _: MessageId) -> Result<(), StoreError> {
        self.0.check(partition)
    }

    fn set_share(&self, _: i16) {}

    fn truncate(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.0.is_closed() {
                return Err(StoreError::Closed);
            }
            self.0.truncate().await
        })
    }

    fn count_from(
        &self,
        partition: i16,
        from: MessageId,
        topics: Arc<[Vec<u8>]>,
        look_at_most: u64,
    ) -> BoxFuture<'_, Result<Count, StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            self.0.count(partition, from, &topics, look_at_most).await
        })
    }

    fn statistics(&self, partition: i16) -> BoxFuture<'_, Result<PartitionStatistics, StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            self.0.statistics(partition).await
        })
    }

    fn ready(&self, partition: i16, messages: usize) -> Option<BoxFuture<'_, Result<(), StoreError>>> {
        self.0.ready(partition, messages)
    }

    fn acquire(&self, partition: i16) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            self.0.acquire(partition).await
        })
    }

    fn release(&self, partition: i16) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            self.0.release(partition).await
        })
    }
}

impl HBaseQueue {
    /// Settles what is due in a partition, makes it visible and tells everybody.
    pub(super) fn settle(self: &Arc<Self>, partition: i16) {
        let Ok((settled, is_waited_for)) = self.with(partition, |held| (held.settle(), held.is_leaving && !held.has_pending()))
        else {
            return;
        };
        let (mut messages, mut bytes) = (0, 0);
        for block in &settled.published {
            messages += u64::from(block.count);
            bytes += block.byte_len() as u64;
        }
        if !settled.published.is_empty() {
            self.shared.count(|c| &c.appended_messages, messages);
            self.shared.count(|c| &c.appended_bytes, bytes);
            self.shared.count(|c| &c.commits, 1);
            self.shared.tails.published(&Arc::downgrade(self), settled.published.iter().map(|block| &**block));
            self.listener().committed(partition);
        }
        for (pending, outcome) in settled.answers {
            self.answer(&pending, outcome);
        }
        if is_waited_for {
            self.idle.notify_waiters();
        }
    }

    fn answer(&self, pending: &Pending, outcome: Result<(), StoreError>) {
        self.shared.waiting_bytes.fetch_sub(pending.slice.bytes.len(), Relaxed);
        pending.answer(outcome);
    }
}

//! One queue of the memory store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Shared;
use super::partition::Partition;
use super::retention;
use crate::store::{
    Append, CommitListener, Committed, Count, Cursor, PartitionStatistics, QueueSpec, QueueStore, ReadBatch, StoreError,
    TailRead, WhenFull,
};

/// What outlives a restart.
#[derive(Debug)]
pub(super) struct QueueData {
    pub(super) uid: Uuid,
    /// Appends so far.
    appends: AtomicU64,
    /// Partitions are made when they are first spoken of. `None` once the queue is removed.
    partitions: Mutex<Option<BTreeMap<i16, Partition>>>,
}

impl QueueData {
    pub(super) fn new(uid: Uuid) -> Self {
        Self { uid, appends: AtomicU64::new(0), partitions: Mutex::new(Some(BTreeMap::new())) }
    }

    /// Lets go of the messages; every handle answers `Closed` from now on.
    pub(super) fn remove(&self) {
        *self.lock() = None;
    }

    /// Bytes of all messages.
    pub(super) fn byte_len(&self) -> u64 {
        self.lock().iter().flat_map(BTreeMap::values).map(Partition::byte_len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<i16, Partition>>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to one queue.
#[derive(Debug)]
pub(super) struct MemoryQueue {
    spec: QueueSpec,
    data: Arc<QueueData>,
    listener: Arc<dyn CommitListener>,
    shared: Arc<Shared>,
    /// What is still needed, by partition.
    kept: Mutex<BTreeMap<i16, MessageId>>,
    /// So many of the partitions are here.
    share: AtomicI16,
}

impl MemoryQueue {
    pub(super) fn new(spec: QueueSpec, data: Arc<QueueData>, listener: Arc<dyn CommitListener>, shared: Arc<Shared>) -> Self {
        let share = AtomicI16::new(spec.partitions);
        Self { spec, data, listener, shared, kept: Mutex::default(), share }
    }

    /// Works on one partition under the lock, after what has expired by now is gone.
    fn with<R>(&self, partition: i16, work: impl FnOnce(&mut Partition, i64) -> R) -> Result<R, StoreError> {
        self.check(partition)?;
        let mut partitions = self.data.lock();
        let all = partitions.as_mut().ok_or(StoreError::Closed)?;
        self.with_one(all, partition, work)
    }

    fn with_one<R>(
        &self,
        all: &mut BTreeMap<i16, Partition>,
        partition: i16,
        work: impl FnOnce(&mut Partition, i64) -> R,
    ) -> Result<R, StoreError> {
        let state = all.entry(partition).or_default();
        // Under the lock, so that arrival times of neighbours stand in the order of their ids while the clock goes forward.
        let now_ms = self.shared.clock.now_ms();
        let expired = state.expire(self.shared.expiry_now_ms(), self.spec.ttl_ms);
        self.shared.counters.expired_messages.fetch_add(expired, Relaxed);
        Ok(work(state, now_ms))
    }

    fn check(&self, partition: i16) -> Result<(), StoreError> {
        if self.shared.closed.load(Relaxed) {
            return Err(StoreError::Closed);
        }
        if !(0..self.spec.partitions).contains(&partition) {
            return Err(StoreError::NoSuchPartition { partition, partitions: self.spec.partitions });
        }
        Ok(())
    }

    /// Drops what the limit wants dropped for so many bytes, or refuses them.
    fn make_room(&self, all: &mut BTreeMap<i16, Partition>, put_bytes: u64) -> Result<(), StoreError> {
        let Some(limit) = self.spec.limit else { return Ok(()) };
        let now_ms = self.shared.expiry_now_ms();
        let expired = all.values_mut().map(|partition| partition.expire(now_ms, self.spec.ttl_ms)).sum();
        self.shared.counters.expired_messages.fetch_add(expired, Relaxed);
        let limit_bytes = limit.share(self.share.load(Relaxed), self.spec.partitions);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let may_go = |partition: i16, last: MessageId| {
            limit.when_full == WhenFull::DropOldest
                && (!limit.keep_unread || kept.get(&partition).is_some_and(|from| last < *from))
        };
        match retention::make_room(all, put_bytes, limit_bytes, &may_go) {
            Ok(dropped) => {
                self.shared.counters.dropped_messages.fetch_add(dropped, Relaxed);
                Ok(())
            }
            Err(used_bytes) => {
                let keeps_unread = limit.keep_unread && limit.when_full == WhenFull::DropOldest && put_bytes <= limit_bytes;
                let queue = self.spec.name.clone();
                Err(StoreError::QueueFull { queue, put_bytes, used_bytes, limit_bytes, keeps_unread })
            }
        }
    }
}

impl QueueStore for MemoryQueue {
    fn append(&self, partition: i16, batch: PutBatch) -> Result<Append, StoreError> {
        let (messages, bytes) = (batch.count() as u64, batch.byte_len() as u64);
        self.check(partition)?;
        let mut partitions = self.data.lock();
        let all = partitions.as_mut().ok_or(StoreError::Closed)?;
        if messages > 0 {
            self.make_room(all, bytes)?;
        }
        let order = self.data.appends.fetch_add(1, Relaxed);
        let ids = self.with_one(all, partition, |state, now_ms| state.append(partition, batch, now_ms, order))?;
        drop(partitions);
        if messages > 0 {
            let counters = &self.shared.counters;
            counters.appended_messages.fetch_add(messages, Relaxed);
            counters.appended_bytes.fetch_add(bytes, Relaxed);
            counters.commits.fetch_add(1, Relaxed);
            self.listener.committed(partition);
        }
        let (answer, done) = oneshot::channel();
        // The receiver is in hand: this cannot fail.
        let _ = answer.send(Ok(()));
        Ok(Append { ids, done })
    }

    fn committed(&self, partition: i16) -> Result<Committed, StoreError> {
        self.with(partition, |state, _| state.committed())
    }

    fn read_tail(&self, partition: i16, from: MessageId, max_bytes: usize) -> Result<TailRead, StoreError> {
        self.with(partition, |state, _| state.read_tail(from, max_bytes, self.shared.tail_bytes))
    }

    fn read(&self, partition: i16, from: Cursor, max_bytes: usize) -> BoxFuture<'_, Result<ReadBatch, StoreError>> {
        Box::pin(async move { self.with(partition, |state, _| state.read(from.from, max_bytes)) })
    }

    fn raise_ids(&self, partition: i16, floor: MessageId) -> Result<(), StoreError> {
        self.with(partition, |state, _| state.raise_ids(floor))
    }

    fn keep_from(&self, partition: i16, from: MessageId) -> Result<(), StoreError> {
        self.check(partition)?;
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(partition, from);
        Ok(())
    }

    fn set_share(&self, partitions: i16) {
        self.share.store(partitions, Relaxed);
    }

    fn truncate(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.shared.closed.load(Relaxed) {
                return Err(StoreError::Closed);
            }
            let mut partitions = self.data.lock();
            partitions.as_mut().ok_or(StoreError::Closed)?.values_mut().for_each(Partition::truncate);
            Ok(())
        })
    }

    fn count_from(
        &self,
        partition: i16,
        from: MessageId,
        topics: Arc<[Vec<u8>]>,
        look_at_most: u64,
    ) -> BoxFuture<'_, Result<Count, StoreError>> {
        Box::pin(async move { self.with(partition, |state, _| state.count_from(from, &topics, look_at_most)) })
    }

    fn statistics(&self, partition: i16) -> BoxFuture<'_, Result<PartitionStatistics, StoreError>> {
        Box::pin(async move { self.with(partition, |state, _| state.statistics()) })
    }
}

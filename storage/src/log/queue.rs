//! One open queue: its log, its partitions, and the calls of the seam.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicBool, AtomicI16, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;
use tokio::sync::oneshot;

use super::files::FileKey;
use super::format::block::Place;
use super::format::header::LogPosition;
use super::format::table::Trim;
use super::intake::{Command, Intake, Status};
use super::partition::Partition;
use super::segment::Segment;
use super::segments::Segments;
use super::shared::Shared;
use super::writer::Writer;
use crate::disk::DiskFile;
use crate::store::{
    Append, Block, CommitListener, Committed, Count, Cursor, IdRuns, PartitionStatistics, QueueSpec, QueueStore, ReadBatch,
    StoreError, TailRead,
};
use crate::tails::Tail;

/// Places of damage that are remembered, so that each is counted and reported once.
const DAMAGES: usize = 10_000;

/// Locks are taken in this order: writer, syncing, intake, segments, a partition. None is held while another thread is waited for, the
/// first two while a disk is.
#[derive(Debug)]
pub(super) struct QueueLog {
    pub(super) spec: QueueSpec,
    /// Another one for every log that this process opens.
    pub(super) number: u64,
    pub(super) dir: PathBuf,
    pub(super) shared: Arc<Shared>,
    intake: Mutex<Intake>,
    /// Signalled when no thread is at work on this log any more.
    pub(super) idle: Condvar,
    partitions: Box<[Mutex<Partition>]>,
    /// Bytes of all messages that are there.
    pub(super) live_bytes: Arc<AtomicU64>,
    /// So many of the partitions are here.
    share: AtomicI16,
    pub(super) segments: Segments,
    /// Segments of a lower epoch are gone.
    floor_epoch: AtomicU64,
    /// The last block that arrived, by the clock, before its predecessor: behind it arrivals rise.
    last_step: Mutex<LogPosition>,
    writer: Mutex<Writer>,
    /// Held while what was written before is synced.
    pub(super) syncing: Mutex<()>,
    listener: RwLock<Arc<dyn CommitListener>>,
    /// What `Intake::status` says, for those who only read.
    closed: AtomicBool,
    /// Files of segments that are gone wait for readers to let go of them.
    pub(super) has_retired: AtomicBool,
    /// Somebody has read what memory does not hold, since this was last looked at.
    pub(super) is_read_cold: AtomicBool,
    damages: Mutex<HashSet<LogPosition>>,
}

/// What a log was found to be.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) partitions: Vec<Partition>,
    pub(super) live_bytes: Arc<AtomicU64>,
    pub(super) segments: BTreeMap<u64, Arc<Segment>>,
    pub(super) floor_epoch: u64,
    pub(super) last_step: LogPosition,
    pub(super) writer: Writer,
    pub(super) damages: Vec<LogPosition>,
}

impl Tail for QueueLog {
    fn evict(&self, partition: i16, number: u64) {
        if let Some(mut partition) = self.partition(partition) {
            partition.evict(number);
        }
    }
}

impl QueueLog {
    pub(super) fn new(
        spec: QueueSpec,
        number: u64,
        dir: PathBuf,
        shared: Arc<Shared>,
        listener: Arc<dyn CommitListener>,
        found: Found,
    ) -> Arc<Self> {
        shared.counters.add(|c| &c.damaged_blocks, found.damages.len() as u64);
        let mut last_ids: Vec<_> = found.partitions.iter().map(|partition| partition.mark.committed.last).collect();
        if !found.damages.is_empty() {
            // Damage may have taken the last ids of a partition: new ones begin above all that are known.
            let highest = last_ids.iter().max().copied().flatten();
            last_ids.fill(highest);
        }
        Arc::new(Self {
            live_bytes: found.live_bytes,
            share: AtomicI16::new(spec.partitions),
            spec,
            number,
            dir,
            shared,
            intake: Mutex::new(Intake::new(last_ids)),
            idle: Condvar::new(),
            partitions: found.partitions.into_iter().map(Mutex::new).collect(),
            segments: Segments::new(found.segments),
            floor_epoch: AtomicU64::new(found.floor_epoch),
            last_step: Mutex::new(found.last_step),
            writer: Mutex::new(found.writer),
            syncing: Mutex::new(()),
            listener: RwLock::new(listener),
            closed: AtomicBool::new(false),
            has_retired: AtomicBool::new(false),
            is_read_cold: AtomicBool::new(false),
            damages: Mutex::new(found.damages.into_iter().collect()),
        })
    }

    pub(super) fn intake(&self) -> MutexGuard<'_, Intake> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn partition(&self, partition: i16) -> Option<MutexGuard<'_, Partition>> {
        let index = usize::try_from(partition).ok()?;
        self.partitions.get(index).map(|partition| partition.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn listener(&self) -> Arc<dyn CommitListener> {
        Arc::clone(&self.listener.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    pub(super) fn floor_epoch(&self) -> u64 {
        self.floor_epoch.load(Relaxed)
    }

    pub(super) fn last_step(&self) -> LogPosition {
        *self.last_step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block at `at` arrives before its predecessor by the clock.
    pub(super) fn clock_stepped(&self, at: LogPosition) {
        *self.last_step.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(super) fn place(&self, epoch: u64) -> Place {
        Place::new(self.spec.uid, epoch)
    }

    /// Takes the segments below an epoch away from readers.
    pub(super) fn take_segments_below(&self, epoch: u64) -> Vec<Arc<Segment>> {
        self.floor_epoch.fetch_max(epoch, Relaxed);
        self.segments.take_below(epoch)
    }

    pub(super) fn open_segment(&self, segment: &Segment) -> io::Result<Arc<dyn DiskFile>> {
        let key = FileKey { log: self.number, epoch: segment.epoch };
        self.shared.files.open(&*self.shared.disk, key, &segment.path)
    }

    /// Has this expired by now?
    pub(super) fn is_expired(&self, arrival_ms: i64, now_ms: i64) -> bool {
        now_ms.saturating_sub(arrival_ms) > self.spec.ttl_ms
    }

    /// So many of the partitions are here.
    pub(super) fn share(&self) -> i16 {
        self.share.load(Relaxed)
    }

    /// Trims that are not on the disk yet.
    pub(super) fn unkept_trims(&self) -> Vec<(i16, Trim)> {
        let all = (0..self.spec.partitions).filter_map(|p| self.partition(p).map(|partition| (p, partition)));
        all.filter(|(_, p)| p.mark.trim.number > p.durable_trim).map(|(p, partition)| (p, partition.mark.trim)).collect()
    }

    /// Counts and reports a damaged place once.
    pub(super) fn report_damage(&self, segment: &Segment, offset: u64, what: &str) {
        let at = LogPosition { epoch: segment.epoch, offset };
        let mut damages = self.damages.lock().unwrap_or_else(PoisonError::into_inner);
        if damages.len() < DAMAGES && damages.insert(at) {
            self.shared.counters.add(|c| &c.damaged_blocks, 1);
            let path = segment.path.display();
            tracing::error!(queue = self.spec.name, %path, offset, "{what}: it is passed over, the rest is served");
        }
    }

    /// Refuses partitions that do not exist, and everything once the queue is closed.
    fn check(&self, partition: i16) -> Result<(), StoreError> {
        if self.closed.load(Acquire) {
            return Err(StoreError::Closed);
        }
        self.check_partition(partition)
    }

    fn check_partition(&self, partition: i16) -> Result<(), StoreError> {
        if (0..self.spec.partitions).contains(&partition) {
            return Ok(());
        }
        Err(StoreError::NoSuchPartition { partition, partitions: self.spec.partitions })
    }

    /// Has a command done between two groups.
    pub(super) fn command(self: &Arc<Self>, command: Command) -> oneshot::Receiver<Result<(), StoreError>> {
        let (answer, done) = oneshot::channel();
        let mut intake = self.intake();
        match intake.status {
            Status::Closed => drop(answer.send(Err(StoreError::Closed))),
            Status::Open | Status::Poisoned(_) => {
                intake.waiting.commands.push((command, answer));
                let idle = !std::mem::replace(&mut intake.committing, true);
                drop(intake);
                if idle {
                    self.start_commit();
                }
            }
        }
        done
    }

    /// Takes nothing more, has what waits committed, and returns when no thread is at work on this log: true if all of it is on the
    /// disk for certain. Must not be called by a thread that commits.
    pub(super) fn close(self: &Arc<Self>) -> bool {
        self.closed.store(true, Release);
        let mut intake = self.intake();
        intake.status = match std::mem::replace(&mut intake.status, Status::Closed) {
            Status::Open => Status::Closed,
            other => other,
        };
        while intake.committing {
            intake = self.idle.wait(intake).unwrap_or_else(PoisonError::into_inner);
        }
        let is_poisoned = matches!(intake.status, Status::Poisoned(_));
        drop(intake);
        if !is_poisoned {
            // A failure shows in the status.
            let _ = self.settle(self.sync_now(&mut self.writer()));
        }
        let mut intake = self.intake();
        std::mem::replace(&mut intake.status, Status::Closed) == Status::Closed
    }

    pub(super) fn is_poisoned(&self) -> bool {
        matches!(self.intake().status, Status::Poisoned(_))
    }

    fn append_batch(self: &Arc<Self>, partition: i16, batch: PutBatch) -> Result<Append, StoreError> {
        let (answer, done) = oneshot::channel();
        let mut intake = self.intake();
        match &intake.status {
            Status::Open => {}
            Status::Closed => return Err(StoreError::Closed),
            Status::Poisoned(reason) => {
                return Err(StoreError::Poisoned { queue: self.spec.name.clone(), reason: reason.clone() });
            }
        }
        self.check_partition(partition)?;
        if batch.count() == 0 {
            // The receiver is in hand: this cannot fail.
            let _ = answer.send(Ok(()));
            return Ok(Append { ids: IdRuns::default(), done });
        }
        let limit = self.shared.options.waiting_bytes;
        if intake.waiting_bytes > 0 && intake.waiting_bytes.saturating_add(batch.byte_len()) > limit {
            return Err(StoreError::Busy { waiting_bytes: intake.waiting_bytes as u64, limit_bytes: limit as u64 });
        }
        // Under the lock, so that times and ids rise together.
        let now_ms = self.shared.clock.now_ms();
        let behind_ms = intake.clock_behind(partition, now_ms, self.shared.clock.monotonic_ms());
        let Some(ids) = intake.take(partition, batch, now_ms, answer) else {
            let reason = format!("partition {partition} has no ids left: its last one is at the end of time");
            return Err(StoreError::Io { what: "append to", path: self.dir.clone(), reason });
        };
        let idle = !std::mem::replace(&mut intake.committing, true);
        drop(intake);
        if let Some(behind_ms) = behind_ms {
            let queue = &self.spec.name;
            tracing::warn!(queue, partition, behind_ms, "the clock is behind the last id: new ids follow that one instead");
        }
        if idle {
            self.start_commit();
        }
        Ok(Append { ids, done })
    }

    /// Reads on a thread of its pool.
    async fn on_reader<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Arc<Self>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let log = Arc::clone(self);
        self.shared.readers.run(move || read(&log)).await.unwrap_or(Err(StoreError::Closed))
    }
}

/// What a broker has of a queue.
#[derive(Debug)]
pub(super) struct QueueHandle(pub(super) Arc<QueueLog>);

impl QueueStore for QueueHandle {
    fn append(&self, partition: i16, batch: PutBatch) -> Result<Append, StoreError> {
        self.0.append_batch(partition, batch)
    }

    fn committed(&self, partition: i16) -> Result<Committed, StoreError> {
        self.0.check(partition)?;
        Ok(self.0.partition(partition).map(|p| p.mark.committed).unwrap_or_default())
    }

    fn read_tail(&self, partition: i16, from: MessageId, max_bytes: usize) -> Result<TailRead, StoreError> {
        self.0.check(partition)?;
        let now_ms = self.0.shared.expiry_now_ms();
        let is_expired = |block: &Block| self.0.is_expired(block.arrival_ms, now_ms);
        Ok(self.0.partition(partition).map_or(TailRead::End, |p| p.read_tail(from, max_bytes, is_expired)))
    }

    fn read(&self, partition: i16, from: Cursor, max_bytes: usize) -> BoxFuture<'_, Result<ReadBatch, StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            match self.0.read_from_tail(partition, from.from, max_bytes) {
                Some(found) => Ok(found),
                None => self.0.on_reader(move |log| log.read_cold(partition, from, max_bytes)).await,
            }
        })
    }

    fn raise_ids(&self, partition: i16, floor: MessageId) -> Result<(), StoreError> {
        self.0.check(partition)?;
        self.0.intake().raise_ids(partition, floor);
        Ok(())
    }

    fn keep_from(&self, partition: i16, from: MessageId) -> Result<(), StoreError> {
        self.0.check(partition)?;
        if let Some(mut partition) = self.0.partition(partition) {
            partition.keep_from = Some(from);
        }
        Ok(())
    }

    fn set_share(&self, partitions: i16) {
        self.0.share.store(partitions, Relaxed);
    }

    fn truncate(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.0.command(Command::Truncate).await.unwrap_or(Err(StoreError::Closed)) })
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
            self.0.on_reader(move |log| log.count(partition, from, &topics, look_at_most)).await
        })
    }

    fn statistics(&self, partition: i16) -> BoxFuture<'_, Result<PartitionStatistics, StoreError>> {
        Box::pin(async move {
            self.0.check(partition)?;
            self.0.on_reader(move |log| log.partition_statistics(partition)).await
        })
    }
}

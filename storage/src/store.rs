//! The seam between the broker and whatever keeps the messages.
//!
//! # The contract
//! * **Ids**: the store assigns them when it accepts an append, `MessageId::next` of the partition's last id and the clock. They
//!   rise strictly within a partition, over restarts too.
//! * **Durability**: an append is answered when its messages will survive what the durability in use promises, never before and
//!   never on a guess. An append that failed may still show up after a restart; one that was answered never goes.
//! * **Visibility**: readers see messages up to the committed position and no further, in the order of their ids: once an id is
//!   visible, no smaller one appears.
//! * **Numbers**: messages of a partition carry running numbers without a gap, in the order of their ids, so that a reader can tell
//!   damage from an end, and a distance can be told without reading.
//! * **Gone is gone**: what was trimmed, truncated or has expired is never returned again, over restarts too.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredSlice, TopicTable};
use uuid::Uuid;

/// What a store has to know of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// The queue's name, for folders and messages to people.
    pub name: String,
    /// Made when the queue was created; a later queue of the same name has another.
    pub uid: Uuid,
    /// 1 to 32,767.
    pub partitions: i16,
    /// A message older than this is never returned. Milliseconds.
    pub ttl_ms: i64,
    /// How large the queue may become. `None`: as large as the disk.
    pub limit: Option<SizeLimit>,
}

/// How large a queue may become, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit {
    /// Of the messages of all partitions, in stored form. A store that has only some of the partitions takes its share of it,
    /// [`QueueStore::set_share`].
    pub max_bytes: u64,
    pub when_full: WhenFull,
    /// With `DropOldest`: what [`QueueStore::keep_from`] says is still needed is not dropped before its TTL; appends are refused instead.
    pub keep_unread: bool,
}

impl SizeLimit {
    /// Of a queue with so many partitions the part that falls to `here` of them. Bytes.
    #[must_use]
    pub fn share(&self, here: i16, partitions: i16) -> u64 {
        let all = partitions.max(1).unsigned_abs();
        let bytes = u128::from(self.max_bytes) * u128::from(here.max(0).unsigned_abs().min(all)) / u128::from(all);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// What an append does that would make the queue too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It fails, until messages expire or are truncated.
    #[default]
    Reject,
    /// The oldest messages of the queue go, in whole blocks and up to 1/64 of the limit more than it takes, so that this is not done with
    /// every append.
    DropOldest,
}

/// All the queues of one broker.
pub trait MessageStore: Debug + Send + Sync + 'static {
    /// Opens the queue, making it if it is new. Data of another queue of the same name is removed, never served.
    /// `listener` is told of every commit, from a thread of the store: it must not block.
    fn open_queue(
        &self,
        spec: QueueSpec,
        listener: Arc<dyn CommitListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn QueueStore>, StoreError>>;

    /// Removes a queue with its data. Handles to it answer `Closed` from then on. Removing what is not there is no error.
    fn remove_queue(&self, name: &str, uid: Uuid) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Commits what is waiting, flushes the index and ends the store's threads. Later calls answer `Closed`.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Counters of the whole store, for the metrics.
    fn counters(&self) -> StoreCounters;
}

/// One open queue. Cheap to share; methods without a future never block on a disk.
pub trait QueueStore: Debug + Send + Sync + 'static {
    /// Assigns ids and queues the batch for the next commit. All of the batch becomes visible at once, or none of it.
    fn append(&self, partition: i16, batch: PutBatch) -> Result<Append, StoreError>;

    /// What is committed in a partition.
    fn committed(&self, partition: i16) -> Result<Committed, StoreError>;

    /// Blocks from the one on that holds the first message at or above `from`, out of memory. At least one block unless at the
    /// end, then while the sum is at most `max_bytes`. The first block may begin below `from`.
    fn read_tail(&self, partition: i16, from: MessageId, max_bytes: usize) -> Result<TailRead, StoreError>;

    /// The same from wherever the messages lie. Reads a bounded stretch of the store, so it may return few blocks, or none with
    /// `at_end` false: go on at `next`.
    fn read(&self, partition: i16, from: Cursor, max_bytes: usize) -> BoxFuture<'_, Result<ReadBatch, StoreError>>;

    /// New ids of the partition will be above `floor`.
    fn raise_ids(&self, partition: i16, floor: MessageId) -> Result<(), StoreError>;

    /// Messages of the partition at or above `from` are still needed by somebody; `MessageId::MAX`: none are. What counts is what was said
    /// last. Before the first word, all are. It is not kept over restarts. See [`SizeLimit::keep_unread`].
    fn keep_from(&self, partition: i16, from: MessageId) -> Result<(), StoreError>;

    /// So many of the queue's partitions are in this store; before the first word, all. The limit of the queue's size counts here in that
    /// proportion.
    fn set_share(&self, partitions: i16);

    /// Removes all messages of all partitions, durably. Ids go on rising.
    fn truncate(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Counts the committed messages at or above `from` that have one of `topics` (empty: any). Looks at no more than `look_at_most`
    /// messages one by one; `exact` is false if that did not suffice, the count is then an upper bound.
    fn count_from(
        &self,
        partition: i16,
        from: MessageId,
        topics: Arc<[Vec<u8>]>,
        look_at_most: u64,
    ) -> BoxFuture<'_, Result<Count, StoreError>>;

    /// First and last id, messages, bytes of a partition, without what has expired.
    fn statistics(&self, partition: i16) -> BoxFuture<'_, Result<PartitionStatistics, StoreError>>;

    /// What has to be waited for before `messages` messages can be appended to the partition now; `None`: nothing. A store that others
    /// share may have to reserve ids first ([`Marks`](crate::marks::Marks)).
    fn ready(&self, _partition: i16, _messages: usize) -> Option<BoxFuture<'_, Result<(), StoreError>>> {
        None
    }

    /// Finds out what is in a partition that this broker has just become the owner of. In a store that others share, a partition answers
    /// [`StoreError::NotHeld`] before; it may be acquired again after it was lost.
    fn acquire(&self, _partition: i16) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Ends what is under way in a partition and writes down what the next owner needs. It answers [`StoreError::NotHeld`] from then on.
    fn release(&self, _partition: i16) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Told when the committed position of a partition has moved.
pub trait CommitListener: Debug + Send + Sync + 'static {
    fn committed(&self, partition: i16);
}

/// An append under way; resolves when it is durable.
#[derive(Debug)]
pub struct Append {
    /// The ids of the batch, in the order of its messages.
    pub ids: IdRuns,
    /// Resolves when the batch is durable and visible, or has failed.
    pub done: tokio::sync::oneshot::Receiver<Result<(), StoreError>>,
}

/// Ids that follow one another, as runs within one millisecond: a batch of a thousand is mostly one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdRuns(pub Vec<IdRun>);

/// `count` ids from `first` on, of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRun {
    pub first: MessageId,
    pub count: u16,
}

impl IdRuns {
    /// Every id, in order.
    pub fn iter(&self) -> impl Iterator<Item = MessageId> + '_ {
        self.0.iter().flat_map(|run| {
            (0..run.count).map(|n| MessageId::new(run.first.timestamp, run.first.sequence.saturating_add_unsigned(n)))
        })
    }
}

/// What readers of a partition may see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The highest id that is visible or was; `None` when there never was a message.
    pub last: Option<MessageId>,
    /// The running number of the next message.
    pub next_number: u64,
}

/// What one partition contributed to one commit: some messages in their stored form.
#[derive(Debug)]
pub struct Block {
    pub partition: i16,
    /// The running number of the first message.
    pub number: u64,
    /// When the broker took it, by the wall clock; expiry goes by it. Milliseconds.
    pub arrival_ms: i64,
    pub first: MessageId,
    pub last: MessageId,
    /// Messages in all of `parts`.
    pub count: u32,
    /// The topics and how many messages have each, if they are few enough to have been noted.
    pub topics: TopicTable,
    /// The messages; parts follow one another.
    pub parts: Vec<StoredSlice>,
}

impl Block {
    /// Bytes of the messages.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.parts.iter().map(|part| part.bytes.len()).sum()
    }
}

/// What `read_tail` found.
#[derive(Debug)]
pub enum TailRead {
    Blocks(Vec<Arc<Block>>),
    /// Nothing is committed at or above the position.
    End,
    /// The position lies below what memory holds: use `read`.
    Cold,
}

/// Where a reader goes on. `hint` spares the search when a reader goes straight on; it is never trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next message is the first at or above this id.
    pub from: MessageId,
    /// A place in the store, private to it.
    pub hint: Option<PlaceHint>,
}

impl Cursor {
    #[must_use]
    pub const fn at(from: MessageId) -> Self {
        Self { from, hint: None }
    }
}

/// A place in a store: which file (by its epoch) and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceHint {
    pub epoch: u64,
    pub offset: u64,
}

/// What `read` found.
#[derive(Debug)]
pub struct ReadBatch {
    pub blocks: Vec<Arc<Block>>,
    pub next: Cursor,
    /// Nothing is committed at or above `next`.
    pub at_end: bool,
    /// Messages that were there once and are not any more, found on the way.
    pub missing: Vec<Missing>,
}

/// Messages that a reader passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub why: MissingReason,
    pub messages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingReason {
    /// Older than the TTL.
    Expired,
    /// Removed by a truncation.
    Truncated,
    /// Removed to make room for newer ones, [`WhenFull::DropOldest`].
    Dropped,
    /// Their bytes on the disk are damaged.
    Damaged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub messages: u64,
    pub exact: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatistics {
    pub first: Option<MessageId>,
    pub last: Option<MessageId>,
    pub messages: u64,
    /// Of the messages in stored form.
    pub bytes: u64,
}

/// What a store has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCounters {
    pub appended_messages: u64,
    pub appended_bytes: u64,
    /// Groups written.
    pub commits: u64,
    /// Sync calls, and how long they took in all, in microseconds.
    pub syncs: u64,
    pub sync_micros: u64,
    /// Upper bounds in microseconds and how many syncs took at most so long (not cumulative).
    pub sync_histogram: Vec<(u64, u64)>,
    /// Reads that went to a file.
    pub disk_reads: u64,
    pub disk_read_bytes: u64,
    pub tail_cache_bytes: u64,
    pub damaged_blocks: u64,
    pub expired_messages: u64,
    /// Messages that made room for newer ones.
    pub dropped_messages: u64,
}

/// When an append is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When its bytes have been synced: it survives a power cut.
    #[default]
    Sync,
    /// When its bytes have been written: it survives the end of the process; synced every 100 ms.
    Async,
}

/// Why a store did not do it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("partition {partition} does not exist: the queue has {partitions} (0 to {})", partitions - 1)]
    NoSuchPartition { partition: i16, partitions: i16 },
    #[error("no space on the disk of {path}: {free_bytes} bytes free")]
    NoSpace { path: PathBuf, free_bytes: u64 },
    #[error("{}", full_text(queue, *put_bytes, *used_bytes, *limit_bytes, *keeps_unread))]
    QueueFull {
        queue: String,
        put_bytes: u64,
        used_bytes: u64,
        limit_bytes: u64,
        /// There would be room without what is still needed.
        keeps_unread: bool,
    },
    /// A write or a sync failed earlier: what the disk holds is not certain any more.
    #[error("the log of queue {queue} refuses writes until it is reopened, since an earlier write failed: {reason}")]
    Poisoned { queue: String, reason: String },
    #[error("{waiting_bytes} bytes wait to be written already, the limit is {limit_bytes}")]
    Busy { waiting_bytes: u64, limit_bytes: u64 },
    #[error("the store is closed")]
    Closed,
    #[error("{what} {path}: {reason}")]
    Io { what: &'static str, path: PathBuf, reason: String },
    #[error("{path}: {reason}")]
    Damaged { path: PathBuf, reason: String },
    /// A store on other machines did not answer, or refused.
    #[error("{what}: {reason}")]
    Remote { what: &'static str, reason: String, retryable: bool },
    /// Another broker owns it, or nobody does yet: it was not acquired, or the session in which it was has ended.
    #[error("partition {partition} is not held by this broker: {reason}")]
    NotHeld { partition: i16, reason: &'static str },
    /// Ids up to there must be reserved first: [`QueueStore::ready`] does it.
    #[error("no ids are reserved for partition {partition} yet")]
    NoIds { partition: i16 },
}

impl StoreError {
    /// May the same call succeed later without anybody's doing?
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NoSpace { .. }
                | Self::Busy { .. }
                | Self::QueueFull { .. }
                | Self::NotHeld { .. }
                | Self::NoIds { .. }
                | Self::Remote { retryable: true, .. }
        )
    }
}

fn full_text(queue: &str, put_bytes: u64, used_bytes: u64, limit_bytes: u64, keeps_unread: bool) -> String {
    let until = match (put_bytes > limit_bytes, keeps_unread) {
        (true, _) => "it never fits",
        (false, true) => "what subscriptions have not consumed is kept until it expires",
        (false, false) => "there is room again once messages expire or are truncated",
    };
    format!(
        "queue {queue} is full: a put of {put_bytes} bytes beside {used_bytes} bytes of messages, the limit is {limit_bytes}; {until}"
    )
}

//! What a case works with: a store, a clock, queues.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;
use uuid::Uuid;

use super::{Harness, ManualClock, Recorder, Scanned, scan};
use crate::store::{
    Append, Committed, Cursor, MessageStore, PartitionStatistics, QueueSpec, QueueStore, ReadBatch, SizeLimit, StoreError,
    TailRead,
};

/// What the clock shows at the beginning of each case: milliseconds since 1970 UTC.
pub const START_MS: i64 = 1_700_000_000_000;

/// Bytes that a scan asks for at a time, unless the case says otherwise.
const READ_BYTES: usize = 1 << 20;

/// A label of messages.
pub type Topic = &'static str;

/// A store under test.
#[expect(missing_debug_implementations, reason = "a harness need not be one")]
pub struct World {
    harness: Box<dyn Harness>,
    pub clock: Arc<ManualClock>,
    pub store: Arc<dyn MessageStore>,
}

impl World {
    pub(super) async fn new(harness: Box<dyn Harness>) -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let store = harness.open(Arc::clone(&clock)).await.unwrap();
        Self { harness, clock, store }
    }

    /// A restart: closes the store and opens another over what it left.
    pub async fn reopen(&mut self) {
        self.store.close().await;
        self.store = self.harness.open(Arc::clone(&self.clock)).await.unwrap();
    }

    /// A restart, and the queue opened again.
    pub async fn reopened(&mut self, queue: Queue) -> Queue {
        let spec = queue.spec.clone();
        drop(queue);
        self.reopen().await;
        self.open(spec).await
    }

    /// A new queue with a TTL of a day.
    pub async fn queue(&self, partitions: i16) -> Queue {
        self.queue_with_ttl(partitions, 24 * 3_600_000).await
    }

    pub async fn queue_with_ttl(&self, partitions: i16, ttl_ms: i64) -> Queue {
        self.open(QueueSpec { name: "orders".to_owned(), uid: Uuid::new_v4(), partitions, ttl_ms, limit: None }).await
    }

    /// A new queue of a TTL of a day that may have so many bytes.
    pub async fn queue_with_limit(&self, partitions: i16, limit: SizeLimit) -> Queue {
        let ttl_ms = 24 * 3_600_000;
        self.open(QueueSpec { name: "orders".to_owned(), uid: Uuid::new_v4(), partitions, ttl_ms, limit: Some(limit) }).await
    }

    pub async fn open(&self, spec: QueueSpec) -> Queue {
        Queue::open(&*self.store, spec).await.unwrap()
    }
}

/// One open queue.
#[derive(Debug)]
pub struct Queue {
    pub spec: QueueSpec,
    pub store: Arc<dyn QueueStore>,
    pub commits: Arc<Recorder>,
}

impl Queue {
    /// Opens a queue with a [`Recorder`] for a listener.
    ///
    /// # Errors
    /// What the store answers.
    pub async fn open(store: &dyn MessageStore, spec: QueueSpec) -> Result<Self, StoreError> {
        let commits = Arc::new(Recorder::default());
        let store = store.open_queue(spec.clone(), Arc::clone(&commits) as _).await?;
        Ok(Self { spec, store, commits })
    }

    /// Puts the values in one batch, waits until they are durable, gives their ids.
    pub async fn put(&self, partition: i16, values: &[&str]) -> Vec<MessageId> {
        self.put_as(partition, "t", values).await
    }

    /// The same under another topic.
    pub async fn put_as(&self, partition: i16, topic: Topic, values: &[&str]) -> Vec<MessageId> {
        self.put_batch(partition, batch(topic, values)).await
    }

    pub async fn put_batch(&self, partition: i16, batch: PutBatch) -> Vec<MessageId> {
        let Append { ids, done } = self.store.append(partition, batch).unwrap();
        done.await.unwrap().unwrap();
        ids.iter().collect()
    }

    /// Puts the values in one batch, unless the store refuses.
    ///
    /// # Errors
    /// Its refusal, at once or later.
    pub async fn try_put(&self, partition: i16, values: &[&str]) -> Result<Vec<MessageId>, StoreError> {
        let Append { ids, done } = self.store.append(partition, batch("t", values))?;
        done.await.unwrap()?;
        Ok(ids.iter().collect())
    }

    /// Bytes of all messages that are there.
    pub async fn bytes(&self) -> u64 {
        let mut sum = 0;
        for partition in 0..self.spec.partitions {
            sum += self.statistics(partition).await.bytes;
        }
        sum
    }

    /// All that is there.
    pub async fn all(&self, partition: i16) -> Scanned {
        self.from(partition, MessageId::MIN).await
    }

    /// All from an id on.
    pub async fn from(&self, partition: i16, from: MessageId) -> Scanned {
        scan(&*self.store, partition, Cursor::at(from), READ_BYTES).await
    }

    pub async fn read(&self, partition: i16, from: Cursor, max_bytes: usize) -> ReadBatch {
        self.store.read(partition, from, max_bytes).await.unwrap()
    }

    pub fn tail(&self, partition: i16, from: MessageId) -> TailRead {
        self.store.read_tail(partition, from, READ_BYTES).unwrap()
    }

    pub fn committed(&self, partition: i16) -> Committed {
        self.store.committed(partition).unwrap()
    }

    pub async fn statistics(&self, partition: i16) -> PartitionStatistics {
        self.store.statistics(partition).await.unwrap()
    }

    /// Messages at or above `from` of the topics, and whether that is exact, with no more than `look_at_most` looked at.
    pub async fn count(&self, partition: i16, from: MessageId, topics: &[&str], look_at_most: u64) -> (u64, bool) {
        let topics = topics.iter().map(|topic| topic.as_bytes().to_vec()).collect();
        let count = self.store.count_from(partition, from, topics, look_at_most).await.unwrap();
        (count.messages, count.exact)
    }

    /// What every method answers for a partition.
    pub async fn answers(&self, partition: i16) -> Vec<(&'static str, Option<StoreError>)> {
        let from = MessageId::MIN;
        vec![
            ("append", self.store.append(partition, batch("t", &["v"])).err()),
            ("committed", self.store.committed(partition).err()),
            ("read_tail", self.store.read_tail(partition, from, 1).err()),
            ("read", self.store.read(partition, Cursor::at(from), 1).await.err()),
            ("raise_ids", self.store.raise_ids(partition, from).err()),
            ("count_from", self.store.count_from(partition, from, Arc::new([]), 1).await.err()),
            ("statistics", self.store.statistics(partition).await.err()),
        ]
    }
}

/// A batch of values under one topic.
#[must_use]
pub fn batch(topic: &str, values: &[&str]) -> PutBatch {
    let mut batch = PutBatch::default();
    for value in values {
        batch.push(topic.as_bytes(), value.as_bytes(), &[]);
    }
    batch
}

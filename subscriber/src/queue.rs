//! A queue, to put to and to read from.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hqueue_protocol::names::QueueName;
use tokio::sync::OnceCell;

use crate::dead_letter::DeadLetters;
use crate::error::Error;
use crate::hqueue::HQueue;
use crate::key;
use crate::listener::Listeners;
use crate::pull::PullConsumer;
use crate::put::{NewMessage, Placed, PlacedBatch, Producer, ProducerOptions, PutArgs, Target, read_put_result};
use crate::scan::{CombinedPartitionScanner, PartitionScanner, QueueScanner, Scan};
use crate::subscriber::{HQueueSubscriber, Subscription};

/// A handle of a queue. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Queue {
    hqueue: HQueue,
    name: QueueName,
    /// Asked for once: it does not change as long as the queue exists.
    partitions: Arc<OnceCell<u16>>,
}

impl Queue {
    pub(crate) fn new(hqueue: HQueue, name: QueueName) -> Self {
        Self { hqueue, name, partitions: Arc::default() }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// How many partitions it has. Asked for once in the life of this handle and its clones: make a new one for a queue that was
    /// dropped and made anew.
    pub async fn partitions(&self) -> Result<u16, Error> {
        let ask = || async {
            let count = self.hqueue.admin().describe_queue(self.name()).await?.partitions;
            u16::try_from(count).map_err(|_| Error::Protocol(format!("the broker says that the queue has {count} partitions")))
        };
        self.partitions.get_or_try_init(ask).await.copied()
    }

    /// The partition of a key: [`partition_of_key`](crate::partition_of_key).
    pub async fn partition_of_key(&self, key: &[u8]) -> Result<i16, Error> {
        Ok(key::partition_of_key(key, self.partitions().await?))
    }

    /// Puts a message into a random partition. It is durable when this returns.
    pub async fn put(&self, topic: impl Into<Bytes>, value: impl Into<Bytes>) -> Result<Placed, Error> {
        self.put_one(Target::Any, &NewMessage::new(topic, value)).await
    }

    /// Puts a message into a partition.
    pub async fn put_to(&self, partition: i16, topic: impl Into<Bytes>, value: impl Into<Bytes>) -> Result<Placed, Error> {
        self.put_one(Target::Partition(partition), &NewMessage::new(topic, value)).await
    }

    /// Puts a message into the partition of a key: messages of one key are in order.
    pub async fn put_keyed(
        &self,
        key: impl Into<Bytes>,
        topic: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) -> Result<Placed, Error> {
        self.put_one(Target::Key(key.into()), &NewMessage::new(topic, value)).await
    }

    /// Puts messages into one random partition, in order: all of them or none. At most 16 MiB together.
    pub async fn put_batch(&self, messages: &[NewMessage]) -> Result<PlacedBatch, Error> {
        self.put_all(Target::Any, messages).await
    }

    /// Puts messages into a partition, in order: all of them or none. At most 16 MiB together.
    pub async fn put_batch_to(&self, partition: i16, messages: &[NewMessage]) -> Result<PlacedBatch, Error> {
        self.put_all(Target::Partition(partition), messages).await
    }

    /// Puts messages into the partition of a target, in order: all of them or none. At most 16 MiB together.
    pub async fn put_all(&self, target: Target, messages: &[NewMessage]) -> Result<PlacedBatch, Error> {
        let partition = match target {
            Target::Any => crate::put::ANY_PARTITION,
            Target::Partition(partition) => self.check_target(partition)?,
            Target::Key(key) => self.partition_of_key(&key).await?,
        };
        let mut args = PutArgs::new(self.name(), partition);
        messages.iter().try_for_each(|message| args.push(message))?;
        let body = self.hqueue.client().call_encoded(PutArgs::METHOD, args.finish()).await?;
        read_put_result(&body, messages.len())
    }

    async fn put_one(&self, target: Target, message: &NewMessage) -> Result<Placed, Error> {
        let placed = self.put_all(target, std::slice::from_ref(message)).await?;
        let id = placed.ids.first().copied().ok_or_else(|| Error::bad_reply(PutArgs::METHOD, "no id"))?;
        Ok(Placed { partition: placed.partition, id })
    }

    /// On the wire a negative one means any.
    pub(crate) fn check_target(&self, partition: i16) -> Result<i16, Error> {
        if partition >= 0 {
            return Ok(partition);
        }
        Err(Error::Invalid(format!("queue {} has no partition {partition}: partitions are numbered from 0", self.name())))
    }

    /// A producer that gathers the puts of many tasks into batches.
    pub fn producer(&self, options: ProducerOptions) -> Result<Producer, Error> {
        Producer::new(self.clone(), self.hqueue.client().clone(), options)
    }

    /// Reads one partition.
    #[must_use]
    pub fn partition_scanner(&self, partition: i16, scan: Scan) -> PartitionScanner {
        PartitionScanner::new(self.hqueue.reader().clone(), self.name(), partition, scan)
    }

    /// Reads all partitions, one after the other.
    pub async fn queue_scanner(&self, scan: Scan) -> Result<QueueScanner, Error> {
        let partitions = i16::try_from(self.partitions().await?).unwrap_or(i16::MAX);
        Ok(QueueScanner::new(self.combined_partition_scanner((0..partitions).map(|p| (p, scan.clone())).collect())))
    }

    /// Reads some partitions, one after the other in the order of their numbers, each with a scan of its own.
    #[must_use]
    pub fn combined_partition_scanner(&self, scans: BTreeMap<i16, Scan>) -> CombinedPartitionScanner {
        CombinedPartitionScanner::new(self.hqueue.reader().clone(), self.name(), scans)
    }

    /// A consumer that fetches messages when it wants some. With a name, the broker keeps its position; without (`None`), it does so
    /// itself.
    pub fn pull_consumer<'a>(&self, name: impl Into<Option<&'a str>>) -> Result<PullConsumer, Error> {
        PullConsumer::new(self.hqueue.clone(), self.clone(), name.into())
    }

    /// The dead letters of one subscriber of this queue, oldest first.
    pub async fn dead_letters(&self, subscriber: &str) -> Result<DeadLetters, Error> {
        let letters = self.hqueue.queue(&format!("{}.dlq", self.name()))?;
        DeadLetters::open(self, &letters, subscriber).await
    }

    /// A subscriber of this queue, not started yet.
    #[must_use]
    pub fn create_subscriber(&self, subscription: Subscription, listeners: Listeners) -> HQueueSubscriber {
        HQueueSubscriber::new(&self.hqueue, self.name(), subscription, listeners)
    }
}

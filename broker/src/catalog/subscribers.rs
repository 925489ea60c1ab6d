//! Subscribers of a queue: added, loaded, deleted.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue_coordination::{CoordinationError, NodeKind, create_all};
use hqueue_protocol::generated::{TErrorCode, TSubscriberSpec};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::limits;
use hqueue_protocol::names::SubscriberName;
use hqueue_protocol::position::Position;

use super::catalog::{Catalog, DELETE_PATIENCE};
use super::queue::Queue;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{Checkpoint, Subscription, SubscriptionOptions, SubscriptionRecord, SubscriptionShared};

/// So many nodes are written at once.
const CONCURRENT_WRITES: usize = 32;

/// Loads the subscribers of a queue that was opened, and begins to push.
pub(super) async fn load(catalog: &Catalog, queue: &Arc<Queue>) -> Result<(), Refusal> {
    let names = catalog.coordinator.children(&paths::subscribers(queue.name.as_str())).await?.unwrap_or_default();
    for name in names {
        if let Err(error) = load_one(catalog, queue, &name).await {
            tracing::error!(queue = %queue.name, subscriber = name, "the subscriber is not served: {error}");
        }
    }
    Ok(())
}

async fn load_one(catalog: &Catalog, queue: &Arc<Queue>, name: &str) -> Result<(), Refusal> {
    let path = paths::subscriber(queue.name.as_str(), name);
    let Some(node) = catalog.coordinator.get(&path).await? else { return Ok(()) };
    let record: SubscriptionRecord = serde_json::from_slice(&node.payload)
        .map_err(|error| Refusal::new(TErrorCode::FAILED, format!("its node {path} cannot be read: {error}")))?;
    let partitions = all_or(queue, &record.partitions);
    let mut checkpoints = Vec::with_capacity(partitions.len());
    for partition in partitions {
        checkpoints.push((partition, load_checkpoint(catalog, queue, name, partition).await?));
    }
    start(catalog, queue, name, record, checkpoints);
    Ok(())
}

/// An absent or empty node means `latest`, which is fixed and written here.
async fn load_checkpoint(catalog: &Catalog, queue: &Queue, name: &str, partition: i16) -> Result<Checkpoint, Refusal> {
    let path = paths::checkpoint(queue.name.as_str(), partition, name);
    match catalog.coordinator.get(&path).await? {
        Some(node) if !node.payload.is_empty() => {
            let checkpoint = Checkpoint::from_payload(&node.payload, node.version)
                .map_err(|reason| Refusal::new(TErrorCode::FAILED, format!("{path}: {reason}")))?;
            // Ids that are still to come must lie above what counts as consumed.
            queue.store.raise_ids(partition, checkpoint.id)?;
            Ok(checkpoint)
        }
        _ => {
            let id = queue.checkpoint_at(partition, &Position::Latest)?;
            write_checkpoint(catalog, queue, name, partition, id).await
        }
    }
}

/// Writes a checkpoint whether its node exists or not.
async fn write_checkpoint(
    catalog: &Catalog,
    queue: &Queue,
    name: &str,
    partition: i16,
    id: MessageId,
) -> Result<Checkpoint, Refusal> {
    let number = queue.number_behind(partition, id).await?;
    let checkpoint = Checkpoint { number, ..Checkpoint::at(id) };
    let payload = checkpoint.to_payload();
    let path = paths::checkpoint(queue.name.as_str(), partition, name);
    create_all(&*catalog.coordinator, &paths::partition(queue.name.as_str(), partition)).await?;
    let version = match catalog.coordinator.create(&path, &payload, NodeKind::Persistent).await {
        Ok(_) => 0,
        Err(CoordinationError::NodeExists(_)) => catalog.coordinator.set(&path, &payload, None).await?,
        Err(error) => return Err(error.into()),
    };
    Ok(Checkpoint { version, ..checkpoint })
}

fn start(
    catalog: &Catalog,
    queue: &Arc<Queue>,
    name: &str,
    record: SubscriptionRecord,
    checkpoints: Vec<(i16, Checkpoint)>,
) -> Arc<Subscription> {
    let shared = SubscriptionShared::new(
        queue.name.as_str().to_owned(),
        name.to_owned(),
        queue.partitions(),
        record.options.clone(),
        crate::partition::TopicFilter::new(record.topics.clone()),
        Arc::clone(&catalog.checkpoints),
        catalog.scope.clone(),
        Arc::clone(&queue.held),
    );
    let subscription = Arc::new(Subscription::new(shared, record, Arc::clone(&queue.store), Arc::clone(&queue.waiters)));
    queue.subscriptions.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::clone(&subscription));
    subscription.start(checkpoints);
    subscription
}

/// A subscriber that is wanted, checked.
#[derive(Debug)]
pub struct NewSubscriber {
    pub name: SubscriberName,
    pub record: SubscriptionRecord,
    /// Where partitions begin that have no checkpoint.
    pub from: Position,
    /// Over `from`.
    pub partition_from: BTreeMap<i16, Position>,
}

impl NewSubscriber {
    /// Checks what a client wants.
    pub fn from_spec(spec: &TSubscriberSpec, queue: &Queue) -> Result<Self, Refusal> {
        let mut options = SubscriptionOptions::default();
        for (name, value) in spec.options.iter().flatten() {
            options.set(name, value).map_err(|error| Refusal::invalid(error.to_string()))?;
        }
        options.check().map_err(|error| Refusal::invalid(error.to_string()))?;
        let addresses = spec.addresses.clone().unwrap_or_default();
        addresses.iter().try_for_each(|address| check_address(address))?;
        Ok(Self {
            name: check_name(spec.name.as_deref().unwrap_or_default())?,
            record: SubscriptionRecord {
                addresses,
                topics: check_topics(spec.topics.clone().unwrap_or_default())?,
                partitions: check_partitions(queue, spec.partitions.as_deref().unwrap_or_default())?,
                options,
            },
            from: parse_position(spec.start_position.as_deref())?,
            partition_from: BTreeMap::new(),
        })
    }
}

pub(super) fn check_name(name: &[u8]) -> Result<SubscriberName, Refusal> {
    SubscriberName::from_bytes(name).map_err(|error| Refusal::invalid(error.to_string()))
}

/// An endpoint's address: `host:port`.
pub fn check_address(address: &str) -> Result<(), Refusal> {
    let valid = address.rsplit_once(':').is_some_and(|(host, port)| {
        let host_ok = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '/' || c.is_control());
        host_ok && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if valid { Ok(()) } else { Err(Refusal::invalid(format!("{address:?} is no address of an endpoint (host:port)"))) }
}

pub(super) fn check_topics(topics: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Refusal> {
    match topics.iter().find(|t| t.is_empty() || t.len() > limits::MAX_TOPIC_BYTES) {
        Some(topic) => {
            Err(Refusal::invalid(format!("a topic of {} bytes: a topic has 1 to {} bytes", topic.len(), limits::MAX_TOPIC_BYTES)))
        }
        None => Ok(topics),
    }
}

/// The partitions named, or all if none is.
pub(super) fn all_or(queue: &Queue, partitions: &[i16]) -> Vec<i16> {
    if partitions.is_empty() { (0..queue.partitions()).collect() } else { partitions.to_vec() }
}

/// The partitions named, sorted; none stays none, which means all.
pub(super) fn check_partitions(queue: &Queue, wanted: &[i16]) -> Result<Vec<i16>, Refusal> {
    wanted.iter().try_for_each(|p| queue.check_partition(*p))?;
    let mut partitions = wanted.to_vec();
    partitions.sort_unstable();
    partitions.dedup();
    Ok(partitions)
}

/// A position from its text; absent means `latest`.
pub(super) fn parse_position(text: Option<&str>) -> Result<Position, Refusal> {
    text.map_or(Ok(Position::Latest), |text| text.parse::<Position>().map_err(|error| Refusal::invalid(error.to_string())))
}

impl Catalog {
    /// Adds a subscriber whose name is new.
    pub async fn add_subscriber(&self, queue: &Arc<Queue>, new: NewSubscriber) -> Result<Arc<Subscription>, Refusal> {
        let _one = self.changes.lock().await;
        let name = new.name.as_str();
        if queue.subscription(name).is_ok() {
            return Err(Refusal::new(TErrorCode::EXISTS, format!("subscriber {name} of queue {} exists already", queue.name)));
        }
        self.add_new_subscriber(queue, new).await
    }

    /// The same, by one who holds `changes` and knows that the name is new.
    pub(super) async fn add_new_subscriber(&self, queue: &Arc<Queue>, new: NewSubscriber) -> Result<Arc<Subscription>, Refusal> {
        let name = new.name.as_str();
        let checkpoints =
            self.write_checkpoints(queue, name, &all_or(queue, &new.record.partitions), &new.from, &new.partition_from).await?;
        // The options come last: a subscriber without them is none.
        create_all(&*self.coordinator, &paths::subscribers(queue.name.as_str())).await?;
        self.create_record(queue, name, &new.record).await?;
        let subscription = start(self, queue, name, new.record, checkpoints);
        tracing::info!(queue = %queue.name, subscriber = name, "added");
        Ok(subscription)
    }

    /// Writes the first checkpoints of these partitions.
    pub(super) async fn write_checkpoints(
        &self,
        queue: &Queue,
        name: &str,
        partitions: &[i16],
        from: &Position,
        partition_from: &BTreeMap<i16, Position>,
    ) -> Result<Vec<(i16, Checkpoint)>, Refusal> {
        // All positions are found before anything is written.
        let ids = partitions
            .iter()
            .map(|&p| Ok((p, queue.checkpoint_at(p, partition_from.get(&p).unwrap_or(from))?)))
            .collect::<Result<Vec<_>, Refusal>>()?;
        stream::iter(ids)
            .map(|(p, id)| async move { Ok((p, write_checkpoint(self, queue, name, p, id).await?)) })
            .buffered(CONCURRENT_WRITES)
            .try_collect()
            .await
    }

    async fn create_record(&self, queue: &Queue, name: &str, record: &SubscriptionRecord) -> Result<(), Refusal> {
        let path = paths::subscriber(queue.name.as_str(), name);
        let payload = serde_json::to_vec(record).map_err(|error| Refusal::new(TErrorCode::FAILED, error.to_string()))?;
        self.coordinator.create(&path, &payload, NodeKind::Persistent).await?;
        Ok(())
    }

    /// Keeps what has changed of a subscription.
    pub(super) async fn keep_record(&self, queue: &Queue, name: &str, record: &SubscriptionRecord) -> Result<(), Refusal> {
        let path = paths::subscriber(queue.name.as_str(), name);
        let payload = serde_json::to_vec(record).map_err(|error| Refusal::new(TErrorCode::FAILED, error.to_string()))?;
        self.coordinator.set(&path, &payload, None).await?;
        Ok(())
    }

    /// Removes a subscriber with its checkpoints.
    pub async fn delete_subscriber(&self, queue: &Arc<Queue>, name: &[u8]) -> Result<(), Refusal> {
        let _one = self.changes.lock().await;
        let name = String::from_utf8_lossy(name).into_owned();
        let subscription = queue.subscription(&name)?;
        // The options go first: a subscriber without them is none, whatever is left of it.
        self.delete_node(&paths::subscriber(queue.name.as_str(), &name)).await?;
        queue.subscriptions.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
        self.registrations.forget(queue, Some(&name));
        subscription.stop(DELETE_PATIENCE).await;
        subscription.forget();
        let paths = subscription.workers().into_iter().map(|w| paths::checkpoint(queue.name.as_str(), w.partition(), &name));
        stream::iter(paths)
            .map(|path| async move { self.delete_node(&path).await })
            .buffer_unordered(CONCURRENT_WRITES)
            .try_collect::<()>()
            .await?;
        tracing::info!(queue = %queue.name, subscriber = name, "deleted");
        Ok(())
    }

    async fn delete_node(&self, path: &str) -> Result<(), Refusal> {
        match self.coordinator.delete(path, None).await {
            Ok(()) | Err(CoordinationError::NoNode(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

//! Subscribers of a queue: added and deleted by command.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue_coordination::{CoordinationError, Node, NodeKind, Observed, create_all, delete_tree};
use hqueue_protocol::generated::{TErrorCode, TSubscriberSpec};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::limits;
use hqueue_protocol::names::SubscriberName;
use hqueue_protocol::position::Position;

use super::catalog::{Catalog, DELETE_PATIENCE};
use super::queue::Queue;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{Calls, Checkpoint, Subscription, SubscriptionOptions, SubscriptionRecord, SubscriptionShared};

/// How long one that is added waits until an earlier one of its name is seen to be gone.
const GONE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// So many nodes are written at once.
const CONCURRENT_WRITES: usize = 32;

/// How long a deletion waits until it is seen.
const SEEN_PATIENCE: Duration = Duration::from_secs(5);

/// Begins a subscription that pushes nothing yet.
pub(super) fn begin(catalog: &Catalog, queue: &Arc<Queue>, name: &str, record: SubscriptionRecord) -> Arc<Subscription> {
    let shared = shared(catalog, queue, name, &record);
    let subscription = Arc::new(Subscription::new(shared, record, Arc::clone(&queue.store), Arc::clone(&queue.waiters)));
    keep(queue, name, subscription)
}

/// Begins one with other options in place of one that has no call under way.
pub(super) async fn replace(
    catalog: &Catalog,
    queue: &Arc<Queue>,
    old: &Subscription,
    record: SubscriptionRecord,
) -> Arc<Subscription> {
    let name = &old.shared().name;
    let next = old.replaced(shared(catalog, queue, name, &record), record).await;
    tracing::info!(queue = %queue.name, subscriber = name, "it has other options now");
    keep(queue, name, next)
}

fn keep(queue: &Queue, name: &str, subscription: Arc<Subscription>) -> Arc<Subscription> {
    queue.subscriptions.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::clone(&subscription));
    subscription
}

fn shared(catalog: &Catalog, queue: &Queue, name: &str, record: &SubscriptionRecord) -> SubscriptionShared {
    SubscriptionShared::new(
        queue.name.as_str().to_owned(),
        name.to_owned(),
        queue.partitions(),
        record.options.clone(),
        queue.filter(record.topics.clone()),
        Arc::clone(&catalog.checkpoints),
        catalog.scope.clone(),
        Arc::clone(&queue.held),
        Arc::clone(&queue.ownership),
        Arc::clone(&catalog.letters),
        queue.unread.clone(),
        Calls::new(&catalog.calls),
    )
}

/// Writes a first checkpoint, unless there is one that says something: returns what stands there then.
pub(super) async fn write_checkpoint(
    catalog: &Catalog,
    queue: &Queue,
    name: &str,
    partition: i16,
    id: MessageId,
) -> Result<Checkpoint, Refusal> {
    queue.begins_unread(partition, name, id);
    let number = queue.number_behind(partition, id).await?;
    let checkpoint = Checkpoint { number, ..Checkpoint::first(id) };
    let payload = checkpoint.to_payload();
    let path = paths::checkpoint(queue.name.as_str(), partition, name);
    create_all(&*catalog.coordinator, &paths::partition(queue.name.as_str(), partition)).await?;
    match catalog.coordinator.create(&path, &payload, NodeKind::Persistent).await {
        Ok(_) => return Ok(checkpoint),
        Err(CoordinationError::NodeExists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let node = catalog.coordinator.get(&path).await?.ok_or(CoordinationError::NoNode(path.clone()))?;
    if !node.payload.is_empty() {
        return parse_checkpoint(&path, &node);
    }
    match catalog.coordinator.set(&path, &payload, Some(node.version)).await {
        Ok(version) => Ok(Checkpoint { version, ..checkpoint }),
        // Somebody else has just said where it begins.
        Err(CoordinationError::BadVersion { .. }) => {
            let node = catalog.coordinator.get(&path).await?.ok_or(CoordinationError::NoNode(path.clone()))?;
            parse_checkpoint(&path, &node)
        }
        Err(error) => Err(error.into()),
    }
}

fn parse_checkpoint(path: &str, node: &Node) -> Result<Checkpoint, Refusal> {
    Checkpoint::from_payload(&node.payload, node.version)
        .map_err(|reason| Refusal::new(TErrorCode::FAILED, format!("{path}: {reason}")))
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
                paused: false,
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
    /// Adds a subscriber whose name is new. One that was only registered by hand until now, or by an SDK that has just begun, has no
    /// options: it gets these, and its checkpoints stay. A name with fixed endpoints takes nobody who registers: so it must be free.
    pub async fn add_subscriber(&self, queue: &Arc<Queue>, new: NewSubscriber) -> Result<(), Refusal> {
        let _one = queue.changes.lock().await;
        let _alone = self.lock_subscriber(queue, new.name.as_str()).await?;
        let name = new.name.as_str();
        let is_taken = match new.record.addresses.is_empty() {
            true => self.coordinator.get(&paths::subscriber(queue.name.as_str(), name)).await?.is_some(),
            false => self.written_subscription(queue, name).await?.is_some(),
        };
        if is_taken {
            return Err(exists(queue, name));
        }
        let (name, is_alone) = (new.name.clone(), !new.record.addresses.is_empty());
        let added = self.add_new_subscriber(queue, new).await;
        if is_alone && added.as_ref().is_err_and(|refusal| refusal.code != TErrorCode::BUSY) {
            // There was nothing of the name before, and nothing is to be left of it.
            self.clear_refused(queue, name.as_str()).await;
        }
        added
    }

    /// Removes what a refused addition has written before it was refused.
    async fn clear_refused(&self, queue: &Queue, name: &str) {
        let options = self.coordinator.get(&paths::subscriber(queue.name.as_str(), name)).await;
        // With options it is added after all; if nobody can say, the next addition finds the checkpoints and leaves them.
        if matches!(options, Ok(None))
            && let Err(refusal) = self.delete_checkpoints(queue, name, (0..queue.partitions()).collect()).await
        {
            tracing::warn!(queue = %queue.name, subscriber = name, "not added, but some of its checkpoints stay: {refusal}");
        }
    }

    /// The same, by one who holds `changes` and knows that the name is new.
    pub(super) async fn add_new_subscriber(&self, queue: &Arc<Queue>, new: NewSubscriber) -> Result<(), Refusal> {
        let name = new.name.as_str();
        // One of the name that was just deleted is not to be taken for this one.
        if self.until(GONE_PATIENCE, || (!queue.is_deleted(name)).then_some(())).await.is_none() {
            queue.deleted_are_gone(|gone| gone == name);
        }
        let hidden = queue.hide(name);
        let wanted = all_or(queue, &new.record.partitions);
        self.first_checkpoints(queue, name, &wanted, &new.from, &new.partition_from).await?;
        drop(hidden);
        // The options come last: a subscriber that was added is one only with them.
        create_all(&*self.coordinator, &paths::subscribers(queue.name.as_str())).await?;
        match self.create_record(queue, name, &new.record).await {
            Err(CoordinationError::NodeExists(_)) => return Err(exists(queue, name)),
            other => other?,
        }
        let record = &new.record;
        let begun = || queue.subscription(name).is_ok_and(|s| s.record() == *record).then_some(());
        self.until(DELETE_PATIENCE, begun).await.ok_or_else(|| {
            let message = format!("subscriber {name} of queue {} is added, but not served yet: see the status", queue.name);
            Refusal::new(TErrorCode::BUSY, message)
        })?;
        tracing::info!(queue = %queue.name, subscriber = name, "added");
        Ok(())
    }

    /// Sees that these partitions have a checkpoint: each at the broker that owns it and so knows what there is.
    pub(super) async fn first_checkpoints(
        &self,
        queue: &Queue,
        name: &str,
        partitions: &[i16],
        from: &Position,
        partition_from: &BTreeMap<i16, Position>,
    ) -> Result<(), Refusal> {
        let position = |p: i16| partition_from.get(&p).unwrap_or(from);
        let (ours, others): (Vec<i16>, Vec<i16>) = partitions.iter().partition(|p| queue.ownership.held(**p).is_some());
        // All positions are found before anything is written.
        let ids = ours.iter().map(|&p| Ok((p, queue.checkpoint_at(p, position(p))?))).collect::<Result<Vec<_>, Refusal>>()?;
        let others = others.into_iter().map(|p| (p, *position(p))).collect();
        self.checkpoints_elsewhere(queue, name, others).await?;
        stream::iter(ids)
            .map(|(p, id)| async move { write_checkpoint(self, queue, name, p, id).await.map(drop) })
            .buffered(CONCURRENT_WRITES)
            .try_collect()
            .await
    }

    async fn create_record(&self, queue: &Queue, name: &str, record: &SubscriptionRecord) -> Result<(), CoordinationError> {
        let path = paths::subscriber(queue.name.as_str(), name);
        let payload = serde_json::to_vec(record).map_err(|error| CoordinationError::Failed(error.to_string()))?;
        self.coordinator.create(&path, &payload, NodeKind::Persistent).await.map(drop)
    }

    /// Keeps what has changed of a subscription.
    pub(super) async fn keep_record(&self, queue: &Queue, name: &str, record: &SubscriptionRecord) -> Result<(), Refusal> {
        let path = paths::subscriber(queue.name.as_str(), name);
        let payload = serde_json::to_vec(record).map_err(|error| Refusal::new(TErrorCode::FAILED, error.to_string()))?;
        match self.coordinator.set(&path, &payload, None).await {
            // It was registered by hand until now.
            Err(CoordinationError::NoNode(_)) => {
                create_all(&*self.coordinator, &paths::subscribers(queue.name.as_str())).await?;
                self.coordinator.create(&path, &payload, NodeKind::Persistent).await?;
                Ok(())
            }
            other => Ok(other.map(drop)?),
        }
    }

    /// Removes a subscriber with its checkpoints, wherever its partitions are.
    pub async fn delete_subscriber(&self, queue: &Arc<Queue>, name: &str) -> Result<(), Refusal> {
        if SubscriberName::from_bytes(name.as_bytes()).is_err() {
            return Err(Refusal::no_subscriber(queue.name.as_str(), name));
        }
        let _one = queue.changes.lock().await;
        let _alone = self.lock_subscriber(queue, name).await?;
        let hidden = queue.hide(name);
        // The options go first: a subscriber without them is none that was added, whatever is left of it.
        let had_options = self.delete_node(&paths::subscriber(queue.name.as_str(), name)).await?;
        self.end_subscriber(queue, name).await;
        let had_more = self.end_subscriber_elsewhere(queue, name).await?;
        let had_nodes = self.delete_checkpoints(queue, name, (0..queue.partitions()).collect()).await?;
        queue.forget_unread(name);
        queue.deleted(name);
        drop(hidden);
        if !(had_options || had_more || had_nodes) {
            return Err(Refusal::no_subscriber(queue.name.as_str(), name));
        }
        tracing::info!(queue = %queue.name, subscriber = name, "deleted");
        Ok(())
    }

    /// Another broker deletes a subscriber: ends what is here of it and removes its nodes in partitions that are held here, so that
    /// nothing of it begins anew when it is looked at again. True: there was something.
    pub async fn delete_own_part(&self, queue: &Queue, name: &str) -> Result<bool, Refusal> {
        let hidden = queue.hide(name);
        let was_served = self.end_subscriber(queue, name).await;
        let had_nodes = self.delete_checkpoints(queue, name, queue.held_partitions()).await?;
        queue.forget_unread(name);
        queue.deleted(name);
        drop(hidden);
        Ok(was_served || had_nodes)
    }

    /// Removes the checkpoints in these partitions with what is registered below them, and waits until this broker sees that they are
    /// gone. True: there were some.
    async fn delete_checkpoints(&self, queue: &Queue, name: &str, partitions: Vec<i16>) -> Result<bool, Refusal> {
        let all = partitions.into_iter().map(|p| paths::checkpoint(queue.name.as_str(), p, name));
        let had_nodes = stream::iter(all)
            .map(|path| async move { self.delete_checkpoint(&path).await })
            .buffer_unordered(CONCURRENT_WRITES)
            .try_fold(false, |any, had| async move { Ok(any || had) })
            .await?;
        let mut parents = vec![paths::subscribers(queue.name.as_str())];
        parents.extend(queue.held_partitions().into_iter().map(|p| paths::partition(queue.name.as_str(), p)));
        let unseen = async {
            for parent in parents {
                let mut children = self.coordinator.watch_children(&parent);
                let is_gone = |seen: &Observed<Option<Vec<String>>>| matches!(seen, Observed::Seen(names) if names.iter().flatten().all(|child| child != name));
                if children.wait_for(is_gone).await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(SEEN_PATIENCE, unseen).await.is_err() {
            tracing::warn!(queue = %queue.name, subscriber = name, "deleted, but its nodes are still seen here: they go when they are seen to");
        }
        Ok(had_nodes)
    }

    /// Ends what is here of a subscriber, and waits for the calls under way. True: there was something.
    async fn end_subscriber(&self, queue: &Queue, name: &str) -> bool {
        let subscription = queue.subscriptions.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.registrations.forget(queue, Some(name));
        let Some(subscription) = subscription else { return false };
        subscription.stop(DELETE_PATIENCE).await;
        subscription.forget();
        true
    }

    /// Removes a checkpoint with what is registered below it. True: it was there.
    async fn delete_checkpoint(&self, path: &str) -> Result<bool, Refusal> {
        match self.coordinator.delete(path, None).await {
            Ok(()) => Ok(true),
            Err(CoordinationError::NoNode(_)) => Ok(false),
            Err(CoordinationError::NotEmpty(_)) => {
                delete_tree(&*self.coordinator, path).await?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn delete_node(&self, path: &str) -> Result<bool, Refusal> {
        match self.coordinator.delete(path, None).await {
            Ok(()) => Ok(true),
            Err(CoordinationError::NoNode(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn exists(queue: &Queue, name: &str) -> Refusal {
    Refusal::new(
        TErrorCode::EXISTS,
        format!(
            "subscriber {name} of queue {} exists already: set_subscriber changes its options, for another address it is deleted first",
            queue.name
        ),
    )
}

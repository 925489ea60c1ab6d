//! What belongs to other brokers: which one has a partition, and the part of a command that it has to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue_coordination::{CoordinationError, NodeKind, create_all};
use hqueue_protocol::client::{ClientError, RpcClient};
use hqueue_protocol::generated::{TClusterStatus, TErrorCode, TQueueStatus, TSubscriberSpec};
use hqueue_protocol::position::{Position, text_of_id};
use hqueue_protocol::rpc::{
    AddSubscriber, AddSubscriberArgs, ClusterStatus, ClusterStatusArgs, DeleteSubscriber, DeleteSubscriberArgs, Method,
    QueueStatus, QueueStatusArgs, Renew, RenewArgs, TruncateQueue, TruncateQueueArgs, Unsubscribe, UnsubscribeArgs,
};

use super::catalog::Catalog;
use super::queue::Queue;
use super::subscribers::{NewSubscriber, write_checkpoint};
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{Checkpoint, before};
use crate::time::Moment;

/// For a status: one that does not answer is shown as that.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);

/// How long a put waits for a partition that is about to be claimed.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);

/// Who serves a partition.
#[derive(Clone, Debug)]
pub enum Route {
    Here,
    /// The broker at this address.
    At(String),
    /// Nobody at present; says why.
    Offline(String),
}

impl Catalog {
    /// Who serves a partition of a queue now.
    #[must_use]
    pub fn route(&self, queue: &Queue, partition: i16) -> Route {
        if queue.ownership.held(partition).is_some() {
            return Route::Here;
        }
        let place = || format!("partition {partition} of queue {} is offline", queue.name);
        let Some(cluster) = &self.cluster else { return Route::Offline(format!("{}: the broker is stopping", place())) };
        let Some(broker) = queue.assignment().and_then(|a| a.broker_of(partition).cloned()) else {
            return Route::Offline(format!("{}: no broker has it yet", place()));
        };
        if *broker == *cluster.members.name() {
            let why = if self.lease.session().is_none() {
                "this broker has it, but is cut off from ZooKeeper and may not act"
            } else {
                "this broker has it, but does not hold it yet"
            };
            return Route::Offline(format!("{}: {why}", place()));
        }
        match cluster.members.brokers().get(&*broker) {
            Some(info) => Route::At(info.address.clone()),
            None => Route::Offline(format!("{}: its broker {broker} is away", place())),
        }
    }

    /// Where a partition's data is, be it held at this moment or not.
    #[must_use]
    pub fn is_here(&self, queue: &Queue, partition: i16) -> bool {
        match &self.cluster {
            None => true,
            Some(cluster) => {
                queue.assignment().is_some_and(|a| a.broker_of(partition).is_some_and(|b| **b == *cluster.members.name()))
            }
        }
    }

    /// The partition is given to us, and nothing is known to keep us from claiming it.
    #[must_use]
    pub fn is_claiming(&self, queue: &Queue, partition: i16) -> bool {
        self.cluster.is_some() && self.lease.session().is_some() && self.is_here(queue, partition)
    }

    /// Waits a moment for a partition that is about to be claimed: who makes a queue sees the owner's node before the owner has
    /// its answer. True: it is ours.
    pub async fn until_held(&self, queue: &Queue, partition: i16) -> bool {
        let held = || queue.ownership.held(partition).is_some().then_some(());
        self.until(CLAIM_PATIENCE, held).await.is_some()
    }

    /// Waits a moment for a partition that somebody is about to serve. True: somebody does.
    pub async fn until_served(&self, queue: &Queue, partition: i16) -> bool {
        let served = || (!matches!(self.route(queue, partition), Route::Offline(_))).then_some(());
        self.until(CLAIM_PATIENCE, served).await.is_some()
    }

    /// Waits a moment until a partition is at another broker than the one at `address`, which does not answer. `None`: it is not, or it is
    /// here.
    pub async fn until_elsewhere(&self, queue: &Queue, partition: i16, address: &str) -> Option<String> {
        let there = || match self.route(queue, partition) {
            Route::At(other) if other != address => Some(Some(other)),
            Route::Here => Some(None),
            Route::At(_) | Route::Offline(_) => None,
        };
        self.until(CLAIM_PATIENCE, there).await.flatten()
    }

    /// It may be served in a moment: it is given to us, or, where brokers share the store, will be given to one of them.
    #[must_use]
    pub fn is_awaited(&self, queue: &Queue, partition: i16) -> bool {
        self.is_claiming(queue, partition) || (self.is_shared() && self.lease.session().is_some())
    }

    /// The other brokers that are there: name and address.
    #[must_use]
    pub fn others(&self) -> Vec<(String, String)> {
        let Some(cluster) = &self.cluster else { return Vec::new() };
        let brokers = cluster.members.brokers();
        let others = brokers.iter().filter(|(name, _)| *name != cluster.members.name());
        others.map(|(name, info)| (name.clone(), info.address.clone())).collect()
    }

    /// The client of another broker. There is none without a cluster.
    pub fn peer(&self, address: &str) -> Result<RpcClient, Refusal> {
        match &self.cluster {
            Some(cluster) => Ok(cluster.peers.client(address)),
            None => Err(Refusal::new(TErrorCode::OFFLINE, "there are no other brokers")),
        }
    }

    /// Has every other broker do its part of a command.
    pub(super) async fn at_others<M: Method>(
        &self,
        args: &M::Args,
        patience: Duration,
    ) -> Vec<(String, Result<M::Success, Refusal>)>
    where
        M::Args: Sync,
    {
        let calls = self.others().into_iter().map(|(name, address)| async move {
            let result = match self.peer(&address) {
                Ok(peer) => peer.with_call_timeout(patience).call_owner::<M>(args).await.map_err(|e| of_peer(&name, e)),
                Err(refusal) => Err(refusal),
            };
            (name, result)
        });
        stream::iter(calls).buffer_unordered(16).collect().await
    }

    /// Has the owners of these partitions write the first checkpoints. Of one that is away the position is written as far as it can be
    /// told without it: `latest` is fixed when it is back.
    pub(super) async fn checkpoints_elsewhere(
        &self,
        queue: &Queue,
        name: &str,
        positions: Vec<(i16, Position)>,
    ) -> Result<(), Refusal> {
        let mut at: BTreeMap<(String, String), (Position, Vec<i16>)> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (partition, position) in positions {
            let position = fixed(position);
            match self.route(queue, partition) {
                Route::At(address) => {
                    let same = at.entry((address, text(position))).or_insert_with(|| (position, Vec::new()));
                    same.1.push(partition);
                }
                // Held since a moment ago: as for one that is away.
                Route::Here | Route::Offline(_) => unknown.push((partition, position)),
            }
        }
        for ((address, text), (position, partitions)) in at {
            let spec = TSubscriberSpec {
                name: Some(name.as_bytes().to_vec()),
                addresses: Some(Vec::new()),
                topics: Some(Vec::new()),
                partitions: Some(partitions.clone()),
                start_position: Some(text),
                options: Some(BTreeMap::new()),
            };
            let args = AddSubscriberArgs { queue_name: queue.name.as_str().as_bytes().to_vec(), spec };
            match self.peer(&address)?.call_owner::<AddSubscriber>(&args).await {
                Ok(()) => {}
                // Its node stands until its session ends, but it is away.
                Err(error) if was_not_sent(&error) => unknown.extend(partitions.into_iter().map(|p| (p, position))),
                Err(error) => return Err(of_peer(&address, error)),
            }
        }
        stream::iter(unknown)
            .map(|(partition, position)| self.unresolved_checkpoint(queue, name, partition, position))
            .buffer_unordered(16)
            .try_collect()
            .await
    }

    async fn unresolved_checkpoint(&self, queue: &Queue, name: &str, partition: i16, position: Position) -> Result<(), Refusal> {
        let payload = match position {
            Position::Latest => Vec::new(),
            position => {
                let from = position.resolve(Moment::now().0, None);
                Checkpoint::first(before(from)).to_payload()
            }
        };
        create_all(&*self.coordinator, &paths::partition(queue.name.as_str(), partition)).await?;
        let path = paths::checkpoint(queue.name.as_str(), partition, name);
        match self.coordinator.create(&path, &payload, NodeKind::Persistent).await {
            Ok(_) | Err(CoordinationError::NodeExists(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends a subscriber at the other brokers, and waits for the calls under way there. True: there was something.
    pub(super) async fn end_subscriber_elsewhere(&self, queue: &Queue, name: &str) -> Result<bool, Refusal> {
        let args =
            DeleteSubscriberArgs { queue_name: queue.name.as_str().as_bytes().to_vec(), subscriber: name.as_bytes().to_vec() };
        let mut any = false;
        for (broker, result) in self.at_others::<DeleteSubscriber>(&args, Duration::from_secs(20)).await {
            match result {
                Ok(()) => any = true,
                Err(refusal) if refusal.code == TErrorCode::NOT_FOUND => {}
                // It will see that the nodes are gone.
                Err(refusal) => tracing::warn!(broker, "{refusal}"),
            }
        }
        Ok(any)
    }

    /// Removes all messages of a queue, wherever its partitions are.
    pub async fn truncate_everywhere(&self, queue: &Arc<Queue>) -> Result<(), Refusal> {
        if let Some(hbase) = self.hbase.as_ref().filter(|_| self.is_shared()) {
            return self.empty_shared(hbase, queue).await;
        }
        let away = (0..queue.partitions()).find_map(|p| match self.route(queue, p) {
            Route::Offline(reason) => Some(reason),
            Route::Here | Route::At(_) => None,
        });
        if let Some(reason) = away {
            return Err(Refusal::new(TErrorCode::OFFLINE, format!("nothing is truncated: {reason}")));
        }
        self.truncate(queue).await?;
        let args = TruncateQueueArgs { queue_name: queue.name.as_str().as_bytes().to_vec() };
        for (_, result) in self.at_others::<TruncateQueue>(&args, Duration::from_secs(60)).await {
            result?;
        }
        Ok(())
    }

    /// Waits until the other brokers make no more calls for a registration. True: one of them did.
    pub(super) async fn unsubscribe_elsewhere(&self, id: i64) -> bool {
        let args = UnsubscribeArgs { registration_id: id };
        let mut any = false;
        for (broker, result) in self.at_others::<Unsubscribe>(&args, Duration::from_secs(12)).await {
            match result {
                Ok(()) => any = true,
                Err(refusal) if refusal.code == TErrorCode::NOT_FOUND => {}
                Err(refusal) => tracing::warn!(broker, "{refusal}"),
            }
        }
        any
    }

    /// What the other brokers say of a queue.
    pub async fn statuses_elsewhere(&self, queue: &Arc<Queue>) -> Vec<(String, Result<TQueueStatus, Refusal>)> {
        let args = QueueStatusArgs { queue_name: queue.name.as_str().as_bytes().to_vec() };
        self.at_others::<QueueStatus>(&args, STATUS_PATIENCE).await
    }
}

impl Catalog {
    /// What the other brokers say of all queues.
    pub async fn summaries_elsewhere(&self) -> Vec<(String, Result<TClusterStatus, Refusal>)> {
        self.at_others::<ClusterStatus>(&ClusterStatusArgs {}, STATUS_PATIENCE).await
    }

    /// Keeps a registration that another broker has.
    pub async fn renew_elsewhere(&self, id: i64) -> Result<(), ()> {
        let args = RenewArgs { registration_id: id };
        let any = self.at_others::<Renew>(&args, STATUS_PATIENCE).await.into_iter().any(|(_, result)| result.is_ok());
        if any { Ok(()) } else { Err(()) }
    }

    /// Another broker adds a subscriber: writes the first checkpoints of partitions that are held here.
    pub async fn own_checkpoints(&self, queue: &Arc<Queue>, new: &NewSubscriber) -> Result<(), Refusal> {
        let name = new.name.as_str();
        let hidden = queue.hide(name);
        for &partition in &new.record.partitions {
            if let Route::Offline(reason) = self.route(queue, partition)
                && !(self.is_claiming(queue, partition) && self.until_held(queue, partition).await)
            {
                return Err(Refusal::new(TErrorCode::OFFLINE, reason));
            }
            // A call that comes late must not leave anything for the next one of this name.
            if !self.is_being_changed(queue, name).await? {
                let message = format!("the command that adds subscriber {name} to queue {} has ended", queue.name);
                return Err(Refusal::new(TErrorCode::WRONG_STATE, message));
            }
            let id = queue.checkpoint_at(partition, &new.from)?;
            write_checkpoint(self, queue, name, partition, id).await?;
        }
        drop(hidden);
        Ok(())
    }
}

/// Another broker's refusal is ours; what else goes wrong with it is named after it.
pub fn of_peer(broker: &str, error: ClientError) -> Refusal {
    match error {
        ClientError::Refused { code, message } => Refusal::new(code, message),
        other => Refusal::new(TErrorCode::OFFLINE, format!("broker {broker}: {other}")),
    }
}

/// Nothing was sent: the call can go elsewhere.
#[must_use]
pub const fn was_not_sent(error: &ClientError) -> bool {
    matches!(error, ClientError::Connect { .. } | ClientError::Lost { sent: false, .. })
}

/// A position that means the same wherever the clock of the one who reads it stands.
pub(super) fn fixed(position: Position) -> Position {
    match position {
        Position::Ago(_) | Position::Time(_) => Position::Id(position.resolve(Moment::now().0, None)),
        Position::Earliest | Position::Latest | Position::Id(_) => position,
    }
}

pub(super) fn text(position: Position) -> String {
    match position {
        Position::Earliest => "earliest".to_owned(),
        Position::Latest => "latest".to_owned(),
        other => text_of_id(other.resolve(Moment::now().0, None)),
    }
}

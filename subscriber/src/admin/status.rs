//! How things stand.

use bytes::Bytes;
use hqueue_protocol::generated::{
    TBrokerStatus, TClusterStatus, TPartitionStatus, TQueueStatus, TQueueSummary, TSubscriptionStatus,
};
use hqueue_protocol::id::MessageId;

use super::text;
use crate::error::Error;

/// All brokers and queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    pub brokers: Vec<BrokerStatus>,
    pub queues: Vec<QueueSummary>,
    /// What is wrong with coordination, as the broker that was asked sees it.
    pub trouble: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerStatus {
    pub name: String,
    /// `host:port`.
    pub address: String,
    /// `online`, or `offline`: it has partitions and is away.
    pub state: String,
    /// Of its session with ZooKeeper, as ZooKeeper's own tools show it.
    pub session: Option<String>,
    /// Partitions that it was given, of all queues; `None` without ZooKeeper.
    pub partitions: Option<i32>,
    /// It gives partitions to brokers.
    pub balancer: bool,
}

/// A queue in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSummary {
    pub name: String,
    pub partitions: i32,
    /// Partitions without an owner that serves them.
    pub offline: i32,
    pub subscriptions: i32,
    /// Of all subscriptions together.
    pub lag_messages: i64,
}

/// A queue with its partitions and subscriptions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueStatus {
    pub name: String,
    /// `enabled` or `disabled`.
    pub state: String,
    pub partitions: Vec<PartitionStatus>,
    pub subscriptions: Vec<SubscriptionStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatus {
    pub partition: i16,
    pub owner: String,
    /// `online` or `offline`.
    pub state: String,
    /// The oldest message that is stored.
    pub first_id: Option<MessageId>,
    /// The newest message.
    pub last_id: Option<MessageId>,
    pub messages: i64,
    pub bytes: i64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubscriptionStatus {
    pub name: String,
    /// `active`, `waiting` (no endpoint), `retrying` or `broken`; later versions may have more.
    pub state: String,
    /// `host:port` of each.
    pub endpoints: Vec<String>,
    /// Empty: all.
    pub topics: Vec<Bytes>,
    /// Messages that it wants and has not finished.
    pub lag_messages: i64,
    /// If not, `lag_messages` is an upper bound.
    pub lag_exact: bool,
    /// Age of the oldest message that it wants and has not finished.
    pub lag_seconds: f64,
    /// Messages in calls that are not answered.
    pub in_flight: i64,
    /// How often the oldest unfinished batch was tried.
    pub attempts: i32,
    pub delivered: i64,
    pub failed: i64,
    /// Messages that it wanted and that expired before.
    pub expired_messages: i64,
    pub dead_lettered: i64,
    pub last_error: Option<String>,
    /// RFC 3339.
    pub last_error_time: Option<String>,
    /// Per partition, in order: everything wanted up to there is finished.
    pub checkpoints: Vec<(i16, MessageId)>,
}

impl From<TClusterStatus> for ClusterStatus {
    fn from(status: TClusterStatus) -> Self {
        Self {
            brokers: status.brokers.unwrap_or_default().into_iter().map(BrokerStatus::from).collect(),
            queues: status.queues.unwrap_or_default().into_iter().map(QueueSummary::from).collect(),
            trouble: status.trouble,
        }
    }
}

impl From<TBrokerStatus> for BrokerStatus {
    fn from(broker: TBrokerStatus) -> Self {
        Self {
            name: broker.name.unwrap_or_default(),
            address: broker.address.unwrap_or_default(),
            state: broker.state.unwrap_or_default(),
            session: broker.session,
            partitions: broker.partitions,
            balancer: broker.balancer.unwrap_or_default(),
        }
    }
}

impl From<TQueueSummary> for QueueSummary {
    fn from(queue: TQueueSummary) -> Self {
        Self {
            name: text(queue.name),
            partitions: queue.partitions.unwrap_or_default(),
            offline: queue.offline.unwrap_or_default(),
            subscriptions: queue.subscriptions.unwrap_or_default(),
            lag_messages: queue.lag_messages.unwrap_or_default(),
        }
    }
}

impl QueueStatus {
    pub(super) fn read(queue: TQueueStatus) -> Result<Self, Error> {
        let partitions = queue.partitions.unwrap_or_default().into_iter().map(PartitionStatus::read);
        let subscriptions = queue.subscriptions.unwrap_or_default().into_iter().map(SubscriptionStatus::read);
        Ok(Self {
            name: text(queue.name),
            state: queue.state.unwrap_or_default(),
            partitions: partitions.collect::<Result<_, _>>()?,
            subscriptions: subscriptions.collect::<Result<_, _>>()?,
        })
    }
}

impl PartitionStatus {
    fn read(partition: TPartitionStatus) -> Result<Self, Error> {
        Ok(Self {
            partition: partition.partition.unwrap_or_default(),
            owner: partition.owner.unwrap_or_default(),
            state: partition.state.unwrap_or_default(),
            first_id: partition.first_i_d.as_deref().map(id).transpose()?,
            last_id: partition.last_i_d.as_deref().map(id).transpose()?,
            messages: partition.messages.unwrap_or_default(),
            bytes: partition.bytes.unwrap_or_default(),
        })
    }
}

impl SubscriptionStatus {
    pub(super) fn read(status: TSubscriptionStatus) -> Result<Self, Error> {
        let checkpoints = status.checkpoints.unwrap_or_default().into_iter();
        Ok(Self {
            name: text(status.name),
            state: status.state.unwrap_or_default(),
            endpoints: status.endpoints.unwrap_or_default(),
            topics: status.topics.unwrap_or_default().into_iter().map(Bytes::from).collect(),
            lag_messages: status.lag_messages.unwrap_or_default(),
            lag_exact: status.lag_exact.unwrap_or(true),
            lag_seconds: status.lag_seconds.unwrap_or_default().into_inner(),
            in_flight: status.in_flight.unwrap_or_default(),
            attempts: status.attempts.unwrap_or_default(),
            delivered: status.delivered.unwrap_or_default(),
            failed: status.failed.unwrap_or_default(),
            expired_messages: status.expired_messages.unwrap_or_default(),
            dead_lettered: status.dead_lettered.unwrap_or_default(),
            last_error: status.last_error,
            last_error_time: status.last_error_time,
            checkpoints: checkpoints
                .map(|c| Ok((c.partition.unwrap_or_default(), id(c.id.as_deref().unwrap_or_default())?)))
                .collect::<Result<_, Error>>()?,
        })
    }
}

fn id(text: &str) -> Result<MessageId, Error> {
    text.parse().map_err(|error| Error::bad_reply("a status", error))
}

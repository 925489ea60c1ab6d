//! The objects that `--format json` prints, field by field in the order in which they stand there.

use std::collections::BTreeMap;

use hqueue::{BrokerStatus, ClusterStatus, PartitionStatus, QueueDescription, QueueStatus, QueueSummary, SubscriptionStatus};
use serde::Serialize;

use super::escaped;
use super::status::rfc3339;

#[derive(Debug, Serialize)]
pub(super) struct Queues<'a> {
    queues: Vec<Queue<'a>>,
}

#[derive(Debug, Serialize)]
struct Queue<'a> {
    name: &'a str,
    partitions: i32,
    ttl_seconds: i64,
    state: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Described<'a> {
    #[serde(flatten)]
    queue: Queue<'a>,
    configuration: &'a BTreeMap<String, String>,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when_full: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_unread: Option<bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stored: &'a BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Cluster<'a> {
    brokers: Vec<Broker<'a>>,
    queues: Vec<Summary<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Broker<'a> {
    name: &'a str,
    address: &'a str,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<i32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    balancer: bool,
}

#[derive(Debug, Serialize)]
struct Summary<'a> {
    name: &'a str,
    partitions: i32,
    offline: i32,
    subscriptions: i32,
    lag_messages: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct Status<'a> {
    name: &'a str,
    state: &'a str,
    partitions: Vec<Partition<'a>>,
    subscriptions: Vec<Subscription<'a>>,
}

#[derive(Debug, Serialize)]
struct Partition<'a> {
    partition: i16,
    owner: &'a str,
    state: &'a str,
    first_id: Option<String>,
    last_id: Option<String>,
    messages: i64,
    bytes: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct Subscribers<'a> {
    subscribers: Vec<Subscription<'a>>,
}

#[derive(Debug, Serialize)]
struct Subscription<'a> {
    name: &'a str,
    state: &'a str,
    endpoints: &'a [String],
    topics: Vec<String>,
    lag_messages: i64,
    /// Said only if it is not.
    #[serde(skip_serializing_if = "is_true")]
    lag_exact: bool,
    lag_seconds: f64,
    in_flight: i64,
    attempts: i32,
    delivered: i64,
    failed: i64,
    expired_messages: i64,
    dead_lettered: i64,
    last_error: Option<&'a str>,
    last_error_time: Option<&'a str>,
    checkpoints: Vec<Checkpoint>,
}

#[derive(Debug, Serialize)]
struct Checkpoint {
    partition: i16,
    id: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

impl<'a> From<&'a QueueDescription> for Queue<'a> {
    fn from(queue: &'a QueueDescription) -> Self {
        let QueueDescription { name, partitions, ttl_seconds, state, .. } = queue;
        Self { name, partitions: *partitions, ttl_seconds: *ttl_seconds, state }
    }
}

impl<'a> From<&'a [QueueDescription]> for Queues<'a> {
    fn from(queues: &'a [QueueDescription]) -> Self {
        Self { queues: queues.iter().map(Queue::from).collect() }
    }
}

impl<'a> From<&'a QueueDescription> for Described<'a> {
    fn from(queue: &'a QueueDescription) -> Self {
        let QueueDescription { configuration, created_ms, max_bytes, when_full, keep_unread, stored, .. } = queue;
        let (max_bytes, keep_unread) = (*max_bytes, *keep_unread);
        let when_full = when_full.as_deref();
        Self { queue: queue.into(), configuration, created: rfc3339(*created_ms), max_bytes, when_full, keep_unread, stored }
    }
}

impl<'a> From<&'a ClusterStatus> for Cluster<'a> {
    fn from(status: &'a ClusterStatus) -> Self {
        Self {
            brokers: status.brokers.iter().map(Broker::from).collect(),
            queues: status.queues.iter().map(Summary::from).collect(),
            trouble: status.trouble.as_deref(),
        }
    }
}

impl<'a> From<&'a BrokerStatus> for Broker<'a> {
    fn from(broker: &'a BrokerStatus) -> Self {
        let BrokerStatus { name, address, state, session, partitions, balancer } = broker;
        Self { name, address, state, session: session.as_deref(), partitions: *partitions, balancer: *balancer }
    }
}

impl<'a> From<&'a QueueSummary> for Summary<'a> {
    fn from(queue: &'a QueueSummary) -> Self {
        let QueueSummary { name, partitions, offline, subscriptions, lag_messages } = queue;
        let (partitions, offline, subscriptions) = (*partitions, *offline, *subscriptions);
        Self { name, partitions, offline, subscriptions, lag_messages: *lag_messages }
    }
}

impl<'a> From<&'a QueueStatus> for Status<'a> {
    fn from(queue: &'a QueueStatus) -> Self {
        Self {
            name: &queue.name,
            state: &queue.state,
            partitions: queue.partitions.iter().map(Partition::from).collect(),
            subscriptions: queue.subscriptions.iter().map(Subscription::from).collect(),
        }
    }
}

impl<'a> From<&'a PartitionStatus> for Partition<'a> {
    fn from(partition: &'a PartitionStatus) -> Self {
        Self {
            partition: partition.partition,
            owner: &partition.owner,
            state: &partition.state,
            first_id: partition.first_id.map(|id| id.to_string()),
            last_id: partition.last_id.map(|id| id.to_string()),
            messages: partition.messages,
            bytes: partition.bytes,
        }
    }
}

impl<'a> From<&'a [SubscriptionStatus]> for Subscribers<'a> {
    fn from(subscribers: &'a [SubscriptionStatus]) -> Self {
        Self { subscribers: subscribers.iter().map(Subscription::from).collect() }
    }
}

impl<'a> From<&'a SubscriptionStatus> for Subscription<'a> {
    fn from(s: &'a SubscriptionStatus) -> Self {
        Self {
            name: &s.name,
            state: &s.state,
            endpoints: &s.endpoints,
            topics: s.topics.iter().map(|topic| escaped(topic).into_owned()).collect(),
            lag_messages: s.lag_messages,
            lag_exact: s.lag_exact,
            lag_seconds: s.lag_seconds,
            in_flight: s.in_flight,
            attempts: s.attempts,
            delivered: s.delivered,
            failed: s.failed,
            expired_messages: s.expired_messages,
            dead_lettered: s.dead_lettered,
            last_error: s.last_error.as_deref(),
            last_error_time: s.last_error_time.as_deref(),
            checkpoints: s
                .checkpoints
                .iter()
                .map(|(partition, id)| Checkpoint { partition: *partition, id: id.to_string() })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hqueue::MessageId;

    use super::*;

    #[test]
    fn a_subscription_has_every_field() {
        let status = SubscriptionStatus {
            name: "s".to_owned(),
            topics: vec![b"a\xff".to_vec().into()],
            lag_exact: true,
            checkpoints: vec![(2, MessageId::new(5, 6))],
            ..SubscriptionStatus::default()
        };
        let text = serde_json::to_string(&Subscription::from(&status)).unwrap();
        assert_eq!(
            text,
            "{\"name\":\"s\",\"state\":\"\",\"endpoints\":[],\"topics\":[\"a\\\\xff\"],\"lag_messages\":0,\"lag_seconds\":0.0,\
             \"in_flight\":0,\"attempts\":0,\"delivered\":0,\"failed\":0,\"expired_messages\":0,\"dead_lettered\":0,\
             \"last_error\":null,\"last_error_time\":null,\"checkpoints\":[{\"partition\":2,\"id\":\"5:6\"}]}"
        );
        let bound = SubscriptionStatus { lag_exact: false, ..status };
        assert!(serde_json::to_string(&Subscription::from(&bound)).unwrap().contains("\"lag_exact\":false"));
    }

    #[test]
    fn a_queue_is_described_with_its_time() {
        let queue = QueueDescription { name: "q".to_owned(), created_ms: 1_700_000_000_123, ..QueueDescription::default() };
        assert_eq!(
            serde_json::to_string(&Described::from(&queue)).unwrap(),
            "{\"name\":\"q\",\"partitions\":0,\"ttl_seconds\":0,\"state\":\"\",\"configuration\":{},\
             \"created\":\"2023-11-14T22:13:20.123Z\"}"
        );
        let limited =
            QueueDescription { max_bytes: Some(5), when_full: Some("drop_oldest".into()), keep_unread: Some(false), ..queue };
        let text = serde_json::to_string(&Described::from(&limited)).unwrap();
        assert!(text.ends_with("\"max_bytes\":5,\"when_full\":\"drop_oldest\",\"keep_unread\":false}"), "{text}");
    }
}

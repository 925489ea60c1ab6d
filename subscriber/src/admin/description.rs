//! A queue as it was made.

use std::collections::BTreeMap;

use hqueue_protocol::generated::TQueueDescription;

/// A queue as it was made, and its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueDescription {
    pub name: String,
    pub partitions: i32,
    /// How long a message is kept.
    pub ttl_seconds: i64,
    /// `enabled` or `disabled`.
    pub state: String,
    pub configuration: BTreeMap<String, String>,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// What of the configuration has no effect on the store in use.
    pub notices: Vec<String>,
    /// Bytes of messages that the queue may have. `None`: as many as fit on the disk.
    pub max_bytes: Option<i64>,
    /// With a limit: `reject` or `drop_oldest`.
    pub when_full: Option<String>,
    /// With a limit: is what subscriptions have not consumed kept?
    pub keep_unread: Option<bool>,
    /// What HBase has of it, where messages are there: table, regions, TTL, compression, attributes. Empty in a list of queues.
    pub stored: BTreeMap<String, String>,
}

impl From<TQueueDescription> for QueueDescription {
    fn from(queue: TQueueDescription) -> Self {
        Self {
            name: super::text(queue.name),
            partitions: queue.partitions.unwrap_or_default(),
            ttl_seconds: queue.ttl_seconds.unwrap_or_default(),
            state: queue.state.unwrap_or_default(),
            configuration: queue.configuration.unwrap_or_default(),
            created_ms: queue.created_ms.unwrap_or_default(),
            notices: queue.notices.unwrap_or_default(),
            max_bytes: queue.max_bytes,
            when_full: queue.when_full,
            keep_unread: queue.keep_unread,
            stored: queue.stored.unwrap_or_default(),
        }
    }
}

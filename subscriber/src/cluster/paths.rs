//! Where things stand in coordination; `zk-layout.md` describes the nodes.

pub(crate) const BROKERS: &str = "/brokers";

pub(crate) fn queue(queue: &str) -> String {
    format!("/queues/{queue}")
}

/// The options of a subscription.
pub(crate) fn options(queue: &str, subscriber: &str) -> String {
    format!("/queues/{queue}/subscribers/{subscriber}")
}

pub(crate) fn partition(queue: &str, partition: i16) -> String {
    format!("/queues/{queue}/{partition}")
}

/// The checkpoint; who is registered stands below.
pub(crate) fn subscriber(queue: &str, partition: i16, subscriber: &str) -> String {
    format!("/queues/{queue}/{partition}/{subscriber}")
}

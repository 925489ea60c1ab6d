//! Where things stand in coordination; `zk-layout.md` describes the nodes.

pub const BROKERS: &str = "/brokers";
pub const QUEUES: &str = "/queues";

#[must_use]
pub fn broker(name: &str) -> String {
    format!("{BROKERS}/{name}")
}

#[must_use]
pub fn queue(queue: &str) -> String {
    format!("{QUEUES}/{queue}")
}

#[must_use]
pub fn subscribers(queue: &str) -> String {
    format!("{QUEUES}/{queue}/subscribers")
}

#[must_use]
pub fn subscriber(queue: &str, subscriber: &str) -> String {
    format!("{QUEUES}/{queue}/subscribers/{subscriber}")
}

#[must_use]
pub fn partition(queue: &str, partition: i16) -> String {
    format!("{QUEUES}/{queue}/{partition}")
}

#[must_use]
pub fn checkpoint(queue: &str, partition: i16, subscriber: &str) -> String {
    format!("{QUEUES}/{queue}/{partition}/{subscriber}")
}

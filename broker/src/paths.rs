//! Where things stand in coordination; `zk-layout.md` describes the nodes.

pub const BROKERS: &str = "/brokers";
pub const QUEUES: &str = "/queues";
pub const BALANCER: &str = "/balancer";
pub const MARKS: &str = "/marks";
pub const EMPTYING: &str = "/emptying";
/// Which store the brokers keep messages in.
pub const STORE: &str = "/store";
/// The name of a partition's owner node, which no subscriber may have.
pub const OWNER: &str = "owner";

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

/// Where a candidate stands; a number is put behind it.
#[must_use]
pub fn candidate() -> String {
    format!("{BALANCER}/n-")
}

#[must_use]
pub fn assignment(queue: &str) -> String {
    format!("{QUEUES}/{queue}/assignment")
}

/// Up to where a broker may have given ids, in a store that brokers share.
#[must_use]
pub fn mark(broker: &str) -> String {
    format!("{MARKS}/{broker}")
}

/// While it stands no broker owns a partition of the queue: somebody empties or removes its table. Not below the queue's node, which goes
/// while this stands.
#[must_use]
pub fn emptying(queue: &str) -> String {
    format!("{EMPTYING}/{queue}")
}

/// Below it stands who changes which subscriber at this moment.
#[must_use]
pub fn changing(queue: &str) -> String {
    format!("{QUEUES}/{queue}/changing")
}

#[must_use]
pub fn changing_subscriber(queue: &str, subscriber: &str) -> String {
    format!("{QUEUES}/{queue}/changing/{subscriber}")
}

#[must_use]
pub fn owner(queue: &str, partition: i16) -> String {
    format!("{QUEUES}/{queue}/{partition}/{OWNER}")
}

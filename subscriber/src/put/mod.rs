//! Putting messages: one, a batch, or many at once through a [`Producer`].

mod args;
mod gather;
mod outcome;
mod producer;
mod result;

pub(crate) use self::args::{ANY_PARTITION, PutArgs};
pub use self::outcome::PendingPut;
pub use self::producer::{Producer, ProducerOptions};
pub(crate) use self::result::read_put_result;

use bytes::Bytes;
use hqueue_protocol::id::MessageId;

/// A message to be put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// 1 to 255 bytes.
    pub topic: Bytes,
    /// 0 bytes to the broker's `max_message_bytes` (4 MiB unless set).
    pub value: Bytes,
    /// For the applications; the broker keeps them as they are.
    pub headers: Vec<(String, Bytes)>,
}

impl NewMessage {
    #[must_use]
    pub fn new(topic: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), value: value.into(), headers: Vec::new() }
    }

    /// Adds a header. Names are unique in a message: of two with one name the last counts for most readers.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// Which partition a message is put into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A random one, chosen by the broker for each put, or for each batch that a producer gathers.
    Any,
    /// This one, 0 to the queue's partitions - 1.
    Partition(i16),
    /// That of a key, so that all messages of the key stay in order: [`partition_of_key`](crate::partition_of_key).
    Key(Bytes),
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub partition: i16,
    pub id: MessageId,
}

/// Where the messages of a batch are: all in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedBatch {
    pub partition: i16,
    /// In the order of the messages.
    pub ids: Vec<MessageId>,
}

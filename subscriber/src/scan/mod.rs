//! Reading what is stored.

mod combined;
mod partition;

pub use self::combined::{CombinedPartitionScanner, QueueScanner};
pub use self::partition::PartitionScanner;

use bytes::Bytes;
use hqueue_protocol::generated::{TMessageID, TMessageScan};
use hqueue_protocol::id::MessageId;

/// Which messages a scanner returns. [`Default`]: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The first id wanted, inclusive. `None`: from the oldest message.
    pub start: Option<MessageId>,
    /// The first id no longer wanted. `None`: to the newest message.
    pub stop: Option<MessageId>,
    /// Only messages of these topics. Empty: all.
    pub topics: Vec<Bytes>,
}

impl Scan {
    /// All messages.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// From this id on.
    #[must_use]
    pub fn from(mut self, start: MessageId) -> Self {
        self.start = Some(start);
        self
    }

    /// Up to the message before this id.
    #[must_use]
    pub fn until(mut self, stop: MessageId) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Only this topic, and others that are added.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<Bytes>) -> Self {
        self.topics.push(topic.into());
        self
    }

    fn on_the_wire(&self, start: Option<MessageId>) -> TMessageScan {
        let id = |id: MessageId| TMessageID::new(id.timestamp, id.sequence);
        let topics = (!self.topics.is_empty()).then(|| self.topics.iter().map(|t| t.to_vec()).collect());
        TMessageScan { start_i_d: start.map(id), stop_i_d: self.stop.map(id), topics }
    }
}

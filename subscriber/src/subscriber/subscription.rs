//! What a subscriber wants.

use std::collections::BTreeMap;

use bytes::Bytes;
use hqueue_protocol::duration;
use hqueue_protocol::generated::TRegistration;
use hqueue_protocol::position::{Position, text_of_id};

/// What a subscriber wants of a queue. Made of a name; wants everything, from now on, until told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The subscriber's name. Processes with the same name share the messages; how far it came is kept under it.
    pub name: String,
    /// Only messages of these topics. Empty: all.
    pub topics: Vec<Bytes>,
    /// Only these partitions, each with the position at which it begins if the name is new. Empty: all partitions.
    pub partitions: BTreeMap<i16, Option<Position>>,
    /// Where partitions begin that have no position of their own, if the name is new. Default `latest`.
    pub start: Position,
}

impl Subscription {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), topics: Vec::new(), partitions: BTreeMap::new(), start: Position::Latest }
    }

    /// Wants this topic, and others that are added.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<Bytes>) -> Self {
        self.topics.push(topic.into());
        self
    }

    /// Wants this partition, and others that are added.
    #[must_use]
    pub fn partition(mut self, partition: i16) -> Self {
        self.partitions.insert(partition, None);
        self
    }

    /// Wants this partition, and begins there if the subscriber's name is new.
    #[must_use]
    pub fn partition_from(mut self, partition: i16, start: Position) -> Self {
        self.partitions.insert(partition, Some(start));
        self
    }

    /// Begins there if the subscriber's name is new.
    #[must_use]
    pub fn from(mut self, start: Position) -> Self {
        self.start = start;
        self
    }

    /// An endpoint of this subscription at `address`, which speaks framed binary: the broker need not find out.
    pub(super) fn registration(&self, address: String) -> TRegistration {
        let own: BTreeMap<i16, String> =
            self.partitions.iter().filter_map(|(p, start)| Some((*p, position_text((*start)?)))).collect();
        TRegistration {
            subscriber: Some(self.name.clone().into_bytes()),
            address: Some(address),
            topics: Some(self.topics.iter().map(|t| t.to_vec()).collect()),
            partitions: Some(self.partitions.keys().copied().collect()),
            start_position: Some(position_text(self.start)),
            partition_start_positions: (!own.is_empty()).then_some(own),
            transport: Some("framed".to_owned()),
            protocol: Some("binary".to_owned()),
        }
    }
}

/// A position as a broker reads it.
pub(crate) fn position_text(position: Position) -> String {
    match position {
        Position::Earliest => "earliest".to_owned(),
        Position::Latest => "latest".to_owned(),
        Position::Id(id) => text_of_id(id),
        // As an id: small numbers of milliseconds alone are taken for seconds and refused.
        Position::Time(ms) => format!("{}:0", ms.max(0)),
        Position::Ago(ago) => format!("-{}", duration::format(ago)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hqueue_protocol::id::MessageId;

    use super::*;

    #[test]
    fn positions_are_read_back() {
        for position in [
            Position::Earliest,
            Position::Latest,
            Position::Id(MessageId::new(1_700_000_000_000, 12)),
            Position::Id(MessageId::new(14, 15)),
            Position::Ago(Duration::from_millis(90_500)),
            Position::Ago(Duration::from_secs(600)),
        ] {
            assert_eq!(position_text(position).parse(), Ok(position), "{position:?}");
        }
        assert_eq!(position_text(Position::Time(-5)).parse(), Ok(Position::Id(MessageId::MIN)));
    }

    #[test]
    fn a_registration_says_everything() {
        let wanted = Subscription::new("s").topic("a").partition(3).partition_from(1, Position::Earliest);
        let sent = wanted.registration("host:1".to_owned());
        assert_eq!(sent.partitions, Some(vec![1, 3]));
        assert_eq!(sent.partition_start_positions, Some(BTreeMap::from([(1, "earliest".to_owned())])));
        assert_eq!(sent.start_position.as_deref(), Some("latest"));
        assert_eq!((sent.topics, sent.address), (Some(vec![b"a".to_vec()]), Some("host:1".to_owned())));
    }
}

//! What has to hold of the messages that a subscriber accepted.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::{Id, Message};

/// Messages by partition, in the order in which they came.
#[must_use]
pub fn by_partition(messages: &[Message]) -> BTreeMap<i16, Vec<&Message>> {
    let mut partitions: BTreeMap<i16, Vec<&Message>> = BTreeMap::new();
    for message in messages {
        partitions.entry(message.partition).or_default().push(message);
    }
    partitions
}

/// Checks that accepted messages came in order within each partition. They may begin again further back (at the checkpoint, after a
/// crash) but never leave one out: behind each message stands the next one, or one that was there before. Returns how many
/// came more than once.
///
/// # Panics
/// At the first message that came too early, and if one id came with two contents.
#[track_caller]
pub fn check_order(messages: &[Message]) -> usize {
    let mut duplicates = 0;
    for (partition, came) in by_partition(messages) {
        let ids: BTreeSet<Id> = came.iter().map(|m| m.id).collect();
        let place: BTreeMap<Id, usize> = ids.iter().enumerate().map(|(n, id)| (*id, n)).collect();
        duplicates += came.len() - ids.len();
        let mut next = 0;
        for message in &came {
            let here = place[&message.id];
            assert!(
                here <= next,
                "partition {partition}: {} came too early: {} others belong before it",
                message.id,
                here - next
            );
            next = here + 1;
        }
        check_contents(&came);
    }
    duplicates
}

fn check_contents(came: &[&Message]) {
    let mut contents: BTreeMap<Id, (&[u8], &[u8])> = BTreeMap::new();
    for message in came {
        let content = (message.topic.as_slice(), message.value.as_slice());
        let first = *contents.entry(message.id).or_insert(content);
        assert!(first == content, "partition {}: {} came with two contents", message.partition, message.id);
    }
}

/// Checks that ids rise strictly within each partition, in the order in which the messages stand.
///
/// # Panics
/// At the first one that does not.
#[track_caller]
pub fn check_rising(messages: &[Message]) {
    for (partition, stored) in by_partition(messages) {
        for pair in stored.windows(2) {
            assert!(pair[0].id < pair[1].id, "partition {partition}: {} stands behind {}", pair[1].id, pair[0].id);
        }
    }
}

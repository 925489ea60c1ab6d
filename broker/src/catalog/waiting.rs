//! Why a queue that was made is not served yet: who has to do what first.

use std::collections::BTreeMap;

use hqueue_protocol::generated::TErrorCode;

use super::catalog::Catalog;
use super::queue::Queue;
use crate::refusal::Refusal;

impl Catalog {
    /// The queue is made, and this broker, which was asked, has not opened it in time.
    pub(super) fn not_open(&self, name: &str) -> Refusal {
        let this = self
            .cluster
            .as_ref()
            .map_or_else(|| "this broker".to_owned(), |cluster| format!("broker {}", cluster.members.name()));
        let why = if self.cluster.is_some() && self.lease.session().is_none() {
            "is cut off from ZooKeeper"
        } else if self.queue(name.as_bytes()).is_ok() {
            "is still ending the calls of the queue of this name that was dropped"
        } else {
            "has not come to it: it is opening other queues, removing messages of the dropped one of this name, or its disk is slow"
        };
        slow(&format!("queue {name} is made, but not open yet: it waits for {this}, which {why}"))
    }

    /// The queue is made, and these partitions have no owner in time.
    pub(super) fn not_owned(&self, queue: &Queue, partitions: &[i16]) -> Refusal {
        let (name, count, first) = (&queue.name, partitions.len(), partitions.first().copied().unwrap_or_default());
        let missing =
            if count == 1 { format!("partition {first} has") } else { format!("{count} partitions, the first is {first}, have") };
        let why = self.waits_for(queue, partitions);
        slow(&format!("queue {name} is made, but not open yet, as {missing} no owner: {why}"))
    }

    fn waits_for(&self, queue: &Queue, partitions: &[i16]) -> String {
        let there = self.cluster.as_ref().map(|cluster| cluster.members.brokers()).unwrap_or_default();
        let Some(assignment) = queue.assignment() else {
            let names: Vec<&str> = there.keys().map(String::as_str).collect();
            return format!("no balancer has given them to brokers; brokers that are there: {}", names.join(", "));
        };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for broker in partitions.iter().filter_map(|p| assignment.broker_of(*p)) {
            *counts.entry(broker).or_default() += 1;
        }
        let one = |(broker, count): (&str, usize)| {
            let state = if there.contains_key(broker) { "is there, but has not claimed them" } else { "is away" };
            format!("broker {broker}, which has {count} of them and {state}")
        };
        let brokers: Vec<String> = counts.into_iter().map(one).collect();
        format!("it waits for {}", brokers.join("; for "))
    }
}

/// It is under way, and not done in time.
pub(super) fn slow(what: &str) -> Refusal {
    Refusal::new(TErrorCode::BUSY, format!("{what}; it goes on by itself, see the status and the broker's log"))
}

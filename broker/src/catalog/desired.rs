//! The subscribers of a queue as coordination has them: read, checked, not yet acted upon.

use std::collections::{BTreeMap, BTreeSet};

use hqueue_coordination::{Ended, Node, Watched, child_of};
use hqueue_protocol::id::MessageId;

use super::registered;
use crate::paths;
use crate::subscription::{Checkpoint, EndpointSpec, Readers, SubscriptionRecord, Takes};

/// A subscriber as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredSubscriber {
    /// Its options node; `None`: it has none, it was registered by hand.
    pub record: Option<SubscriptionRecord>,
    /// Of our partitions those that it reads, with the node of its checkpoint.
    pub checkpoints: BTreeMap<i16, Option<Node>>,
    /// The endpoints that are registered, and what each takes.
    pub endpoints: Vec<(EndpointSpec, Takes)>,
    /// What those want, together; `None`: nobody is registered. Empty: all.
    pub topics: Option<Topics>,
    /// What cannot be read, by path.
    pub faults: BTreeMap<String, String>,
}

/// A list of topics; empty: all.
pub type Topics = Vec<Vec<u8>>;

/// Subscribers by name.
pub type Desired = BTreeMap<String, DesiredSubscriber>;

/// Who reads each of our partitions, and from where on as coordination says; from the oldest message on where it says nothing that can be
/// read.
pub fn readers<'a>(desired: &'a Desired, ours: &[i16]) -> BTreeMap<i16, Readers<'a>> {
    let mut all: BTreeMap<i16, Readers<'a>> = ours.iter().map(|p| (*p, Readers::new())).collect();
    for (name, subscriber) in desired {
        for (partition, node) in &subscriber.checkpoints {
            let checkpoint = node.as_ref().and_then(|node| Checkpoint::from_payload(&node.payload, node.version).ok());
            let from = checkpoint.map_or(MessageId::MIN, |checkpoint| checkpoint.id.successor());
            all.entry(*partition).or_default().insert(name, from);
        }
    }
    all
}

/// Reads what there is of a queue of so many partitions, of which `ours` are ours.
pub async fn read(watched: &mut Watched, queue: &str, partitions: i16, ours: &[i16]) -> Result<Desired, Ended> {
    let mut desired = Desired::new();
    read_options(watched, queue, partitions, ours, &mut desired).await?;
    ours.iter().for_each(|p| watched.expect_children(&paths::partition(queue, *p)));
    for &p in ours {
        let names = watched.children(&paths::partition(queue, p)).await?.unwrap_or_default();
        for name in names.into_iter().filter(|name| registered::is_subscriber(name)) {
            desired.entry(name).or_default().checkpoints.entry(p).or_default();
        }
    }
    for (name, subscriber) in &desired {
        for p in subscriber.checkpoints.keys() {
            watched.expect_node(&paths::checkpoint(queue, *p, name));
            watched.expect_children(&paths::checkpoint(queue, *p, name));
        }
    }
    for (name, subscriber) in &mut desired {
        let mut registrations = Registrations::default();
        for (&p, checkpoint) in &mut subscriber.checkpoints {
            let path = paths::checkpoint(queue, p, name);
            *checkpoint = watched.node(&path).await?;
            registrations.read(watched, &path, p, &mut subscriber.faults).await?;
        }
        (subscriber.endpoints, subscriber.topics) = registrations.finish();
    }
    Ok(desired)
}

async fn read_options(
    watched: &mut Watched,
    queue: &str,
    partitions: i16,
    ours: &[i16],
    desired: &mut Desired,
) -> Result<(), Ended> {
    let names = watched.children(&paths::subscribers(queue)).await?.unwrap_or_default();
    names.iter().for_each(|name| watched.expect_node(&paths::subscriber(queue, name)));
    for name in names {
        let path = paths::subscriber(queue, &name);
        let Some(node) = watched.node(&path).await? else { continue };
        let subscriber = desired.entry(name).or_default();
        let record = match serde_json::from_slice::<SubscriptionRecord>(&node.payload) {
            Ok(record) => record,
            Err(error) => {
                subscriber.faults.insert(path, format!("the options cannot be read: {error}"));
                continue;
            }
        };
        if let Err(error) = record.options.check() {
            subscriber.faults.insert(path, error.to_string());
            continue;
        }
        if let Some(p) = record.partitions.iter().find(|p| !(0..partitions).contains(*p)) {
            subscriber.faults.insert(path, format!("there is no partition {p}: the queue has {partitions}"));
            continue;
        }
        let wanted = ours.iter().filter(|p| record.partitions.is_empty() || record.partitions.contains(p));
        subscriber.checkpoints = wanted.map(|p| (*p, None)).collect();
        subscriber.record = Some(record);
    }
    Ok(())
}

/// The registrations of one subscriber, gathered over its partitions.
#[derive(Default)]
struct Registrations {
    takes: BTreeMap<EndpointSpec, BTreeSet<i16>>,
    topics: BTreeSet<Vec<u8>>,
    all_topics: bool,
}

impl Registrations {
    async fn read(
        &mut self,
        watched: &mut Watched,
        path: &str,
        partition: i16,
        faults: &mut BTreeMap<String, String>,
    ) -> Result<(), Ended> {
        let names = watched.children(path).await?.unwrap_or_default();
        names.iter().for_each(|name| watched.expect_node(&child_of(path, name)));
        for name in &names {
            let Some(suffix) = registered::suffix(name, "address") else { continue };
            let at = child_of(path, name);
            let Some(node) = watched.node(&at).await? else { continue };
            let spec = match registered::read_address(&node.payload, node.owner_session) {
                Ok(spec) => spec,
                Err(reason) => {
                    faults.insert(at, reason);
                    continue;
                }
            };
            let topics = child_of(path, &format!("topics{suffix}"));
            let payload = watched.node(&topics).await?.map(|node| node.payload).unwrap_or_default();
            match registered::read_topics(&payload) {
                Ok(list) if list.is_empty() => self.all_topics = true,
                Ok(list) => self.topics.extend(list),
                Err(reason) => {
                    // It is not called: nobody knows for what.
                    faults.insert(topics, reason);
                    continue;
                }
            }
            self.takes.entry(spec).or_default().insert(partition);
        }
        Ok(())
    }

    /// What is called, and which topics are wanted.
    fn finish(self) -> (Vec<(EndpointSpec, Takes)>, Option<Topics>) {
        let nobody = self.takes.is_empty();
        let endpoints = self.takes.into_iter().map(|(spec, takes)| (spec, Some(takes.into_iter().collect()))).collect();
        let topics = if self.all_topics { Vec::new() } else { self.topics.into_iter().collect() };
        (endpoints, (!nobody).then_some(topics))
    }
}

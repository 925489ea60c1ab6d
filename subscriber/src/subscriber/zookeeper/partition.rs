//! One partition: how it stands, and making it so.

use std::collections::BTreeSet;

use hqueue_coordination::{CoordinationError, Ended, Node, Watched};

use super::SubscriberZooKeeper;
use super::nodes::{self, Wanted};
use crate::cluster::paths;

/// How a partition stands: the nodes with the plain names, and those with our own.
#[derive(Debug)]
pub(super) struct View {
    pub(super) partition: i16,
    /// Of the subscriber in this partition.
    base: String,
    plain: Pair,
    own: Pair,
    own_suffix: String,
}

/// Topics and address.
#[derive(Debug)]
struct Pair {
    names: [String; 2],
    seen: [Option<Node>; 2],
}

impl Pair {
    fn new(base: &str, suffix: &str) -> Self {
        Self { names: nodes::names(base, suffix), seen: [None, None] }
    }

    async fn read(&mut self, watched: &mut Watched) -> Result<(), Ended> {
        for (name, seen) in self.names.iter().zip(&mut self.seen) {
            *seen = watched.node(name).await?;
        }
        Ok(())
    }
}

impl View {
    pub(super) fn new(queue: &str, partition: i16, subscriber: &str, own_suffix: &str) -> Self {
        let base = paths::subscriber(queue, partition, subscriber);
        let (plain, own) = (Pair::new(&base, ""), Pair::new(&base, own_suffix));
        Self { partition, base, plain, own, own_suffix: own_suffix.to_owned() }
    }

    /// The names of our own matter only where we use them.
    pub(super) fn expect(&self, watched: &mut Watched, own: bool) {
        self.plain.names.iter().for_each(|name| watched.expect_node(name));
        if own {
            self.own.names.iter().for_each(|name| watched.expect_node(name));
        }
    }

    pub(super) async fn read(mut self, watched: &mut Watched, own: bool) -> Result<Self, Ended> {
        self.plain.read(watched).await?;
        if own {
            self.own.read(watched).await?;
        }
        Ok(self)
    }

    /// Makes the nodes what they should be. `placed` are the suffixes with which nodes of ours may stand; returns what they are then.
    pub(super) async fn write(
        &self,
        of: &SubscriberZooKeeper,
        mut placed: BTreeSet<String>,
    ) -> (BTreeSet<String>, Result<(), CoordinationError>) {
        let outcome = match self.place(of, &mut placed).await {
            Ok(suffix) => self.clear(of, &mut placed, suffix).await,
            Err(error) => Err(error),
        };
        (placed, outcome)
    }

    /// Plain names while nobody else has them, else our own. Returns the suffix.
    async fn place(&self, of: &SubscriberZooKeeper, placed: &mut BTreeSet<String>) -> Result<&str, CoordinationError> {
        let free = of.turn.is_first() && self.plain.seen.iter().all(|node| of.sessions.can_have(node.as_ref()));
        if free {
            placed.insert(String::new());
            if self.make_pair(of, &self.plain).await? {
                return Ok("");
            }
        }
        placed.insert(self.own_suffix.clone());
        if self.make_pair(of, &self.own).await? {
            return Ok(&self.own_suffix);
        }
        Err(CoordinationError::NodeExists(format!("{}/address{} of somebody else", self.base, self.own_suffix)))
    }

    /// Topics before the address: nothing is pushed that was not asked for. False: somebody else has one of the names.
    async fn make_pair(&self, of: &SubscriberZooKeeper, pair: &Pair) -> Result<bool, CoordinationError> {
        let payloads = [of.topics_payload.as_slice(), of.address_payload.as_slice()];
        for ((path, seen), payload) in pair.names.iter().zip(&pair.seen).zip(payloads) {
            let wanted = Wanted { path, payload, seen: seen.as_ref() };
            let made = match nodes::make(&**of.coordinator(), &of.sessions, wanted).await {
                Err(CoordinationError::NoNode(_)) => {
                    self.make_place(of).await?;
                    nodes::make(&**of.coordinator(), &of.sessions, Wanted { seen: None, ..wanted }).await?
                }
                other => other?,
            };
            if !made {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The subscriber has no place in this partition.
    async fn make_place(&self, of: &SubscriberZooKeeper) -> Result<(), CoordinationError> {
        let partition = paths::partition(&of.queue, self.partition);
        nodes::make_place(&**of.coordinator(), &partition, &self.base, &of.first_checkpoint(self.partition)).await
    }

    /// Removes what stands elsewhere: left by an earlier session, or from when the plain names were taken.
    async fn clear(&self, of: &SubscriberZooKeeper, placed: &mut BTreeSet<String>, at: &str) -> Result<(), CoordinationError> {
        let others: Vec<String> = placed.iter().filter(|suffix| *suffix != at).cloned().collect();
        for suffix in others {
            let [topics, address] = nodes::names(&self.base, &suffix);
            nodes::remove(&**of.coordinator(), &of.sessions, &address).await?;
            nodes::remove(&**of.coordinator(), &of.sessions, &topics).await?;
            placed.remove(&suffix);
        }
        Ok(())
    }
}

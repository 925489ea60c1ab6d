//! From where on the messages of a partition are still unread by somebody, for queues that keep what is unread.
//!
//! What counts is what coordination says durably. A position that goes up is told to the store once it is stored there; one that goes
//! down is told before anybody counts on it. Until all subscriptions of a partition are known, all of it is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::QueueStore;

/// Who has not read what, in one queue.
#[derive(Debug)]
pub struct Unread {
    store: Arc<dyn QueueStore>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    stamp: u64,
    partitions: BTreeMap<i16, Partition>,
}

#[derive(Debug)]
struct Partition {
    /// Everybody who reads it is in `needs`.
    complete: bool,
    needs: HashMap<String, Need>,
    /// What the store was told last.
    told: MessageId,
}

impl Default for Partition {
    fn default() -> Self {
        Self { complete: false, needs: HashMap::new(), told: MessageId::MIN }
    }
}

#[derive(Clone, Copy, Debug)]
struct Need {
    from: MessageId,
    /// The stamp when the subscription was said to begin.
    since: u64,
}

/// Of one partition those who read it, each with the first message that it has not read.
pub type Readers<'a> = BTreeMap<&'a str, MessageId>;

impl Unread {
    #[must_use]
    pub fn new(store: Arc<dyn QueueStore>) -> Self {
        Self { store, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now coordination is looked at: subscriptions that begin from here on may not be seen there yet.
    pub fn stamp(&self) -> u64 {
        let mut known = self.lock();
        known.stamp += 1;
        known.stamp
    }

    /// A subscription begins, or its checkpoint is replaced: to be said before that is written.
    pub fn begins(&self, partition: i16, subscriber: &str, from: MessageId) {
        let mut known = self.lock();
        let since = known.stamp;
        let of = known.partitions.entry(partition).or_default();
        let need = of.needs.entry(subscriber.to_owned()).or_insert(Need { from, since });
        *need = Need { from: need.from.min(from), since };
        self.tell(partition, of);
    }

    /// Its checkpoint is stored and says that it has not read what lies from here on.
    pub(super) fn stored(&self, partition: i16, subscriber: &str, from: MessageId) {
        self.change(partition, subscriber, |need| need.from = from);
    }

    /// It is about to go back.
    pub(super) fn lowers(&self, partition: i16, subscriber: &str, from: MessageId) {
        self.change(partition, subscriber, |need| need.from = need.from.min(from));
    }

    fn change(&self, partition: i16, subscriber: &str, change: impl FnOnce(&mut Need)) {
        let mut known = self.lock();
        // Of one that nobody knows any more nothing counts.
        let Some(of) = known.partitions.get_mut(&partition) else { return };
        if let Some(need) = of.needs.get_mut(subscriber) {
            change(need);
            self.tell(partition, of);
        }
    }

    /// This stood in coordination, looked at after `stamp`: who is not there is gone, unless it began later, or `is_in_change`. Where we
    /// know already how far somebody is, we know it better. Partitions that are not named are not ours.
    pub fn seen(&self, ours: &BTreeMap<i16, Readers<'_>>, stamp: u64, is_in_change: impl Fn(&str) -> bool) {
        let mut known = self.lock();
        for (partition, of) in &mut known.partitions {
            if !ours.contains_key(partition) {
                of.complete = false;
                of.needs.clear();
                self.tell(*partition, of);
            }
        }
        known.partitions.retain(|partition, _| ours.contains_key(partition));
        for (&partition, readers) in ours {
            let of = known.partitions.entry(partition).or_default();
            of.needs.retain(|name, need| need.since >= stamp || readers.contains_key(name.as_str()) || is_in_change(name));
            for (&name, &from) in readers {
                of.needs.entry(name.to_owned()).or_insert(Need { from, since: 0 });
            }
            of.complete = true;
            self.tell(partition, of);
        }
    }

    /// The subscription is deleted.
    pub fn forget(&self, subscriber: &str) {
        for (partition, of) in &mut self.lock().partitions {
            if of.needs.remove(subscriber).is_some() {
                self.tell(*partition, of);
            }
        }
    }

    /// The partition was not ours a moment ago: others may have moved what stands in coordination.
    pub fn unknown(&self, partition: i16) {
        if let Some(of) = self.lock().partitions.get_mut(&partition) {
            of.complete = false;
            of.needs.clear();
            self.tell(partition, of);
        }
    }

    #[cfg(test)]
    pub(super) fn told(&self, partition: i16) -> MessageId {
        self.lock().partitions.get(&partition).map_or(MessageId::MIN, |of| of.told)
    }

    fn tell(&self, partition: i16, of: &mut Partition) {
        let from = match (of.complete, of.needs.values().map(|need| need.from).min()) {
            (true, lowest) => lowest.unwrap_or(MessageId::MAX),
            (false, _) => MessageId::MIN,
        };
        if from == of.told {
            return;
        }
        of.told = from;
        if let Err(error) = self.store.keep_from(partition, from) {
            tracing::warn!(partition, "the store cannot be told what is unread: {error}");
        }
    }
}

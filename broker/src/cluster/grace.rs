//! Which brokers count when partitions are given out: those that come and go count as such after a grace only, so that one that blinks
//! keeps what it has, and several that come together are waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// A broker that is gone for so long has gone.
pub const GONE_AFTER: Duration = Duration::from_millis(200);
/// Partitions are spread over brokers that have come once none has come for so long.
pub const COME_AFTER: Duration = Duration::from_millis(1000);

/// The brokers that count, and those that are about to come or go.
#[derive(Debug, Default)]
pub struct Grace {
    counted: BTreeSet<String>,
    going: BTreeMap<String, Instant>,
    coming: BTreeMap<String, Instant>,
}

/// How a broker is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has its node, and its door is not open yet.
    Starting,
    Serving,
}

impl Grace {
    /// The brokers that count.
    #[must_use]
    pub const fn counted(&self) -> &BTreeSet<String> {
        &self.counted
    }

    /// These are there now. `holders` have partitions: one of them that is there counts at once, whatever it does, since it goes on with
    /// what it has. Returns when to look again although nothing has changed.
    pub fn seen(&mut self, there: &BTreeMap<String, Presence>, holders: &BTreeSet<String>, now: Instant) -> Option<Instant> {
        self.counted.extend(there.keys().filter(|broker| holders.contains(*broker)).cloned());
        self.going.retain(|broker, _| !there.contains_key(broker));
        for broker in self.counted.iter().filter(|broker| !there.contains_key(*broker)) {
            self.going.entry(broker.clone()).or_insert(now + GONE_AFTER);
        }
        let comes = |broker: &String| there.get(broker) == Some(&Presence::Serving) && !self.counted.contains(broker);
        self.coming.retain(|broker, _| comes(broker));
        let new: Vec<String> =
            there.keys().filter(|broker| comes(broker) && !self.coming.contains_key(*broker)).cloned().collect();
        self.coming.extend(new.into_iter().map(|broker| (broker, now + COME_AFTER)));
        self.going.retain(|broker, due| {
            let is_due = *due <= now;
            if is_due {
                self.counted.remove(broker);
            }
            !is_due
        });
        // With nobody there is nothing to wait for.
        if self.counted.is_empty() || self.coming.values().all(|due| *due <= now) {
            self.all_come();
        }
        self.going.values().min().copied().into_iter().chain(self.coming.values().max().copied()).min()
    }

    /// Whoever is coming counts from now on.
    pub fn all_come(&mut self) {
        self.counted.extend(std::mem::take(&mut self.coming).into_keys());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(brokers: &[(&str, Presence)]) -> BTreeMap<String, Presence> {
        brokers.iter().map(|(name, presence)| ((*name).to_owned(), *presence)).collect()
    }

    fn names(brokers: &[&str]) -> BTreeSet<String> {
        brokers.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn one_that_blinks_keeps_what_it_has() {
        use Presence::{Serving, Starting};
        let (mut grace, begin, none) = (Grace::default(), Instant::now(), BTreeSet::new());
        assert_eq!(grace.seen(&there(&[("a", Serving)]), &none, begin), None);
        assert_eq!(grace.counted(), &names(&["a"]), "the first counts at once");
        let due = grace.seen(&there(&[]), &none, begin).unwrap();
        assert_eq!((due, grace.counted()), (begin + GONE_AFTER, &names(&["a"])));
        grace.seen(&there(&[("a", Starting)]), &none, begin + GONE_AFTER / 2);
        assert_eq!(grace.seen(&there(&[("a", Starting)]), &none, due + GONE_AFTER), None);
        assert_eq!(grace.counted(), &names(&["a"]), "back, though it does not serve yet");
        grace.seen(&there(&[]), &none, due);
        grace.seen(&there(&[]), &none, due + GONE_AFTER);
        assert_eq!(grace.counted(), &none);
    }

    #[test]
    fn those_that_come_together_are_waited_for() {
        use Presence::{Serving, Starting};
        let (mut grace, begin, none) = (Grace::default(), Instant::now(), BTreeSet::new());
        grace.seen(&there(&[("a", Serving)]), &none, begin);
        let all = [("a", Serving), ("b", Serving), ("c", Starting)];
        assert_eq!(grace.seen(&there(&all), &none, begin), Some(begin + COME_AFTER));
        let later = begin + COME_AFTER / 2;
        let all = all.map(|(name, _)| (name, Serving));
        assert_eq!(grace.seen(&there(&all), &none, later), Some(later + COME_AFTER), "one more has come");
        grace.seen(&there(&all), &none, begin + COME_AFTER);
        assert_eq!(grace.counted(), &names(&["a"]));
        assert_eq!(grace.seen(&there(&all), &none, later + COME_AFTER), None);
        assert_eq!(grace.counted(), &names(&["a", "b", "c"]));
    }

    #[test]
    fn whoever_has_partitions_counts_while_it_is_there() {
        let (mut grace, begin) = (Grace::default(), Instant::now());
        let all = there(&[("a", Presence::Starting), ("b", Presence::Serving)]);
        grace.seen(&all, &names(&["a", "gone"]), begin);
        assert_eq!(grace.counted(), &names(&["a"]));
        grace.all_come();
        assert_eq!(grace.counted(), &names(&["a", "b"]));
    }
}

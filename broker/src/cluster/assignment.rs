//! Which broker has which partition of a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Ranges of partitions, in order and without overlap, each with its broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    ranges: Vec<Range>,
    /// The brokers over which it was spread last; empty: it never changes.
    over: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: i16,
    last: i16,
    broker: Arc<str>,
}

/// The node's payload: for each broker its partitions as `0-15,20`.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    brokers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    over: BTreeSet<String>,
}

impl Assignment {
    /// Spreads the partitions of a new queue in ranges over these brokers. `loads` are brokers with the number of partitions that each
    /// has already; those with few get more. No brokers: nothing is assigned.
    #[must_use]
    pub fn spread(partitions: i16, loads: &BTreeMap<String, usize>) -> Self {
        let total = usize::try_from(partitions).unwrap_or_default();
        let mut counts: Vec<(&String, usize, usize)> = loads.iter().map(|(name, load)| (name, *load, 0)).collect();
        // Evenly within the queue first, so that every broker takes its share of a hot one; then by what each has already.
        for _ in 0..total {
            if let Some(least) = counts.iter_mut().min_by_key(|(_, load, given)| (*given, *load)) {
                least.2 += 1;
            }
        }
        let mut next = 0i16;
        let mut ranges = Vec::new();
        for (name, _, given) in counts.into_iter().filter(|(_, _, given)| *given > 0) {
            let last = next.saturating_add(i16::try_from(given).unwrap_or(i16::MAX)) - 1;
            ranges.push(Range { first: next, last, broker: name.as_str().into() });
            next = last.saturating_add(1);
        }
        Self { ranges, over: BTreeSet::new() }
    }

    /// The partitions in order, each with its broker, spread over these.
    #[must_use]
    pub fn of(brokers: &[Arc<str>], over: BTreeSet<String>) -> Self {
        let mut ranges: Vec<Range> = Vec::new();
        for (partition, broker) in (0..).zip(brokers) {
            match ranges.last_mut() {
                Some(range) if range.broker == *broker => range.last = partition,
                _ => ranges.push(Range { first: partition, last: partition, broker: Arc::clone(broker) }),
            }
        }
        Self { ranges, over }
    }

    /// The same with one partition at another broker.
    #[must_use]
    pub fn moved(&self, partition: i16, broker: &str, partitions: i16) -> Self {
        let mut brokers: Vec<Arc<str>> =
            (0..partitions).map(|p| self.broker_of(p).map_or_else(|| Arc::from(broker), Arc::clone)).collect();
        if let Some(place) = usize::try_from(partition).ok().and_then(|p| brokers.get_mut(p)) {
            *place = Arc::from(broker);
        }
        Self::of(&brokers, self.over.clone())
    }

    /// The brokers over which it was spread last.
    #[must_use]
    pub const fn over(&self) -> &BTreeSet<String> {
        &self.over
    }

    /// The broker of a partition.
    #[must_use]
    pub fn broker_of(&self, partition: i16) -> Option<&Arc<str>> {
        let index = self.ranges.partition_point(|range| range.last < partition);
        self.ranges.get(index).filter(|range| range.first <= partition).map(|range| &range.broker)
    }

    /// The partitions of a broker, in order.
    pub fn partitions_of<'a>(&'a self, broker: &'a str) -> impl Iterator<Item = i16> + 'a {
        self.ranges.iter().filter(move |range| &*range.broker == broker).flat_map(|range| range.first..=range.last)
    }

    /// Every broker with the number of its partitions.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for range in &self.ranges {
            *counts.entry(range.broker.to_string()).or_default() += usize::from(range.first.abs_diff(range.last)) + 1;
        }
        counts
    }

    #[must_use]
    pub fn to_payload(&self) -> Vec<u8> {
        let mut brokers: BTreeMap<String, String> = BTreeMap::new();
        for range in &self.ranges {
            let text = brokers.entry(range.broker.to_string()).or_default();
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&range.first.to_string());
            if range.last > range.first {
                text.push_str(&format!("-{}", range.last));
            }
        }
        serde_json::to_vec(&Payload { brokers, over: self.over.clone() }).unwrap_or_default()
    }

    /// Reads a node. The error says what is wrong with it.
    pub fn from_payload(payload: &[u8], partitions: i16) -> Result<Self, String> {
        let read: Payload = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
        let mut ranges = Vec::new();
        for (name, text) in &read.brokers {
            let broker: Arc<str> = name.as_str().into();
            for part in text.split(',').filter(|part| !part.is_empty()) {
                let (first, last) = parse_range(part).ok_or_else(|| format!("{part:?} is no range of partitions"))?;
                if first < 0 || last < first || last >= partitions {
                    return Err(format!("the range {part} of {name} is outside of 0 to {}", partitions - 1));
                }
                ranges.push(Range { first, last, broker: Arc::clone(&broker) });
            }
        }
        ranges.sort_by_key(|range| range.first);
        let overlap = ranges.iter().zip(ranges.iter().skip(1)).find(|(a, b)| a.last >= b.first);
        match overlap {
            Some((_, b)) => Err(format!("partition {} is given to two brokers", b.first)),
            None => Ok(Self { ranges, over: read.over }),
        }
    }
}

fn parse_range(text: &str) -> Option<(i16, i16)> {
    match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => text.parse().ok().map(|p| (p, p)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
        of.iter().map(|(name, load)| ((*name).to_owned(), *load)).collect()
    }

    #[test]
    fn a_queue_is_spread_evenly_and_small_ones_go_to_those_with_few() {
        let spread = Assignment::spread(4, &loads(&[("a", 0), ("b", 0)]));
        assert_eq!(spread.counts(), loads(&[("a", 2), ("b", 2)]));
        assert_eq!(Assignment::spread(1, &loads(&[("a", 3), ("b", 2)])).counts(), loads(&[("b", 1)]));
        assert_eq!(Assignment::spread(5, &loads(&[("a", 9), ("b", 0)])).counts(), loads(&[("a", 2), ("b", 3)]));
        assert_eq!(Assignment::spread(4, &loads(&[])).counts(), loads(&[]));
        assert_eq!(
            Assignment::spread(i16::MAX, &loads(&[("a", 0), ("b", 1), ("c", 0)])).counts().values().sum::<usize>(),
            32_767
        );
    }

    #[test]
    fn it_comes_back_from_its_payload() {
        let spread = Assignment::spread(5, &loads(&[("a", 0), ("b", 0)]));
        assert_eq!(spread.to_payload(), br#"{"brokers":{"a":"0-2","b":"3-4"}}"#);
        assert_eq!(Assignment::from_payload(&spread.to_payload(), 5), Ok(spread.clone()));
        assert_eq!(spread.broker_of(2).map(|b| &**b), Some("a"));
        assert_eq!(spread.broker_of(4).map(|b| &**b), Some("b"));
        assert_eq!(spread.broker_of(5), None);
        assert_eq!(spread.partitions_of("b").collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (payload, why) in [
            (r#"{"brokers":{"a":"0-9"}}"#, "outside"),
            (r#"{"brokers":{"a":"0-2","b":"2"}}"#, "two brokers"),
            (r#"{"brokers":{"a":"x"}}"#, "no range"),
            ("", "EOF"),
        ] {
            let error = Assignment::from_payload(payload.as_bytes(), 4).unwrap_err();
            assert!(error.contains(why), "{payload}: {error}");
        }
    }

    #[test]
    fn one_that_may_change_says_over_whom_it_was_spread() {
        let brokers: Vec<Arc<str>> = ["a", "a", "b", "a"].map(Arc::from).to_vec();
        let over: BTreeSet<String> = ["a".to_owned(), "b".to_owned()].into();
        let spread = Assignment::of(&brokers, over.clone());
        assert_eq!(spread.to_payload(), br#"{"brokers":{"a":"0-1,3","b":"2"},"over":["a","b"]}"#);
        assert_eq!(Assignment::from_payload(&spread.to_payload(), 4), Ok(spread.clone()));
        let moved = spread.moved(0, "b", 4);
        assert_eq!((moved.counts(), moved.over()), (loads(&[("a", 2), ("b", 2)]), &over));
    }

    #[test]
    fn a_partition_that_nobody_has_is_nobodys() {
        let read = Assignment::from_payload(br#"{"brokers":{"a":"0,2"}}"#, 4).unwrap();
        assert_eq!((read.broker_of(0).is_some(), read.broker_of(1), read.broker_of(3)), (true, None, None));
    }
}

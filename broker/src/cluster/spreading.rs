//! Who gets which partition where any broker can have any: evenly within each queue, then over all queues, with few moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assignment::Assignment;

/// A queue as it is spread now.
#[derive(Clone, Debug)]
pub struct Spread {
    pub name: String,
    pub partitions: i16,
    /// `None`: it is new.
    pub assignment: Option<Assignment>,
}

impl Spread {
    fn broker_of(&self, partition: i16) -> Option<&Arc<str>> {
        self.assignment.as_ref().and_then(|assignment| assignment.broker_of(partition))
    }

    fn loads<'a>(&self, brokers: &'a BTreeSet<String>) -> BTreeMap<&'a str, usize> {
        let counts = self.assignment.as_ref().map(Assignment::counts).unwrap_or_default();
        brokers.iter().map(|broker| (broker.as_str(), counts.get(broker).copied().unwrap_or_default())).collect()
    }

    /// It has to be spread anew: it is new, other brokers are there than those it was spread over, or a partition is at none of them.
    #[must_use]
    pub fn is_due(&self, brokers: &BTreeSet<String>) -> bool {
        self.assignment.as_ref().is_none_or(|assignment| assignment.over() != brokers) || self.has_orphans(brokers)
    }

    /// A partition is at none of these brokers.
    #[must_use]
    pub fn has_orphans(&self, brokers: &BTreeSet<String>) -> bool {
        (0..self.partitions).any(|p| self.broker_of(p).is_none_or(|broker| !brokers.contains(&**broker)))
    }
}

/// Spreads what is due over these brokers. Returns the queues that change, with what they change to. `even`: brokers that have come get
/// their share; without it only partitions that are at none of the brokers are given away.
#[must_use]
pub fn spread(queues: &[Spread], brokers: &BTreeSet<String>, even: bool) -> Vec<(String, Assignment)> {
    if brokers.is_empty() {
        return Vec::new();
    }
    let mut loads: BTreeMap<&str, usize> = brokers.iter().map(|broker| (broker.as_str(), 0)).collect();
    let mut due = Vec::new();
    for queue in queues {
        let is_due = if even { queue.is_due(brokers) } else { queue.has_orphans(brokers) };
        if is_due {
            due.push(queue);
        } else {
            queue.loads(brokers).into_iter().for_each(|(broker, n)| *loads.entry(broker).or_default() += n);
        }
    }
    let mut targets: Vec<BTreeMap<&str, usize>> = Vec::with_capacity(due.len());
    for queue in &due {
        let is_new = queue.assignment.is_none();
        let target = if even || is_new { share(queue, brokers, &loads) } else { orphans_given(queue, brokers, &loads) };
        target.iter().for_each(|(broker, n)| *loads.entry(broker).or_default() += n);
        targets.push(target);
    }
    if even {
        level(&mut targets, &mut loads);
    }
    // What is given away without evenness is spread over nobody: it is due once evenness is asked for.
    let over = |queue: &Spread| if even || queue.assignment.is_none() { brokers.clone() } else { BTreeSet::new() };
    let spread = due.iter().zip(targets).map(|(queue, target)| (queue.name.clone(), give(queue, target, over(queue))));
    spread.collect()
}

/// How many partitions of a queue each broker gets: the same number, and one more for those that have more already, or the least in all.
fn share<'a>(queue: &Spread, brokers: &'a BTreeSet<String>, loads: &BTreeMap<&str, usize>) -> BTreeMap<&'a str, usize> {
    let total = usize::try_from(queue.partitions).unwrap_or_default();
    let (each, mut more) = (total / brokers.len().max(1), total % brokers.len().max(1));
    let mut order: Vec<(&str, usize)> = queue.loads(brokers).into_iter().collect();
    // Names decide last, so that every balancer decides the same.
    order.sort_by_key(|(broker, has)| (std::cmp::Reverse(*has > each), loads.get(broker).copied().unwrap_or_default(), *broker));
    let mut target = BTreeMap::new();
    for (broker, _) in order {
        target.insert(broker, each + usize::from(more > 0));
        more = more.saturating_sub(1);
    }
    target
}

/// What each broker has, and of what has none a share for those with the least.
fn orphans_given<'a>(queue: &Spread, brokers: &'a BTreeSet<String>, loads: &BTreeMap<&str, usize>) -> BTreeMap<&'a str, usize> {
    let mut target = queue.loads(brokers);
    let orphans = usize::try_from(queue.partitions).unwrap_or_default().saturating_sub(target.values().sum());
    for _ in 0..orphans {
        let least = target.iter().min_by_key(|(broker, has)| (**has, loads.get(*broker).copied().unwrap_or_default()));
        let Some(least) = least.map(|(broker, _)| *broker) else { break };
        *target.entry(least).or_default() += 1;
    }
    target
}

/// Moves single partitions of queues from brokers with the most in all to those with the least, where that leaves each queue even.
fn level<'a>(targets: &mut [BTreeMap<&'a str, usize>], loads: &mut BTreeMap<&'a str, usize>) {
    for target in targets {
        loop {
            let richest = target.iter().max_by_key(|(broker, n)| (**n, loads.get(*broker).copied().unwrap_or_default()));
            let most = richest.map_or(0, |(_, n)| *n);
            let with = |n: usize| target.iter().filter(move |(_, has)| **has == n).map(|(broker, _)| *broker);
            let load = |broker: &&str| loads.get(*broker).copied().unwrap_or_default();
            let (Some(from), Some(to)) = (with(most).max_by_key(load), with(most.saturating_sub(1)).min_by_key(load)) else {
                break;
            };
            if most == 0 || load(&from) < load(&to) + 2 {
                break;
            }
            for (broker, one_more) in [(from, false), (to, true)] {
                for count in [target.get_mut(broker), loads.get_mut(broker)].into_iter().flatten() {
                    *count = if one_more { *count + 1 } else { count.saturating_sub(1) };
                }
            }
        }
    }
}

/// Gives each partition to the broker that has it, while that is within its target, and the others to those that lack some.
fn give(queue: &Spread, mut target: BTreeMap<&str, usize>, over: BTreeSet<String>) -> Assignment {
    let mut brokers: Vec<Option<Arc<str>>> = Vec::new();
    for partition in 0..queue.partitions {
        let stays = queue.broker_of(partition).filter(|broker| match target.get_mut(&***broker) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        });
        brokers.push(stays.cloned());
    }
    let mut left = target.into_iter().flat_map(|(broker, n)| std::iter::repeat_n(Arc::<str>::from(broker), n));
    let given: Vec<Arc<str>> = brokers.into_iter().filter_map(|broker| broker.or_else(|| left.next())).collect();
    Assignment::of(&given, over)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brokers(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn new(name: &str, partitions: i16) -> Spread {
        Spread { name: name.to_owned(), partitions, assignment: None }
    }

    fn apply(queues: &mut [Spread], over: &BTreeSet<String>, even: bool) -> usize {
        let mut moves = 0;
        for (name, assignment) in spread(queues, over, even) {
            let queue = queues.iter_mut().find(|queue| queue.name == name).unwrap();
            assert_eq!(assignment.counts().values().sum::<usize>(), usize::try_from(queue.partitions).unwrap());
            moves += (0..queue.partitions)
                .filter(|p| queue.broker_of(*p).is_some_and(|b| assignment.broker_of(*p) != Some(b)))
                .count();
            queue.assignment = Some(assignment);
        }
        moves
    }

    fn check_even(queues: &[Spread], over: &BTreeSet<String>) {
        let mut all = BTreeMap::<String, usize>::new();
        for queue in queues {
            let counts = queue.assignment.as_ref().unwrap().counts();
            let each: Vec<usize> = over.iter().map(|broker| counts.get(broker).copied().unwrap_or_default()).collect();
            assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1, "{queue:?}");
            over.iter().zip(each).for_each(|(broker, n)| *all.entry(broker.clone()).or_default() += n);
        }
        let total: usize = all.values().sum();
        assert!(all.values().max().unwrap() - all.values().min().unwrap() <= 1, "{all:?} of {total}");
    }

    #[test]
    fn a_broker_that_comes_gets_its_share_and_no_more_moves() {
        let mut queues = vec![new("a", 6), new("b", 1), new("c", 3)];
        apply(&mut queues, &brokers(&["x"]), true);
        let two = brokers(&["x", "y"]);
        assert_eq!(apply(&mut queues, &two, true), 5, "half of ten");
        check_even(&queues, &two);
        assert_eq!(apply(&mut queues, &two, true), 0);
        assert_eq!(apply(&mut queues, &brokers(&["y"]), true), 5, "only what the other had");
    }

    #[test]
    fn what_was_moved_by_hand_stays_until_a_broker_comes_or_goes() {
        let two = brokers(&["x", "y"]);
        let mut queues = vec![new("a", 4)];
        apply(&mut queues, &two, true);
        queues[0].assignment = queues[0].assignment.as_ref().map(|spread| spread.moved(0, "y", 4).moved(1, "y", 4));
        assert_eq!(apply(&mut queues, &two, true), 0);
        assert_eq!(apply(&mut queues, &brokers(&["x", "y", "z"]), true), 2);
    }

    #[test]
    fn without_evenness_only_orphans_move() {
        let mut queues = vec![new("a", 4), new("b", 3)];
        apply(&mut queues, &brokers(&["x", "y"]), false);
        check_even(&queues, &brokers(&["x", "y"]));
        assert_eq!(apply(&mut queues, &brokers(&["x", "y", "z"]), false), 0);
        let gone = queues.iter().map(|q| q.assignment.as_ref().unwrap().partitions_of("y").count()).sum::<usize>();
        assert_eq!(apply(&mut queues, &brokers(&["x", "z"]), false), gone);
        assert!(queues.iter().all(|queue| !queue.has_orphans(&brokers(&["x", "z"]))));
        // Also when the same brokers are there again as before.
        let at_z = queues.iter().map(|q| q.assignment.as_ref().unwrap().partitions_of("z").count()).sum::<usize>();
        assert_eq!(apply(&mut queues, &brokers(&["x", "y"]), false), at_z);
        apply(&mut queues, &brokers(&["x", "y"]), true);
        check_even(&queues, &brokers(&["x", "y"]));
    }

    /// Brokers come and go at random: always even, and never more moves than what the gone ones had and the new ones are due.
    #[test]
    fn it_is_even_with_few_moves_whoever_comes_and_goes() {
        let seed = std::env::var("HQUEUE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let mut queues: Vec<Spread> = (0..random.usize(1..8)).map(|n| new(&format!("q{n}"), random.i16(1..20))).collect();
            let mut there = brokers(&["b0"]);
            for _ in 0..10 {
                apply(&mut queues, &there, true);
                check_even_within(&queues, &there, seed);
                let before: BTreeMap<String, usize> = queues.iter().flat_map(|q| q.assignment.as_ref().unwrap().counts()).fold(
                    BTreeMap::new(),
                    |mut all, (broker, n)| {
                        *all.entry(broker).or_default() += n;
                        all
                    },
                );
                let total: usize = before.values().sum();
                let name = format!("b{}", random.u8(0..6));
                let came = there.insert(name.clone());
                if !came && there.len() > 1 {
                    there.remove(&name);
                }
                let moves = apply(&mut queues, &there, true);
                let most = if came {
                    total / there.len() + queues.len()
                } else {
                    before.get(&name).copied().unwrap_or(0) + queues.len()
                };
                assert!(moves <= most, "HQUEUE_SEED={seed}: {moves} moves, {most} were enough");
                check_even_within(&queues, &there, seed);
            }
        }
    }

    fn check_even_within(queues: &[Spread], over: &BTreeSet<String>, seed: u64) {
        for queue in queues {
            let counts = queue.assignment.as_ref().unwrap().counts();
            let each: Vec<usize> = over.iter().map(|broker| counts.get(broker).copied().unwrap_or_default()).collect();
            assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1, "HQUEUE_SEED={seed}: {queue:?}");
        }
    }
}

//! Which endpoint serves which partition: a function of the partitions and the endpoints alone, so that it comes out the same everywhere.
//!
//! Every partition ranks the endpoints by a hash of its number and their names, and goes to the first that has not its fair share yet. So
//! shares differ by one at most, and most partitions stay where they are when an endpoint comes or goes.

/// The rank of an endpoint for a partition: the highest goes first.
#[must_use]
pub fn rank(partition: i16, endpoint: &str) -> u64 {
    // FNV-1a, and a last mix so that neighbours part.
    let bytes = endpoint.bytes().chain(partition.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// The endpoint of every partition, by index. `takes` tells which endpoints take a partition; nobody: `None`.
#[must_use]
pub fn spread(partitions: i16, endpoints: &[&str], takes: impl Fn(usize, i16) -> bool) -> Vec<Option<usize>> {
    let total = usize::try_from(partitions).unwrap_or_default();
    let fair = total.div_ceil(endpoints.len().max(1));
    let mut loads = vec![0usize; endpoints.len()];
    let mut table = Vec::with_capacity(total);
    for partition in 0..partitions {
        let ranked = || endpoints.iter().enumerate().map(|(index, name)| (rank(partition, name), index));
        let mut takers: Vec<(u64, usize)> = ranked().filter(|(_, index)| takes(*index, partition)).collect();
        let nobody = takers.is_empty();
        if nobody {
            // Who is registered in partitions of other brokers is not seen here. They count as if everybody were: so all brokers
            // draw one table, and the shares are even over all of them.
            takers.extend(ranked());
        }
        takers.sort_unstable_by(|a, b| b.cmp(a));
        let load = |index: usize| loads.get(index).copied().unwrap_or_default();
        let below = takers.iter().map(|(_, index)| *index).find(|index| load(*index) < fair);
        let chosen = below.or_else(|| takers.iter().map(|(_, index)| *index).min_by_key(|index| load(*index)));
        if let Some(load) = chosen.and_then(|index| loads.get_mut(index)) {
            *load += 1;
        }
        table.push(chosen.filter(|_| !nobody));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(table: &[Option<usize>], endpoints: usize) -> Vec<usize> {
        (0..endpoints).map(|index| table.iter().filter(|chosen| **chosen == Some(index)).count()).collect()
    }

    #[test]
    fn shares_are_even() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let names: Vec<String> =
                (0..random.usize(1..8)).map(|_| format!("10.0.0.{}:{}", random.u8(..), random.u16(..))).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let partitions = random.i16(1..200);
            let shares = shares(&spread(partitions, &names, |_, _| true), names.len());
            let fair = usize::try_from(partitions).unwrap().div_ceil(names.len());
            assert_eq!(shares.iter().sum::<usize>(), usize::try_from(partitions).unwrap());
            assert!(shares.iter().all(|share| *share <= fair), "seed {seed}: {shares:?} of {partitions}");
        }
    }

    /// Two brokers, each of which sees registrations in its own half of the partitions only.
    #[test]
    fn shares_are_even_over_brokers() {
        for port in 0..100 {
            let names = [format!("10.0.0.1:{port}"), format!("10.0.0.2:{port}")];
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let here = spread(8, &names, |_, partition| partition < 4);
            let there = spread(8, &names, |_, partition| partition >= 4);
            assert!(here[4..].iter().chain(&there[..4]).all(Option::is_none), "of what is not here nothing is said");
            let together: Vec<_> = here[..4].iter().chain(&there[4..]).copied().collect();
            assert_eq!(shares(&together, 2), [4, 4], "{names:?}");
        }
    }

    #[test]
    fn few_move_when_one_leaves() {
        let names = ["a:1", "b:2", "c:3", "d:4"];
        let before = spread(64, &names, |_, _| true);
        let after = spread(64, &names[..3], |_, _| true);
        let moved = before.iter().zip(&after).filter(|(b, a)| b != a).count();
        assert!((16..=32).contains(&moved), "{moved} of 64 moved, 16 had to");
    }

    #[test]
    fn who_does_not_take_a_partition_gets_none() {
        let table = spread(4, &["a:1", "b:2"], |index, partition| index == 0 && partition > 0);
        assert_eq!(table, [None, Some(0), Some(0), Some(0)]);
    }
}

//! Brokers with messages in HBase under load, from the first put to the count of what became of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::load::{Load, Outcomes, Puts};
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::{Cluster, Consumer, PATIENCE, wait};

/// A queue `q`, a client for each of its partitions, and a subscriber of all of them.
pub(crate) struct Story {
    pub(crate) cluster: Cluster,
    consumer: Consumer,
    acknowledged: Arc<Acknowledged>,
    /// One for each partition; each knows all brokers.
    loads: Vec<Load>,
}

/// What became of the messages of a story.
pub(crate) struct End {
    pub(crate) pushed_twice: usize,
    pub(crate) outcomes: Vec<Outcomes>,
}

impl Story {
    pub(crate) fn begin(cluster: Cluster, partitions: i16) -> Self {
        let brokers = cluster.brokers.len();
        cluster.brokers[0].create("q", partitions.into());
        cluster.wait_until_even("q", partitions, &(0..brokers).collect::<Vec<_>>());
        let consumer = Consumer::start();
        cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[("retry-max", "1s")]);
        let acknowledged = Arc::new(Acknowledged::default());
        let ports: Vec<u16> = cluster.brokers.iter().map(|b| b.port()).collect();
        let load = |partition: i16| {
            let mut ports = ports.clone();
            ports.rotate_left(usize::try_from(partition).unwrap() % brokers);
            let puts = Puts { queue: "q", partition, pause: Duration::from_millis(5) };
            Load::start(&format!("p{partition}"), &ports, puts, &acknowledged)
        };
        Self { loads: (0..partitions).map(load).collect(), cluster, consumer, acknowledged }
    }

    pub(crate) fn partitions(&self) -> i16 {
        i16::try_from(self.loads.len()).unwrap()
    }

    pub(crate) fn had_by(&self, broker: usize) -> Vec<i16> {
        (0..self.partitions()).filter(|p| self.cluster.owner("q", *p) == Some(broker)).collect()
    }

    /// Waits for some more acknowledgements of every client.
    pub(crate) fn go_on(&self) {
        self.loads.iter().for_each(|load| load.wait_for(10));
    }

    /// The same where it may take long; returns how long it took.
    pub(crate) fn go_on_within(&self, patience: Duration) -> Duration {
        let began = Instant::now();
        let enough: Vec<usize> = self.loads.iter().map(|load| load.count() + 10).collect();
        wait("all are acknowledged again", patience, || {
            self.loads.iter().zip(&enough).all(|(load, enough)| load.count() >= *enough)
        });
        began.elapsed()
    }

    /// How long it takes from `since` until something of each of these partitions is pushed that was put later. Nothing of what was under way at
    /// that time counts: it is over before `still`.
    pub(crate) fn pushed_again(&self, partitions: &[i16], since: Instant, still: Duration) -> Duration {
        let first = |partition: i16| {
            let calls = self.consumer.calls();
            let of_it = calls.iter().filter(|c| c.messages.iter().any(|m| m.partition == partition));
            of_it.filter(|c| c.at > since + still).map(|c| c.at - since).min()
        };
        wait("pushes go on", PATIENCE, || partitions.iter().all(|p| first(*p).is_some()));
        partitions.iter().filter_map(|p| first(*p)).max().unwrap_or_default()
    }

    /// The longest time that one partition was without a call.
    fn longest_without_push(&self) -> Duration {
        let (mut last, mut longest) = (BTreeMap::new(), Duration::ZERO);
        for call in self.consumer.calls() {
            for partition in call.messages.iter().map(|m| m.partition) {
                if let Some(before) = last.insert(partition, call.at) {
                    longest = longest.max(call.at - before);
                }
            }
        }
        longest
    }

    /// Everything that was acknowledged is found and was pushed.
    pub(crate) fn end(self, what: &str) -> End {
        let without_push = self.longest_without_push();
        let partitions = self.partitions();
        let outcomes: Vec<Outcomes> = self.loads.into_iter().map(Load::finish).collect();
        let broker = self.cluster.brokers.iter().find(|b| b.is_running()).unwrap();
        broker.wait_for_no_lag("q", "s");
        let stored = self.cluster.scan_all("q", partitions);
        check_rising(&stored);
        self.acknowledged.check_all_in(&stored, "stored");
        let accepted = self.consumer.accepted();
        let pushed_twice = check_order(&accepted);
        self.acknowledged.check_all_in(&accepted, "pushed");
        let without_answer = outcomes.iter().map(|o| o.longest_gap).max().unwrap_or_default();
        let (acknowledged, refused) = (self.acknowledged.count(), outcomes.iter().map(|o| o.refused.len()).sum::<usize>());
        println!("| what | acknowledged | refused | without an acknowledgement | without a push | pushed twice | lost |");
        println!("|---|---|---|---|---|---|---|");
        println!("| {what} | {acknowledged} | {refused} | {without_answer:.1?} | {without_push:.1?} | {pushed_twice} | 0 |");
        End { pushed_twice, outcomes }
    }
}

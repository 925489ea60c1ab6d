//! Several endpoints share a subscription: each partition goes to one of them at a time, and to another when that does not answer.

use std::collections::{BTreeMap, BTreeSet};

use hqueue_tests::order::by_partition;
use hqueue_tests::{Broker, Consumer, PATIENCE, wait};

const QUICK: [(&str, &str); 3] = [("retry-min", "20ms"), ("retry-max", "50ms"), ("call-timeout", "500ms")];
const PARTITIONS: i16 = 12;

struct Group {
    broker: Broker,
    consumers: Vec<Consumer>,
}

impl Group {
    fn of(n: usize) -> Self {
        let broker = Broker::start();
        broker.create("q", PARTITIONS.into());
        let consumers: Vec<Consumer> = (0..n).map(|_| Consumer::start()).collect();
        let mut words =
            vec!["add_subscriber".to_owned(), "q".to_owned(), "s".to_owned(), "--from".to_owned(), "earliest".to_owned()];
        for (name, value) in QUICK {
            words.extend([format!("--{name}"), value.to_owned()]);
        }
        let addresses: Vec<String> = consumers.iter().map(Consumer::address).collect();
        words.extend(["--address".to_owned(), addresses.join(",")]);
        broker.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).text();
        Self { broker, consumers }
    }

    /// Puts this into each partition and waits until it is consumed everywhere, once.
    fn push(&self, text: &str) {
        for partition in 0..PARTITIONS {
            self.broker.put("q", partition, &[text]);
        }
        self.broker.wait_for_no_lag("q", "s");
    }

    /// Which of them consumed this text of each partition.
    fn who(&self, text: &str) -> BTreeMap<i16, BTreeSet<usize>> {
        let mut who: BTreeMap<i16, BTreeSet<usize>> = BTreeMap::new();
        for (n, consumer) in self.consumers.iter().enumerate() {
            for message in consumer.accepted().iter().filter(|m| m.value == text.as_bytes()) {
                who.entry(message.partition).or_default().insert(n);
            }
        }
        who
    }
}

#[test]
fn each_partition_goes_to_one_and_shares_are_even() {
    let group = Group::of(3);
    for round in 0..5 {
        group.push(&round.to_string());
    }
    let first = group.who("0");
    assert_eq!(first.len(), usize::try_from(PARTITIONS).unwrap());
    for round in 1..5 {
        assert_eq!(group.who(&round.to_string()), first, "who has a partition keeps it");
    }
    for (n, consumer) in group.consumers.iter().enumerate() {
        assert_eq!(by_partition(&consumer.accepted()).len(), 4, "a third for consumer {n}");
        assert_eq!(consumer.count(), 20);
    }
}

/// One that is away, or hangs, is passed over; the others take its partitions, and it gets them back.
#[test]
fn one_that_does_not_answer_is_passed_over_and_comes_back() {
    let mut group = Group::of(3);
    group.push("before");
    let before = group.who("before");
    group.consumers[1].freeze();
    group.consumers[2].stop();
    group.push("during");
    let during = group.who("during");
    assert_eq!(during.len(), 12);
    assert!(during.values().all(|who| who.contains(&0)), "{during:?}");
    let status = group.broker.subscription("q", "s");
    assert_eq!((status.attempts(), status.endpoints().len()), (0, 3));
    group.consumers[1].thaw();
    group.consumers[2].resume();
    let mut round = 0;
    wait("each has its own partitions again", PATIENCE * 3, || {
        round += 1;
        let text = format!("after-{round}");
        group.push(&text);
        group.who(&text) == before
    });
    let log = group.broker.log();
    for consumer in &group.consumers[1..] {
        let of = |said: &str| log.lines().filter(|line| line.contains(said) && line.contains(&consumer.address())).count();
        assert_eq!((of("passed over while others answer"), of("back: it answers again")), (1, 1), "each is said once");
    }
}

/// With nobody there it waits for whoever comes first.
#[test]
fn whoever_comes_back_first_takes_all() {
    let mut group = Group::of(2);
    group.push("before");
    group.consumers.iter_mut().for_each(Consumer::stop);
    for partition in 0..PARTITIONS {
        group.broker.put("q", partition, &["during"]);
    }
    wait("it is tried in vain", PATIENCE, || group.broker.subscription("q", "s").state() == "retrying");
    group.consumers[1].resume();
    group.broker.wait_for_no_lag("q", "s");
    assert!(group.who("during").values().all(|who| who.contains(&1)));
    assert_eq!(group.broker.subscription("q", "s").0.dead_lettered, Some(0));
}

/// Order holds within each partition, whoever dies.
#[test]
fn order_holds_while_endpoints_come_and_go() {
    let mut group = Group::of(3);
    let mut random = hqueue_tests::seed("order_holds_while_endpoints_come_and_go");
    let mut put = 0;
    for round in 0..6 {
        for partition in 0..PARTITIONS {
            group.broker.put("q", partition, &(0..20).map(|n| format!("{round}-{n}")).collect::<Vec<_>>());
            put += 20;
        }
        let n = random.usize(0..3);
        if round % 2 == 0 {
            group.consumers[n].stop()
        } else {
            group.consumers[n].freeze()
        }
        wait("some of it is consumed", PATIENCE, || group.consumers.iter().map(Consumer::count).sum::<usize>() + 200 >= put);
        if round % 2 == 0 { group.consumers[n].resume() } else { group.consumers[n].thaw() }
    }
    group.broker.wait_for_no_lag("q", "s");
    // All calls by the time at which they came; those that were not answered come again.
    let mut calls: Vec<_> = group.consumers.iter().flat_map(Consumer::calls).collect();
    calls.sort_by_key(|call| call.at);
    let came: Vec<_> = calls.into_iter().flat_map(|call| call.messages).collect();
    let again = hqueue_tests::order::check_order(&came);
    assert_eq!(came.len() - again, put);
    assert_eq!(group.broker.subscription("q", "s").0.dead_lettered, Some(0));
}

//! Several processes of one name that register in ZooKeeper share the partitions.

use std::collections::BTreeSet;
use std::time::Duration;

use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Broker, Cluster, Consumer, PATIENCE, Registered, wait};

const PARTITIONS: i16 = 8;

fn of(consumer: &Consumer) -> BTreeSet<i16> {
    consumer.accepted().iter().map(|m| m.partition).collect()
}

fn put_everywhere(broker: &Broker, round: &str) {
    for p in 0..PARTITIONS {
        broker.put("q", p, &(0..5).map(|n| format!("{round}-{p}-{n}")).collect::<Vec<_>>());
    }
}

/// The first and a second process share; one leaves in order, the other has everything, each message once; a third comes; the first
/// dies with its session.
#[test]
fn share_come_and_go() {
    let cluster = Cluster::start(2);
    let broker = &cluster.brokers[0];
    broker.create("q", PARTITIONS.into());
    let start = || Consumer::answering(|_| Answer::Slow(Duration::from_millis(3), 0));
    let (one, two, three) = (start(), start(), start());
    let (addresses, sessions) =
        ([one.address(), two.address(), three.address()], [cluster.session(), cluster.session(), cluster.session()]);
    let registered =
        |n: usize| Registered { suffix: ["", "-b", "-0xc"][n], ..Registered::new("q", PARTITIONS, "s", &addresses[n]) };
    sessions[0].register(registered(0));
    sessions[1].register(registered(1));
    wait("all brokers call both", PATIENCE, || {
        cluster.brokers.iter().all(|b| {
            b.status("q").subscriptions.unwrap().first().is_some_and(|s| s.endpoints.as_ref().is_some_and(|e| e.len() == 2))
        })
    });
    let total = || one.count() + two.count() + three.count();
    // They are seen partition by partition.
    wait("both share evenly", PATIENCE, || {
        broker.wait_for_no_lag("q", "s");
        one.forget();
        two.forget();
        put_everywhere(broker, "two");
        wait("both together have all", PATIENCE, || total() >= 40);
        (of(&one).len(), of(&two).len()) == (4, 4)
    });
    assert!(of(&one).is_disjoint(&of(&two)), "{:?} and {:?}", of(&one), of(&two));
    // One leaves in the middle of the work.
    for round in 0..6 {
        put_everywhere(broker, &format!("work{round}"));
    }
    sessions[1].leave(registered(1));
    wait("who stays has the rest", PATIENCE, || total() >= 40 * 7);
    broker.wait_for_no_lag("q", "s");
    let left = two.count();
    put_everywhere(broker, "one");
    wait("one has all", PATIENCE, || total() >= 40 * 8);
    assert_eq!(two.count(), left, "who has left is not called");
    sessions[2].register(registered(2));
    wait("the third is called", PATIENCE, || broker.subscription("q", "s").endpoints().len() == 2);
    put_everywhere(broker, "three");
    wait("all is there", PATIENCE, || total() >= 40 * 9);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(total(), 40 * 9, "each message once, while nothing fails");
    let [first, ..] = sessions;
    first.close();
    wait("the dead one is not called", PATIENCE, || broker.subscription("q", "s").endpoints() == [three.address()]);
    put_everywhere(broker, "last");
    wait("the third has all", PATIENCE, || total() >= 40 * 10);
    broker.wait_for_no_lag("q", "s");
    let mut calls: Vec<_> = [&one, &two, &three].into_iter().flat_map(|c| c.calls()).collect();
    calls.sort_by_key(|c| c.at);
    let messages: Vec<_> = calls.into_iter().flat_map(|c| c.messages).collect();
    assert_eq!(check_order(&messages), 0, "in order over all of them");
}

//! Partitions that move in order: brokers that come and are stopped, moves by hand, the balancer's switch. Nothing is pushed twice.

use std::time::{Duration, Instant};

use hqueue_tests::cluster::SESSION;
use hqueue_tests::hbase::HBase;
use hqueue_tests::order::check_order;
use hqueue_tests::rising::Rising;
use hqueue_tests::{Answer, Cluster, Consumer, PATIENCE, long_form, wait};

use crate::story::Story;

const PARTITIONS: i16 = 6;

fn begin(brokers: usize) -> Story {
    Story::begin(Cluster::in_hbase(brokers, SESSION, HBase::shared().gateway()), PARTITIONS)
}

/// A third broker comes, and gets its share while everything goes on.
#[test]
fn a_broker_that_comes_gets_its_share() {
    let mut story = begin(2);
    story.go_on();
    let before: Vec<_> = (0..PARTITIONS).map(|p| story.cluster.owner("q", p)).collect();
    let began = Instant::now();
    story.cluster.add();
    story.cluster.wait_until_even("q", PARTITIONS, &[0, 1, 2]);
    println!("even {:?} after the third was started", began.elapsed());
    let after: Vec<_> = (0..PARTITIONS).map(|p| story.cluster.owner("q", p)).collect();
    assert_eq!(before.iter().zip(&after).filter(|(a, b)| a != b).count(), 2, "no more move than have to: {before:?} {after:?}");
    story.go_on();
    assert_eq!(story.end("one comes").pushed_twice, 0, "an orderly hand-over pushes nothing twice");
}

/// Each of three brokers is stopped in order and started again, under load.
#[test]
fn brokers_are_stopped_in_order() {
    let rounds = long_form("HQUEUE_LONG_RESTARTS").unwrap_or(1);
    let mut story = begin(3);
    let checkpoints = Rising::watch(&story.cluster.hand, "q", PARTITIONS, "s");
    for _ in 0..rounds {
        for n in 0..3 {
            story.go_on();
            let others: Vec<usize> = (0..3).filter(|other| *other != n).collect();
            let began = Instant::now();
            let stop = story.cluster.brokers[n].stop();
            story.cluster.wait_until_even("q", PARTITIONS, &others);
            let moved = began.elapsed();
            story.go_on();
            story.cluster.brokers[n].restart();
            story.cluster.wait_until_even("q", PARTITIONS, &[0, 1, 2]);
            println!(
                "broker {n}: stopped in {stop:?}, all at the others after {moved:?}, even again {:?} after",
                began.elapsed()
            );
        }
    }
    story.go_on();
    println!("{} checkpoints, none below the one before", checkpoints.finish());
    assert_eq!(story.end("stopped in order").pushed_twice, 0, "an orderly stop writes how far it came");
}

/// A call that takes long holds up the hand-over of its own partition, and of no other.
#[test]
fn a_slow_call_holds_up_its_own_partition_only() {
    let slow = Duration::from_secs(4);
    let mut cluster = Cluster::in_hbase(2, SESSION, HBase::shared().gateway());
    cluster.brokers[0].create("q", 4);
    cluster.wait_until_even("q", 4, &[0, 1]);
    let consumer =
        Consumer::answering(move |messages| if messages[0].text() == "slow" { Answer::Slow(slow, 0) } else { Answer::Value(0) });
    // A connection for each partition, so that calls do not wait for each other.
    let address = serde_json::json!({"address": consumer.address(), "connections": 4}).to_string();
    cluster.register("q", 4, "s", &address);
    let had: Vec<i16> = (0..4).filter(|p| cluster.owner("q", *p) == Some(0)).collect();
    cluster.brokers[0].put("q", had[1], &["first"]);
    wait("it is served", PATIENCE, || consumer.has("first"));
    cluster.brokers[0].put("q", had[0], &["slow"]);
    wait("it is under way", PATIENCE, || consumer.calls().iter().any(|c| c.messages[0].text() == "slow"));
    let began = Instant::now();
    cluster.brokers[0].terminate();
    wait("the other partition goes on", PATIENCE, || cluster.owner("q", had[1]) == Some(1));
    let quick = began.elapsed();
    cluster.brokers[1].put("q", had[1], &["second"]);
    wait("and is pushed", PATIENCE, || consumer.has("second"));
    println!("handed over after {quick:?}, pushed by the other after {:?}", began.elapsed());
    assert!(began.elapsed() < slow, "it waited for a call of another partition");
    assert_eq!(cluster.owner("q", had[0]), Some(0), "the slow one is still being called");
    wait("the slow one follows", PATIENCE, || cluster.owner("q", had[0]) == Some(1));
    assert_eq!(cluster.brokers[0].ended(PATIENCE).code(), Some(0));
    cluster.brokers[1].wait_for_no_lag("q", "s");
    assert_eq!(check_order(&consumer.accepted()), 0, "and is not called twice");
}

/// Moves by hand under load; with the balancer off nothing else moves, and it evens out when it is on.
#[test]
fn moved_by_hand() {
    let mut story = begin(2);
    story.go_on();
    let cluster = &story.cluster;
    let [from, to] = [cluster.owner("q", 0).unwrap(), 1 - cluster.owner("q", 0).unwrap()];
    let name = cluster.name(to);
    let began = Instant::now();
    cluster.brokers[from].run(&["move", "q", "0", &name]).text();
    assert_eq!(cluster.owner("q", 0), Some(to));
    println!("moved in {:?}", began.elapsed());
    let address = cluster.brokers[from].address();
    cluster.brokers[to].run(&["move", "q", "0", &address]).text();
    assert_eq!(cluster.owner("q", 0), Some(from), "by its address, and back");
    story.go_on();
    cluster.brokers[0].run(&["move", "q", "0", "nobody"]).refused(1, &["nobody", &name]);
    cluster.brokers[0].run(&["move", "q", "6", &name]).refused(1, &["no partition 6"]);
    assert_eq!(cluster.brokers[0].run(&["balancer", "status"]).text(), "on\n");
    cluster.brokers[0].run(&["balancer", "off"]).text();
    assert_eq!(cluster.brokers[1].run(&["balancer", "status"]).text(), "off\n");
    story.cluster.add();
    let cluster = &story.cluster;
    let third = cluster.name(2);
    cluster.brokers[1].run(&["move", "q", "1", &third]).text();
    assert_eq!((0..PARTITIONS).filter(|p| cluster.owner("q", *p) == Some(2)).count(), 1, "nothing moves by itself");
    story.go_on();
    cluster.brokers[2].run(&["balancer", "on"]).text();
    cluster.wait_until_even("q", PARTITIONS, &[0, 1, 2]);
    story.go_on();
    assert_eq!(story.end("moved by hand").pushed_twice, 0);
}

/// Many queues go to a broker that comes, all at once.
#[test]
fn many_queues_are_spread_at_once() {
    let queues = 12;
    let mut cluster = Cluster::in_hbase(1, SESSION, HBase::shared().gateway());
    for n in 0..queues {
        cluster.brokers[0].create(&format!("q{n}"), 2);
    }
    let began = Instant::now();
    cluster.add();
    wait("each has half of each queue", PATIENCE, || {
        (0..queues)
            .all(|n| (0..2).map(|p| cluster.owner(&format!("q{n}"), p)).collect::<std::collections::BTreeSet<_>>().len() == 2)
    });
    println!("{queues} queues are spread {:?} after the second broker was started", began.elapsed());
    for n in 0..queues {
        for p in 0..2 {
            cluster.brokers[n % 2].put(&format!("q{n}"), p, &["x"]);
        }
    }
}

//! Three brokers are stopped in order and started again, one after the other, under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::load::{Load, Puts};
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::{Cluster, Consumer, PATIENCE, long_form, wait};

/// Behind a restart: until the others have seen that the partition is back.
const NOTICE: Duration = Duration::from_secs(3);

#[test]
fn puts_go_on_and_nothing_is_lost() {
    let rounds = long_form("HQUEUE_LONG_RESTARTS").unwrap_or(1);
    let mut cluster = Cluster::start(3);
    cluster.brokers[0].create("q", 6);
    let consumer = Consumer::start();
    cluster.register("q", 6, "s", &consumer.address());
    let acknowledged = Arc::new(Acknowledged::default());
    let ports: Vec<u16> = cluster.brokers.iter().map(|b| b.port()).collect();
    let pause = Duration::from_millis(10);
    // Anywhere, by any broker; and into a partition of each broker, by the others.
    let anywhere: Vec<Load> = (0..3)
        .map(|n| {
            let mut ports = ports.clone();
            ports.rotate_left(n);
            Load::start(&format!("any{n}"), &ports, Puts { queue: "q", partition: -1, pause }, &acknowledged)
        })
        .collect();
    let pinned: Vec<Load> = (0..3)
        .map(|n| {
            let others: Vec<u16> = (0..3).filter(|o| *o != n).map(|o| ports[o]).collect();
            let partition = cluster.partition_of("q", n);
            Load::start(&format!("pinned{n}"), &others, Puts { queue: "q", partition, pause }, &acknowledged)
        })
        .collect();
    let mut away = vec![Vec::new(); 3];
    for _ in 0..rounds {
        for n in 0..3 {
            pinned.iter().chain(&anywhere).for_each(|load| load.wait_for(3));
            let began = Instant::now();
            let stop = cluster.brokers[n].stop();
            cluster.brokers[n].restart();
            cluster.wait_until_complete();
            println!("broker {n}: stopped in {stop:?}, back after {:?}", began.elapsed());
            pinned[n].wait_for(3);
            away[n].push((began, Instant::now() + NOTICE));
        }
    }
    for (n, load) in anywhere.into_iter().enumerate() {
        let mut outcomes = load.finish();
        // A call that was under way to a broker when it closed its door: its fate is unknown, and that is said.
        outcomes.refused.retain(|(_, reason)| !reason.contains("may have been carried out"));
        assert!(outcomes.refused.is_empty(), "puts that may go anywhere were refused: {:?}", outcomes.refused);
        println!(
            "any{n}: the slowest put {:?}, the longest gap {:?}, {} unknown",
            outcomes.slowest, outcomes.longest_gap, outcomes.unknown
        );
    }
    for (n, load) in pinned.into_iter().enumerate() {
        let outcomes = load.finish();
        for (at, reason) in &outcomes.refused {
            assert!(away[n].iter().any(|(from, to)| from < at && at < to), "its own broker was there: {reason}");
        }
        println!("pinned{n}: {} refused, the longest gap {:?}", outcomes.refused.len(), outcomes.longest_gap);
    }
    cluster.brokers[0].wait_for_no_lag("q", "s");
    wait("checkpoints are written", PATIENCE, || cluster.brokers.iter().all(|b| b.subscription("q", "s").state() == "active"));
    let stored = cluster.scan_all("q", 6);
    check_rising(&stored);
    acknowledged.check_all_in(&stored, "stored");
    let accepted = consumer.accepted();
    let again = check_order(&accepted);
    acknowledged.check_all_in(&accepted, "pushed");
    println!("{} acknowledged, {} stored, {again} pushed again", acknowledged.count(), stored.len());
    assert_eq!(again, 0, "an orderly stop writes how far it came");
}

//! A broker that does not reach ZooKeeper, while clients and the other broker reach it as ever.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::cluster::{SHORT, fresh_root, shared_zookeeper};
use hqueue_tests::load::{Load, Puts};
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::zookeeper::{Proxy, Way};
use hqueue_tests::{Cluster, Consumer, PATIENCE, long_form, wait};

const SESSION: Duration = Duration::from_secs(3);

/// Its way to ZooKeeper is silent for three sessions while clients put to both brokers directly. It refuses before its session can
/// end, loses nothing that it acknowledged, does not disturb the other, and works again by itself.
#[test]
fn refuses_in_time_and_comes_back() {
    let rounds = long_form("HQUEUE_LONG_CUTS").unwrap_or(1);
    let server = shared_zookeeper();
    let (way, root) = (Proxy::to(server.address()), fresh_root());
    let ways = vec![format!("{}{root}", way.host()), format!("{}{root}", server.host())];
    let cluster = Cluster::by(format!("{}{root}", server.host()), ways, SHORT);
    cluster.brokers[1].create("q", 2);
    let consumer = Consumer::start();
    cluster.register("q", 2, "s", &consumer.address());
    let acknowledged = Arc::new(Acknowledged::default());
    let partition = cluster.partition_of("q", 0);
    let load = |n: usize, partition| {
        let puts = Puts { queue: "q", partition, pause: Duration::from_millis(5) };
        Load::start(&format!("load{n}"), &[cluster.brokers[n].port()], puts, &acknowledged)
    };
    let (cut_off, other) = (load(0, partition), load(1, 1 - partition));
    let pid = cluster.brokers[0].pid();
    for round in 0..rounds {
        cut_off.wait_for(20);
        let refused_before = cut_off.outcomes().refused.len();
        way.set(Way::Held);
        let held = Instant::now();
        let mut gone = None;
        wait("three sessions pass", PATIENCE * 2, || {
            if gone.is_none() && cluster.owner_session("q", partition).is_none() {
                gone = Some(Instant::now());
            }
            held.elapsed() > 3 * SESSION
        });
        let gone = gone.expect("the server has ended the session");
        let outcomes = cut_off.outcomes();
        let (first_at, first) = outcomes.refused.get(refused_before).cloned().expect("puts are refused");
        let last_acknowledged = *outcomes.times.last().unwrap();
        println!(
            "round {round}: refused {:?} after the cut, last acknowledged {:?}, the session ended after {:?}",
            first_at - held,
            last_acknowledged - held,
            gone - held
        );
        assert!(first_at < gone && last_acknowledged < gone, "it acted past its session");
        assert!(first.contains("cut off from ZooKeeper") || first.contains("during the put"), "{first}");
        let late = consumer.calls().iter().filter(|c| c.at > gone && c.messages[0].partition == partition).count();
        assert_eq!(late, 0, "it pushed past its session");
        says_so(&cluster);
        way.set(Way::Open);
        let opened = Instant::now();
        cut_off.wait_for(20);
        println!("round {round}: works again {:?} after the cut is over", opened.elapsed());
    }
    let log = cluster.brokers[0].log();
    for said in ["offline: this broker cannot be sure of its session", "sure of a session with ZooKeeper again"] {
        assert_eq!(log.lines().filter(|line| line.contains(said)).count(), rounds, "{said}: once a cut");
    }
    let other_log = cluster.brokers[1].log();
    assert!(other_log.contains("the partitions that it has are offline until it is back"), "the other says so, too");
    assert_eq!(cluster.brokers[0].pid(), pid);
    let (cut_off, other) = (cut_off.finish(), other.finish());
    if cluster.brokers[1].log().contains("was given up") {
        println!("the machine stood still for too long: the other broker has lost a session, too");
    } else {
        assert!(other.refused.is_empty(), "the other broker was disturbed: {:?}", other.refused);
    }
    println!(
        "the other's slowest put: {:?}; {} acknowledged, {} refused",
        other.slowest,
        acknowledged.count(),
        cut_off.refused.len()
    );
    cluster.brokers[1].wait_for_no_lag("q", "s");
    let stored = cluster.scan_all("q", 2);
    check_rising(&stored);
    acknowledged.check_all_in(&stored, "stored");
    let accepted = consumer.accepted();
    println!("{} pushed twice", check_order(&accepted));
    acknowledged.check_all_in(&accepted, "pushed");
}

/// What it says while it is cut off.
fn says_so(cluster: &Cluster) {
    let broker = &cluster.brokers[0];
    let partition = cluster.partition_of("q", 0).to_string();
    broker.run(&["put", "q", "--topic", "t", "--partition", &partition, "x"]).refused(1, &["offline", "ZooKeeper"]);
    let status = broker.run(&["status"]);
    assert_eq!(status.code, Some(0), "{status}");
    assert!(status.err.contains("cut off"), "{status}");
    // The other broker tells why, too.
    cluster.brokers[1].run(&["put", "q", "--topic", "t", "--partition", &partition, "x"]).refused(1, &["offline"]);
    let location = cluster.brokers[1].run(&["locations", "q", "--format", "json"]).json();
    assert_eq!(location["locations"][partition.parse::<usize>().unwrap()], "", "nobody serves it");
    // Puts that may go anywhere go to the other.
    assert_eq!(broker.run(&["put", "q", "--topic", "t", "anywhere"]).code, Some(0));
}

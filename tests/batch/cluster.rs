//! Tasks run where the messages lie: at the broker, or at the region server of HBase. On a real cluster of YARN.

use std::net::Ipv4Addr;

use hqueue_tests::cluster::SESSION;
use hqueue_tests::hbase::HBase;
use hqueue_tests::zookeeper::{Proxy, ZooKeeper};
use hqueue_tests::{Broker, Meeting, PATIENCE, Setup, wait};

use crate::program::{Done, Program, word_count};
use crate::queues::{PARTITIONS, count, fill};

/// The cluster has a node at each of these. It calls the first one by its name.
const NODES: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 3)];

/// Nobody is there.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn meeting(zookeeper: &ZooKeeper, root: &str) -> Setup {
    let meeting = Meeting { zookeeper: format!("{}{root}", zookeeper.host()), session_timeout: SESSION.to_owned() };
    Setup { meeting: Some(meeting), ..Setup::default() }
}

/// Messages in HBase, in a namespace of their own.
fn in_hbase(namespace: &str) -> Vec<String> {
    ["--store", "hbase", "--hbase", HBase::shared().gateway(), "--hbase-namespace", namespace].map(str::to_owned).to_vec()
}

fn run(broker: &Broker) -> Done {
    let host = format!("test.host={}", NODES[1]);
    let words = ["-D", "test.folder={}", "-D", &host, &broker.address(), "q", "{}/out"];
    Program::start("cluster", "OnYarn", &words).end().succeeded()
}

/// Two brokers at nodes of the cluster: every map is data-local.
#[test]
#[ignore = "the long suite: fetches a cluster of YARN"]
fn maps_run_where_the_partitions_lie() {
    let zookeeper = ZooKeeper::start();
    let mut ways = Vec::new();
    let brokers = NODES.map(|node| {
        Broker::advertising(meeting(&zookeeper, "/local"), |port| {
            ways.push(Proxy::from_host(node, (Ipv4Addr::LOCALHOST, port).into()));
            ways.last().expect("one").host()
        })
    });
    wait("both are there", PATIENCE, || brokers[0].run(&["status"]).text().matches(" online ").count() >= 2);
    let lines = fill(&brokers[0], 40);
    let done = run(&brokers[0]);
    assert!(done.counts() == count(&lines));
    let splits = done.lines_of("split");
    let on = |node: &Ipv4Addr| splits.iter().filter(|split| split.ends_with(&format!(" on {node}"))).count();
    assert_eq!(NODES.each_ref().map(on), [2, 2], "{splits:?}");
    check_maps(&done, u64::from(PARTITIONS.unsigned_abs()));
    assert_eq!(done.counter("MESSAGES_READ"), lines.len() as u64);
}

/// A broker at a host that the cluster does not have: the same counts, and nothing is data-local.
#[test]
#[ignore = "the long suite: fetches a cluster of YARN"]
fn elsewhere_nothing_is_local() {
    let zookeeper = ZooKeeper::start();
    let broker = Broker::advertising(meeting(&zookeeper, "/elsewhere"), |port| format!("{NOWHERE}:{port}"));
    let lines = fill(&broker, 8);
    let done = run(&broker);
    assert!(done.counts() == count(&lines));
    check_maps(&done, 0);
}

/// Messages in HBase: maps run where the region servers are, wherever the broker is.
#[test]
#[ignore = "the long suite: fetches a cluster of YARN, and HBase"]
fn maps_run_where_the_regions_lie() {
    let zookeeper = ZooKeeper::start();
    let setup = Setup { flags: in_hbase("on_yarn"), ..meeting(&zookeeper, "/regions") };
    let broker = Broker::advertising(setup, |port| format!("{NOWHERE}:{port}"));
    let lines = fill(&broker, 40);
    let done = run(&broker);
    assert!(done.counts() == count(&lines));
    let splits = done.lines_of("split");
    // As HBase calls it here.
    assert!(splits.iter().all(|split| split.ends_with(" on localhost")), "{splits:?}");
    check_maps(&done, u64::from(PARTITIONS.unsigned_abs()));
    assert_eq!(done.counter("MESSAGES_READ"), lines.len() as u64);
}

/// All of the project's text in HBase, by LocalJobRunner: the counts are those of a plain program.
#[test]
#[ignore = "the long suite: fetches HBase"]
fn a_queue_in_hbase_is_counted() {
    let broker = Broker::with(Setup { flags: in_hbase("local"), ..Setup::default() });
    let lines = fill(&broker, usize::MAX);
    let done = word_count(&broker, "q", &[]).succeeded();
    assert!(done.counts() == count(&lines), "{:?}", done.lines);
    assert_eq!(done.counter("MESSAGES_READ"), lines.len() as u64);
    assert_eq!(done.counter("REOPENED_SCANNERS"), 0);
}

fn check_maps(done: &Done, local: u64) {
    let counters = done.lines_of("counter");
    println!("{counters:?}");
    assert_eq!(done.counter("TOTAL_LAUNCHED_MAPS"), u64::from(PARTITIONS.unsigned_abs()), "{counters:?}");
    assert_eq!(done.counter("DATA_LOCAL_MAPS"), local, "{counters:?}");
}

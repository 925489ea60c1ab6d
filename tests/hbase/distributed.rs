//! HBase as processes of their own on HDFS, whose parts are killed while clients put and a subscriber is pushed to: the long suite, `tests/hbase/run`.
//! The brokers meet in HBase's ZooKeeper, as they may in an installation.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hqueue_tests::cluster::SHORT;
use hqueue_tests::hbase::HBase;
use hqueue_tests::{Cluster, wait};

use crate::story::Story;

const PARTITIONS: i16 = 4;

/// HBase needs a minute and a half where most of it was killed, more on a busy machine.
const RECOVERY: Duration = Duration::from_secs(300);

/// They harm what they share.
static TURN: Mutex<()> = Mutex::new(());

/// What is killed at once, and how long it stays away; `None`: until clients go on without it.
struct Failure {
    what: &'static str,
    victims: Vec<String>,
    away: Option<Duration>,
}

impl Failure {
    fn of(what: &'static str, victims: &[&str], away: Option<Duration>) -> Self {
        Self { what, victims: victims.iter().map(ToString::to_string).collect(), away }
    }
}

/// Where the regions of a table are: `regionserver1` or `regionserver2`, each once.
fn region_servers_of(table: &str) -> Vec<String> {
    let hbase = HBase::shared();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hbase/java/Regions.java");
    let ports = hbase.script("java", &[source.to_str().unwrap(), table], &[]);
    let named = |name: &str| {
        let address = hbase.address_of(name);
        ports.lines().any(|port| address.ends_with(&format!(":{port}"))).then(|| name.to_owned())
    };
    ["regionserver1", "regionserver2"].into_iter().filter_map(named).collect()
}

fn story() -> Story {
    let hbase = HBase::shared();
    assert!(hbase.is_distributed(), "HQUEUE_TEST_HBASE names no folder of `scripts/hbase start FOLDER distributed`");
    Story::begin(Cluster::in_hbase_on(&hbase.zookeeper(), 2, SHORT, hbase.gateway()), PARTITIONS)
}

/// Kills, waits, starts again, and counts.
fn survive(failure: &Failure) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (hbase, story) = (HBase::shared(), story());
    let victims: Vec<&str> = failure.victims.iter().map(String::as_str).collect();
    story.go_on();
    println!("{}: killing {}", failure.what, victims.join(", "));
    hbase.script("kill", &victims, &[]);
    let killed = Instant::now();
    match failure.away {
        Some(away) => wait("it is away", away * 2, || killed.elapsed() >= away),
        None => drop(story.go_on_within(RECOVERY)),
    }
    println!("starting again after {:.1?}", killed.elapsed());
    hbase.script("restart", &victims, &[]);
    println!("started {:.1?} after the kill", killed.elapsed());
    story.go_on_within(RECOVERY);
    println!("all go on {:.1?} after the kill", killed.elapsed());
    story.end(failure.what);
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn a_region_server_is_killed() {
    let meta = region_servers_of("hbase:meta");
    let other = ["regionserver1", "regionserver2"].into_iter().find(|name| meta != [*name]).unwrap();
    survive(&Failure::of("a region server", &[other], None));
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn the_region_server_with_meta_is_killed() {
    survive(&Failure { what: "the region server with hbase:meta", victims: region_servers_of("hbase:meta"), away: None });
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn the_master_is_killed() {
    survive(&Failure::of("the master", &["master"], None));
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn the_gateway_is_killed() {
    survive(&Failure::of("the only gateway", &["gateway"], Some(Duration::from_secs(5))));
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn zookeeper_is_killed() {
    survive(&Failure::of("ZooKeeper, HBase's and the brokers'", &["zookeeper"], Some(Duration::from_secs(5))));
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn all_of_hbase_is_killed() {
    let all = ["regionserver1", "regionserver2", "master", "gateway"];
    survive(&Failure::of("all of HBase", &all, Some(Duration::from_secs(5))));
}

#[test]
#[ignore = "takes HBase in processes of their own: tests/hbase/run"]
fn all_but_the_brokers_is_killed() {
    let all = ["zookeeper", "namenode", "datanode", "regionserver1", "regionserver2", "master", "gateway"];
    survive(&Failure::of("all of HBase, HDFS and ZooKeeper", &all, Some(Duration::from_secs(5))));
}

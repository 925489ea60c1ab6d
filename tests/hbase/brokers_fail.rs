//! A broker that is killed, one that stands still, and HBase's gateway that goes away, each under load: nothing that was acknowledged is
//! lost, and everything goes on.

use std::time::{Duration, Instant};

use hqueue_tests::cluster::{self, SHORT};
use hqueue_tests::hbase::HBase;
use hqueue_tests::rising::Rising;
use hqueue_tests::{Cluster, PATIENCE, long_form, wait};

use crate::story::Story;

const SESSION: Duration = Duration::from_secs(3);
const PARTITIONS: i16 = 4;

/// `kill -9` of one of three brokers, and it comes back. The long form is `failover` of the benchmarks.
#[test]
fn a_broker_is_killed() {
    match long_form("HQUEUE_LONG_BROKER_KILLS") {
        None => killed(2, SESSION),
        Some(kills) => [SESSION, 2 * SESSION].into_iter().for_each(|session| killed(kills, session)),
    }
}

fn killed(kills: usize, session: Duration) {
    let cluster = Cluster::in_hbase(3, &format!("{}s", session.as_secs()), HBase::shared().gateway());
    let mut story = Story::begin(cluster, PARTITIONS);
    let checkpoints = Rising::watch(&story.cluster.hand, "q", PARTITIONS, "s");
    let mut times = Vec::new();
    for kill in 0..kills {
        let victim = kill % 3;
        story.go_on();
        let had = story.had_by(victim);
        story.cluster.brokers[victim].kill();
        let killed = Instant::now();
        // What it had sent is over by then.
        let pushed = story.pushed_again(&had, killed, session / 3);
        println!("kill {kill}: {} partitions, pushes go on after {pushed:?}", had.len());
        times.push(pushed);
        story.go_on();
        story.cluster.brokers[victim].restart();
        story.cluster.wait_until_even("q", PARTITIONS, &[0, 1, 2]);
    }
    times.sort();
    let median = times[times.len() / 2];
    println!("pushes go on: median {median:?}, worst {:?}; the session is {session:?}", times.last().unwrap());
    println!("{} checkpoints, none below the one before", checkpoints.finish());
    story.end(&format!("a broker is killed, session {session:?}"));
}

/// One of two brokers stands still for twice its session and goes on: it does not act for what is another's by then.
#[test]
fn a_broker_stands_still() {
    let stalls = long_form("HQUEUE_LONG_BROKER_STALLS").unwrap_or(1);
    let story = Story::begin(Cluster::in_hbase(2, SHORT, HBase::shared().gateway()), PARTITIONS);
    let checkpoints = Rising::watch(&story.cluster.hand, "q", PARTITIONS, "s");
    for _ in 0..stalls {
        story.go_on();
        let had = story.had_by(0);
        story.cluster.brokers[0].freeze();
        let frozen = Instant::now();
        // Loads that wait for its answer go on when it does.
        wait("the other has all", PATIENCE, || (0..PARTITIONS).all(|p| story.cluster.owner("q", p) == Some(1)));
        println!("{} partitions are at the other after {:?}", had.len(), frozen.elapsed());
        let ids: Vec<_> = (0..PARTITIONS).map(|p| story.cluster.brokers[1].put("q", p, &["from the other"])[0]).collect();
        wait("twice its session", PATIENCE, || frozen.elapsed() > SESSION * 2);
        story.cluster.brokers[0].thaw();
        let thawed = Instant::now();
        story.cluster.wait_until_even("q", PARTITIONS, &[0, 1]);
        println!("even again {:?} after it went on", thawed.elapsed());
        story.go_on();
        for (p, id) in (0..).zip(ids) {
            let found = story.cluster.brokers[0].scan("q", p);
            assert!(found.iter().any(|m| m.id == id && m.text() == "from the other"), "nothing has replaced {id} of {p}");
        }
    }
    println!("{} checkpoints, none below the one before", checkpoints.finish());
    story.end("a broker stands still");
}

/// The gateway of HBase is killed and comes back; there is a second one.
#[test]
fn a_gateway_is_killed_and_comes_back() {
    let hbase = HBase::shared();
    let name = format!("second-{}", hqueue_tests::free_port());
    let second = hbase.another_gateway(&name, &[]);
    for (what, gateways) in
        [("one of two gateways", format!("{second},{}", hbase.gateway())), ("the only gateway", second.clone())]
    {
        let story = Story::begin(Cluster::in_hbase(2, cluster::SESSION, &gateways), PARTITIONS);
        story.go_on();
        hbase.script("kill", &[&name], &[]);
        let killed = Instant::now();
        wait("its port is closed", PATIENCE, || std::net::TcpStream::connect(&second).is_err());
        if gateways.contains(',') {
            story.go_on();
            println!("{what} is killed: puts go on after {:?}", killed.elapsed());
        }
        hbase.script("restart", &[&name], &[]);
        let back = Instant::now();
        story.go_on();
        println!("{what} is back after {:?}: puts go on {:?} later", back - killed, back.elapsed());
        let outcomes = story.end(what).outcomes;
        let refused: Vec<_> = outcomes.iter().flat_map(|o| &o.refused).map(|(_, why)| why).collect();
        assert!(refused.is_empty(), "a gateway that is away for a moment costs time only: {refused:?}");
    }
    hbase.script("kill", &[&name], &[]);
}

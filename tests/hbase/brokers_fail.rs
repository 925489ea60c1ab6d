//! A broker that is killed, one that stands still, and HBase's gateway that goes away, each under load: nothing that was acknowledged is
//! lost, and everything goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::cluster::SHORT;
use hqueue_tests::hbase::HBase;
use hqueue_tests::load::{Load, Outcomes, Puts};
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::rising::Rising;
use hqueue_tests::{Cluster, Consumer, PATIENCE, long_form, wait};

const SESSION: Duration = Duration::from_secs(3);
const PARTITIONS: i16 = 4;

struct Story {
    cluster: Cluster,
    consumer: Consumer,
    acknowledged: Arc<Acknowledged>,
    /// One for each partition; each knows all brokers.
    loads: Vec<Load>,
}

impl Story {
    fn begin(brokers: usize, gateways: &str) -> Self {
        let cluster = Cluster::in_hbase(brokers, SHORT, gateways);
        cluster.brokers[0].create("q", PARTITIONS.into());
        cluster.wait_until_even("q", PARTITIONS, &(0..brokers).collect::<Vec<_>>());
        let consumer = Consumer::start();
        cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[("retry-max", "1s")]);
        let acknowledged = Arc::new(Acknowledged::default());
        let ports: Vec<u16> = cluster.brokers.iter().map(|b| b.port()).collect();
        let load = |partition| {
            let puts = Puts { queue: "q", partition, pause: Duration::from_millis(5) };
            Load::start(&format!("p{partition}"), &ports, puts, &acknowledged)
        };
        Self { loads: (0..PARTITIONS).map(load).collect(), cluster, consumer, acknowledged }
    }

    fn go_on(&self) {
        self.loads.iter().for_each(|load| load.wait_for(10));
    }

    fn load(&self, partition: i16) -> &Load {
        &self.loads[usize::try_from(partition).unwrap()]
    }

    /// How long it takes from `since` until something of each of these partitions is pushed that was put later.
    fn pushed_again(&self, partitions: &[i16], since: Instant) -> Duration {
        for &partition in partitions {
            wait("pushes go on", PATIENCE, || {
                let times = self.load(partition).outcomes().times;
                times.last().is_some_and(|last| *last > since)
                    && self
                        .consumer
                        .calls()
                        .iter()
                        .rev()
                        .any(|c| c.at > since && c.messages.iter().any(|m| m.partition == partition))
            });
        }
        let first = |partition: i16| {
            let calls = self.consumer.calls();
            let later =
                calls.iter().filter(|c| c.at > since + SESSION / 3 && c.messages.iter().any(|m| m.partition == partition));
            later.map(|c| c.at - since).min().unwrap_or_default()
        };
        partitions.iter().map(|p| first(*p)).max().unwrap_or_default()
    }

    fn end(self, what: &str) -> (usize, Vec<Outcomes>) {
        let outcomes: Vec<Outcomes> = self.loads.into_iter().map(Load::finish).collect();
        let broker = self.cluster.brokers.iter().find(|b| b.is_running()).unwrap();
        broker.wait_for_no_lag("q", "s");
        let stored = self.cluster.scan_all("q", PARTITIONS);
        check_rising(&stored);
        self.acknowledged.check_all_in(&stored, "stored");
        let accepted = self.consumer.accepted();
        let again = check_order(&accepted);
        self.acknowledged.check_all_in(&accepted, "pushed");
        let gap = outcomes.iter().map(|o| o.longest_gap).max().unwrap_or_default();
        println!("| {what} | {} | {} | {again} | {:.1} s | 0 |", self.acknowledged.count(), stored.len(), gap.as_secs_f64());
        (again, outcomes)
    }
}

fn head() {
    println!(
        "| what | acknowledged | stored | pushed twice | longest time without an acknowledgement | lost |\n|---|---|---|---|---|---|"
    );
}

/// `kill -9` of one of three brokers, and it comes back.
#[test]
fn a_broker_is_killed() {
    let kills = long_form("HQUEUE_LONG_BROKER_KILLS").unwrap_or(2);
    let mut story = Story::begin(3, HBase::shared().gateway());
    let checkpoints = Rising::watch(&story.cluster.hand, "q", PARTITIONS, "s");
    let mut times = Vec::new();
    for kill in 0..kills {
        let victim = kill % 3;
        story.go_on();
        let had: Vec<i16> = (0..PARTITIONS).filter(|p| story.cluster.owner("q", *p) == Some(victim)).collect();
        story.cluster.brokers[victim].kill();
        let killed = Instant::now();
        let pushed = story.pushed_again(&had, killed);
        println!("kill {kill}: {} partitions, pushes go on after {pushed:?}", had.len());
        times.push(pushed);
        story.go_on();
        story.cluster.brokers[victim].restart();
        story.cluster.wait_until_even("q", PARTITIONS, &[0, 1, 2]);
    }
    times.sort();
    let median = times[times.len() / 2];
    println!("pushes go on: median {median:?}, worst {:?}; the session is {SESSION:?}", times.last().unwrap());
    println!("{} checkpoints, none below the one before", checkpoints.finish());
    head();
    story.end("a broker is killed");
}

/// One of two brokers stands still for twice its session and goes on: it does not act for what is another's by then.
#[test]
fn a_broker_stands_still() {
    let stalls = long_form("HQUEUE_LONG_BROKER_STALLS").unwrap_or(1);
    let story = Story::begin(2, HBase::shared().gateway());
    let checkpoints = Rising::watch(&story.cluster.hand, "q", PARTITIONS, "s");
    for _ in 0..stalls {
        story.go_on();
        let had: Vec<i16> = (0..PARTITIONS).filter(|p| story.cluster.owner("q", *p) == Some(0)).collect();
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
    head();
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
        let story = Story::begin(2, &gateways);
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
        head();
        let (_, outcomes) = story.end(what);
        let refused: Vec<_> = outcomes.iter().flat_map(|o| &o.refused).map(|(_, why)| why).collect();
        assert!(refused.is_empty(), "a gateway that is away for a moment costs time only: {refused:?}");
    }
    hbase.script("kill", &[&name], &[]);
}

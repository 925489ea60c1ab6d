//! A broker that does not reach ZooKeeper, one that dies while it empties a queue, and starts and stops while HBase is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_protocol::generated::THQueueAdminServiceSyncClient;
use hqueue_tests::acknowledged::Acknowledged;
use hqueue_tests::cluster::{SESSION, SHORT, shared_zookeeper};
use hqueue_tests::hbase::HBase;
use hqueue_tests::load::{Load, Puts};
use hqueue_tests::order::{check_order, check_rising};
use hqueue_tests::zookeeper::{Proxy, Way};
use hqueue_tests::{Broker, Cluster, Consumer, PATIENCE, long_form, seed, wait};

fn loads(cluster: &Cluster, acknowledged: &Arc<Acknowledged>, brokers: &[usize], partitions: i16) -> Vec<Load> {
    let ports: Vec<u16> = brokers.iter().map(|n| cluster.brokers[*n].port()).collect();
    let puts = |partition| Puts { queue: "q", partition, pause: Duration::from_millis(5) };
    let name = |p| format!("b{brokers:?}p{p}");
    (0..partitions).map(|p| Load::start(&name(p), &ports, puts(p), acknowledged)).collect()
}

/// Its way to ZooKeeper is silent for three sessions, while clients put to it and to the other directly. It refuses before its session can
/// end; the other goes on with what it had, with ids above; it comes back by itself.
#[test]
fn a_broker_is_cut_off_from_zookeeper() {
    let session = Duration::from_secs(3);
    let server = shared_zookeeper();
    let way = Proxy::to(server.address());
    let cluster = Cluster::in_hbase_by(&server.host(), vec![way.host(), server.host()], SHORT, HBase::shared().gateway());
    cluster.brokers[1].create("q", 2);
    cluster.wait_until_even("q", 2, &[0, 1]);
    let consumer = Consumer::start();
    cluster.brokers[1].subscribe("q", "s", &consumer.address(), &[]);
    let acknowledged = Arc::new(Acknowledged::default());
    let (cut_off, other) = (loads(&cluster, &acknowledged, &[0], 2), loads(&cluster, &acknowledged, &[1], 2));
    for round in 0..long_form("HQUEUE_LONG_CUTS").unwrap_or(1) {
        cut_off.iter().chain(&other).for_each(|load| load.wait_for(20));
        let partition = (0..2).find(|p| cluster.owner("q", *p) == Some(0)).unwrap();
        let at = usize::try_from(partition).unwrap();
        way.set(Way::Held);
        let held = Instant::now();
        let mut taken = None;
        wait("three sessions pass", PATIENCE * 2, || {
            if taken.is_none() && cluster.owner("q", partition) == Some(1) {
                taken = Some(Instant::now());
            }
            held.elapsed() > 3 * session
        });
        let taken = taken.expect("the other has taken it");
        let last = *cut_off[at].outcomes().times.last().unwrap();
        println!("round {round}: last acknowledged {:?} after the cut, taken over after {:?}", last - held, taken - held);
        assert!(last < taken, "it acknowledged what was another's by then");
        other.iter().for_each(|load| load.wait_for(20));
        way.set(Way::Open);
        let opened = Instant::now();
        cluster.wait_until_even("q", 2, &[0, 1]);
        cut_off.iter().for_each(|load| load.wait_for(20));
        println!("round {round}: it has its share again {:?} after the cut is over", opened.elapsed());
    }
    cut_off.into_iter().chain(other).for_each(|load| drop(load.finish()));
    cluster.brokers[1].wait_for_no_lag("q", "s");
    let stored = cluster.scan_all("q", 2);
    check_rising(&stored);
    acknowledged.check_all_in(&stored, "stored");
    let accepted = consumer.accepted();
    println!("{} acknowledged, {} pushed twice", acknowledged.count(), check_order(&accepted));
    acknowledged.check_all_in(&accepted, "pushed");
}

/// A queue is emptied again and again under load, and the broker that does it is killed in the middle: the others go on, what they acknowledge
/// from then on is there, and ids go on rising.
#[test]
fn whoever_empties_a_queue_is_killed() {
    let kills = long_form("HQUEUE_LONG_EMPTYING_KILLS").unwrap_or(2);
    let mut random = seed("brokers_cut::whoever_empties_a_queue_is_killed");
    let mut cluster = Cluster::in_hbase(3, SHORT, HBase::shared().gateway());
    cluster.brokers[1].create("q", 3);
    cluster.wait_until_even("q", 3, &[0, 1, 2]);
    let mut highest = [None; 3];
    for kill in 0..kills {
        let before = Arc::new(Acknowledged::default());
        let under_way = loads(&cluster, &before, &[1, 2], 3);
        under_way.iter().for_each(|load| load.wait_for(10));
        let after = Duration::from_millis(random.u64(0..1500));
        let port = cluster.brokers[0].port();
        let empties = std::thread::spawn(move || {
            let Ok(mut admin) = hqueue_tests::gateway::admin(port) else { return false };
            admin.truncate_queue("q".into()).is_ok()
        });
        let began = Instant::now();
        wait("it is under way", PATIENCE, || began.elapsed() > after);
        cluster.brokers[0].kill();
        let done = empties.join().unwrap();
        under_way.into_iter().for_each(|load| drop(load.finish()));
        wait("nobody empties it any more", PATIENCE, || cluster.hand.get("/emptying/q").is_none());
        wait("all have owners", PATIENCE, || (0..3).all(|p| matches!(cluster.owner("q", p), Some(1 | 2))));
        let acknowledged = Arc::new(Acknowledged::default());
        let loads = loads(&cluster, &acknowledged, &[1, 2], 3);
        loads.iter().for_each(|load| load.wait_for(20));
        loads.into_iter().for_each(|load| drop(load.finish()));
        let stored = cluster.scan_all("q", 3);
        check_rising(&stored);
        acknowledged.check_all_in(&stored, "stored behind the kill");
        for message in &stored {
            let place = &mut highest[usize::try_from(message.partition).unwrap()];
            *place = (*place).max(Some(message.id));
        }
        for p in 0..3 {
            let id = cluster.brokers[1].put("q", p, &["next"])[0];
            assert!(Some(id) > highest[usize::try_from(p).unwrap()], "ids go on rising");
        }
        println!("kill {kill}: after {after:?}, done: {done}, {} stored", stored.len());
        cluster.brokers[0].restart();
        cluster.wait_until_even("q", 3, &[0, 1, 2]);
    }
    cluster.brokers[0].admin().truncate_queue("q".into()).unwrap();
    assert!(cluster.scan_all("q", 3).is_empty());
}

/// With HBase away a broker waits for it at its start, stops in time, and loses nothing.
#[test]
fn starts_and_stops_while_hbase_is_away() {
    let hbase = HBase::shared();
    let name = format!("away-{}", hqueue_tests::free_port());
    let gateway = hbase.another_gateway(&name, &[]);
    let mut cluster = Cluster::in_hbase(2, SESSION, &gateway);
    cluster.brokers[0].create("q", 2);
    cluster.wait_until_even("q", 2, &[0, 1]);
    let acknowledged = Arc::new(Acknowledged::default());
    let under_way = loads(&cluster, &acknowledged, &[0, 1], 2);
    under_way.iter().for_each(|load| load.wait_for(10));
    hbase.script("kill", &[&name], &[]);
    let status = cluster.brokers[1].run(&["status"]);
    assert_eq!(status.code, Some(0), "{status}");
    println!("stopped in {:?} while puts wait for HBase", cluster.brokers[0].stop());
    cluster.brokers[0].launch();
    wait("it says that it waits", PATIENCE, || Broker::log(&cluster.brokers[0]).contains("waiting for HBase"));
    hbase.script("restart", &[&name], &[]);
    cluster.brokers[0].wait_until_it_serves();
    cluster.wait_until_even("q", 2, &[0, 1]);
    under_way.iter().for_each(|load| load.wait_for(10));
    under_way.into_iter().for_each(|load| drop(load.finish()));
    let stored = cluster.scan_all("q", 2);
    check_rising(&stored);
    acknowledged.check_all_in(&stored, "stored");
    hbase.script("kill", &[&name], &[]);
}

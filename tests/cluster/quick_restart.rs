//! Killed and started again within a second, while the nodes of the old session still stand.

use std::time::{Duration, Instant};

use hqueue_protocol::generated::THQueueAdminServiceSyncClient;
use hqueue_tests::zookeeper::{Proxy, Way};
use hqueue_tests::{Broker, Cluster, Consumer, Follower, Hand, PATIENCE, Registered, cluster, wait, wait_for};

/// The session timeout of a broker: long against a restart.
const SESSION: Duration = Duration::from_secs(6);

/// That of a subscriber.
const SUBSCRIBER_SESSION: Duration = Duration::from_secs(10);

/// The session that a broker says it has.
fn session_of(broker: &Broker, name: &str) -> i64 {
    let status = broker.admin().cluster_status().unwrap();
    let this = status.brokers.unwrap().into_iter().find(|b| b.name.as_deref() == Some(name)).unwrap();
    i64::from_str_radix(this.session.unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// A broker: its node and its partitions belong to the living session at once, and stay when the old session ends.
#[test]
fn a_broker() {
    let mut cluster = Cluster::with_session(2, "6s");
    cluster.brokers[0].create("q", 2);
    let consumer = Consumer::start();
    cluster.register("q", 2, "s", &consumer.address());
    let (name, partition) = (cluster.name(1), cluster.partition_of("q", 1));
    cluster.brokers[0].put("q", partition, &["before"]);
    wait("it is pushed", PATIENCE, || consumer.has("before"));
    let old = session_of(&cluster.brokers[1], &name);
    let killed = Instant::now();
    cluster.brokers[1].kill();
    cluster.brokers[1].restart();
    let served = killed.elapsed();
    // The other broker's connection to it has broken.
    wait("it takes puts through the other", PATIENCE, || {
        cluster.brokers[0].run(&["put", "q", "--topic", "t", "--partition", &partition.to_string(), "after"]).code == Some(0)
    });
    wait("the next push", PATIENCE, || consumer.has("after"));
    println!("kill -9 and restart: serving after {served:?}, the next push after {:?}", killed.elapsed());
    let live = session_of(&cluster.brokers[1], &name);
    assert_ne!(live, old);
    let node = format!("/brokers/{name}");
    wait("longer than the old session lives", PATIENCE, || {
        assert_eq!(cluster.hand.get(&node).map(|n| n.owner_session), Some(Some(live)), "after {:?}", killed.elapsed());
        assert_eq!(cluster.owner_session("q", partition), Some(live), "after {:?}", killed.elapsed());
        killed.elapsed() > SESSION + Duration::from_secs(1)
    });
    assert_eq!(session_of(&cluster.brokers[1], &name), live);
    let candidates = cluster.hand.children("/balancer");
    assert_eq!(candidates.len(), 2, "no candidate of the old session is left: {candidates:?}");
}

/// A subscriber that registered with a broker which is killed: it is called again soon, and its nodes are those of the new session.
#[test]
fn a_broker_with_registrations() {
    let mut cluster = Cluster::with_session(2, "6s");
    cluster.brokers[0].create("q", 2);
    let follower =
        Follower::start(cluster.brokers[1].words(&["subscribe", "q", "--name", "s", "--from", "earliest", "--format", "json"]));
    let id = cluster.brokers[0].put("q", 0, &["before"])[0];
    assert_eq!(follower.json()["value"], "before");
    wait("the checkpoint is written", PATIENCE, || cluster.hand.checkpoint("q", 0, "s") == Some(id));
    let began = Instant::now();
    wait("its start is over: it renews for the first time after 3 s", PATIENCE, || began.elapsed() > Duration::from_secs(4));
    let addresses = || {
        (0..2).filter_map(|p| cluster.hand.get(&format!("/queues/q/{p}/s/address"))).map(|n| n.owner_session).collect::<Vec<_>>()
    };
    let old = addresses();
    assert_eq!(old.len(), 2);
    cluster.brokers[1].kill();
    cluster.brokers[1].restart();
    let restarted = Instant::now();
    wait("it has registered again", PATIENCE, || {
        let now = (0..2).flat_map(|p| {
            let at = format!("/queues/q/{p}/s");
            cluster
                .hand
                .children(&at)
                .into_iter()
                .filter(|n| n.starts_with("address"))
                .map(move |n| format!("{at}/{n}"))
                .collect::<Vec<_>>()
        });
        let now: Vec<_> = now.filter_map(|path| cluster.hand.get(&path)).map(|n| n.owner_session).collect();
        now.len() == 2 && now.iter().all(|s| !old.contains(s))
    });
    println!("registered anew {:?} after its broker was back", restarted.elapsed());
    for p in 0..2 {
        wait("puts go on", PATIENCE, || {
            cluster.brokers[0].run(&["put", "q", "--topic", "t", "--partition", &p.to_string(), &format!("after{p}")]).code
                == Some(0)
        });
    }
    let mut values = vec![follower.json()["value"].clone(), follower.json()["value"].clone()];
    values.sort_by_key(ToString::to_string);
    assert_eq!(values, ["after0", "after1"]);
    assert_eq!(follower.terminate().0, Some(0));
}

/// A subscriber's process dies and comes back on another port while its old address still stands.
struct Dead {
    cluster: Cluster,
    old: Consumer,
    /// Its session, which nobody closes.
    _session: Hand,
    way: Proxy,
    cut: Instant,
}

/// 1,000 messages wait for a subscriber whose process has died a moment ago.
fn dead() -> Dead {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 4);
    let way = Proxy::to(cluster::shared_zookeeper().address());
    let root = &cluster.zookeeper()[cluster.zookeeper().find('/').unwrap()..];
    let session = Hand::with_timeout(&format!("{}{root}", way.host()), SUBSCRIBER_SESSION);
    let mut old = Consumer::start();
    session.register(Registered::new("q", 4, "s", &old.address()));
    for p in 0..4 {
        cluster.brokers[0].put("q", p, &["first"]);
    }
    wait("it is served", PATIENCE, || old.count() == 4);
    cluster.brokers[0].wait_for_no_lag("q", "s");
    way.set(Way::Held);
    old.stop();
    let cut = Instant::now();
    for p in 0..4 {
        cluster.brokers[0].put("q", p, &vec!["m"; 250]);
    }
    Dead { cluster, old, _session: session, way, cut }
}

/// It takes the place of its dead self: writes its address over the old one.
#[test]
fn a_subscriber_on_another_port_takes_its_place() {
    let Dead { cluster, old, way, .. } = dead();
    let new = Consumer::start();
    let began = Instant::now();
    for p in 0..4 {
        let at = format!("/queues/q/{p}/s");
        cluster.hand.delete(&format!("{at}/address"));
        cluster.hand.ephemeral(&format!("{at}/address"), new.address());
    }
    wait("the new one has everything", Duration::from_secs(10), || new.count() >= 1000);
    println!("on the new port after {:?}", began.elapsed());
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!((new.count(), old.count()), (1000, 4), "each once");
    drop(way);
}

/// It registers beside its dead self, as the SDK does: it has everything at the latest when the old session has ended, and the old
/// node goes without trace.
#[test]
fn a_subscriber_on_another_port_stands_beside() {
    let Dead { cluster, old, way, cut, .. } = dead();
    let new = Consumer::start();
    let began = Instant::now();
    cluster.hand.register(Registered { suffix: "-2", ..Registered::new("q", 4, "s", &new.address()) });
    wait("its share comes at once", Duration::from_secs(10), || new.count() >= 500);
    let share = began.elapsed();
    assert!(cluster.hand.get("/queues/q/0/s/address").is_some(), "the old address still stands: {share:?}");
    wait("everything comes", SUBSCRIBER_SESSION + PATIENCE, || new.count() >= 1000);
    println!(
        "beside a dead address: its share after {share:?}, everything {:?} after the death ({SUBSCRIBER_SESSION:?} session)",
        cut.elapsed()
    );
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!((new.count(), old.count()), (1000, 4), "each once");
    wait("the old node is gone", SUBSCRIBER_SESSION + PATIENCE, || {
        (0..4).all(|p| cluster.hand.get(&format!("/queues/q/{p}/s/address")).is_none())
    });
    wait("only the new one is called", PATIENCE, || cluster.brokers[0].subscription("q", "s").endpoints() == [new.address()]);
    let status = wait_for("its trouble is over", PATIENCE, || {
        Some(cluster.brokers[0].subscription("q", "s")).filter(|s| s.state() == "active")
    });
    assert_eq!(status.lag(), 0);
    drop(way);
}

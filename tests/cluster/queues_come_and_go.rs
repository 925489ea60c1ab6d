//! Queues that are made and dropped at several brokers at once, and while brokers are away.

use std::collections::BTreeSet;
use std::path::Path;

use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TQueueSpec};
use hqueue_tests::cluster::SHORT;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Cluster, Consumer, PATIENCE, long_form, queue_spec, refusal, wait};

fn spec(name: &str, partitions: i32) -> TQueueSpec {
    queue_spec(name, partitions, 3600)
}

/// All brokers are asked for one name at once: one of them makes it, the others say that it exists.
#[test]
fn one_name_is_made_once() {
    let cluster = Cluster::start(2);
    for round in 0..5 {
        let name = format!("q{round}");
        let results: Vec<_> = std::thread::scope(|scope| {
            let create = |n: usize| {
                let (broker, name) = (&cluster.brokers[n % 2], &name);
                move || broker.admin().create_queue(spec(name, 4))
            };
            let threads: Vec<_> = (0..6).map(|n| scope.spawn(create(n))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1, "{results:?}");
        for refused in results.into_iter().filter(Result::is_err) {
            assert_eq!(refusal(refused).code, TErrorCode::EXISTS);
        }
        for broker in &cluster.brokers {
            broker.put(&name, 3, &["a"]);
        }
    }
}

/// Made, used, disabled and dropped in a circle, each step at a broker that knows of the last one only through ZooKeeper; at the same
/// time other clients try to do the same. What the one who succeeded did is so; what was put into an earlier queue never shows up in
/// a later one.
#[test]
fn made_and_dropped_in_a_circle() {
    let rounds = long_form("HQUEUE_LONG_CLUSTER_DROPS").unwrap_or(4);
    let cluster = Cluster::start(2);
    let [one, two] = &cluster.brokers[..] else { panic!("two brokers") };
    for round in 0..rounds {
        let (a, b) = if round % 2 == 0 { (one, two) } else { (two, one) };
        a.create("q", 4);
        for p in 0..4 {
            assert!(b.scan("q", p).is_empty(), "round {round}: messages of an earlier queue");
            b.put("q", p, &[format!("{round}")]);
        }
        b.admin().disable_queue("q".into()).unwrap();
        let dropped: Vec<_> = std::thread::scope(|scope| {
            let drops: Vec<_> = [a, b, a].into_iter().map(|x| scope.spawn(move || x.admin().drop_queue("q".into()))).collect();
            drops.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(dropped.iter().any(Result::is_ok), "{dropped:?}");
        for refused in dropped.into_iter().filter(Result::is_err) {
            let refused = refusal(refused);
            assert!([TErrorCode::NOT_FOUND, TErrorCode::BUSY].contains(&refused.code), "{refused:?}");
        }
        assert!(cluster.hand.get("/queues/q").is_none());
    }
    wait("no folder of a dropped queue is left", PATIENCE, || cluster.brokers.iter().all(|b| queue_folders(b) == 0));
}

fn queue_folders(broker: &Broker) -> usize {
    let folder = broker.data().join("queues");
    std::fs::read_dir(Path::new(&folder)).map_or(0, Iterator::count)
}

/// A queue is dropped, and another one of its name made, while a broker is away: when it is back it serves the new one and has
/// nothing of the old. (Messages of a name that nobody uses again are kept, and that is said: the root may be a wrong one.)
#[test]
fn dropped_and_made_anew_while_a_broker_is_away() {
    let mut cluster = Cluster::with_session(2, SHORT);
    for queue in ["gone", "anew"] {
        cluster.brokers[0].create(queue, 4);
        for p in 0..4 {
            cluster.brokers[0].put(queue, p, &["old"]);
        }
    }
    cluster.brokers[1].kill();
    wait("it is away", PATIENCE, || cluster.hand.children("/brokers").len() == 1);
    let one = &cluster.brokers[0];
    for queue in ["gone", "anew"] {
        one.admin().disable_queue(queue.into()).unwrap();
        one.admin().drop_queue(queue.into()).unwrap();
        assert!(cluster.hand.get(&format!("/queues/{queue}")).is_none(), "a broker that is away holds nothing up");
        assert_eq!(refusal(one.gateway().put_message(queue.into(), to_put("t", "v"))).code, TErrorCode::NOT_FOUND);
    }
    one.create("anew", 4);
    assert_eq!(cluster.assigned("anew"), [0; 4], "the one that is there gets all");
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    let two = &cluster.brokers[1];
    let kept = two.data().join("queues/gone");
    assert!(
        kept.exists() && two.log().contains(kept.to_str().unwrap()),
        "what nobody can tell from a wrong root is kept, and said"
    );
    let names: BTreeSet<_> = two.admin().list_queues().unwrap().into_iter().map(|q| q.name.unwrap()).collect();
    assert_eq!(names, BTreeSet::from([b"anew".to_vec()]));
    for p in 0..4 {
        assert!(two.scan("anew", p).is_empty());
        two.put("anew", p, &["new"]);
    }
    assert_eq!(cluster.scan_all("anew", 4).len(), 4);
}

/// A broker is killed in the middle of a drop: the queue is gone all the same, and for good.
#[test]
fn a_broker_dies_while_a_queue_is_dropped() {
    let mut cluster = Cluster::with_session(2, SHORT);
    cluster.brokers[0].create("q", 4);
    for p in 0..4 {
        cluster.brokers[0].put("q", p, &["old"]);
    }
    let consumer = Consumer::start();
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[]);
    cluster.brokers[0].admin().disable_queue("q".into()).unwrap();
    cluster.brokers[1].freeze();
    let mut admin = cluster.brokers[0].admin();
    let dropping = std::thread::spawn(move || admin.drop_queue("q".into()));
    wait("it is begun", PATIENCE, || {
        cluster.hand.get("/queues/q").is_none_or(|n| String::from_utf8_lossy(&n.payload).contains("dropping"))
    });
    cluster.brokers[1].kill();
    dropping.join().unwrap().unwrap();
    assert!(cluster.hand.get("/queues/q").is_none());
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    assert!(cluster.brokers[1].admin().list_queues().unwrap().is_empty());
}

/// Many queues at once over three brokers: everyone has about as many partitions.
#[test]
fn partitions_are_spread_evenly() {
    let cluster = Cluster::start(3);
    std::thread::scope(|scope| {
        for n in 0..3 {
            let broker = &cluster.brokers[n];
            scope.spawn(move || (0..6).for_each(|q| broker.create(&format!("q{n}-{q}"), 1 + q)));
        }
    });
    let mut counts = [0; 3];
    for n in 0..3 {
        for q in 0..6 {
            cluster.assigned(&format!("q{n}-{q}")).into_iter().for_each(|b| counts[b] += 1);
        }
    }
    let total: i32 = counts.iter().sum();
    assert_eq!(total, 3 * 21);
    assert!(counts.iter().all(|c| (18..=24).contains(c)), "{counts:?}");
}

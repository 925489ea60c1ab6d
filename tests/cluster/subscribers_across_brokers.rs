//! Subscribers whose partitions are at several brokers, some of them away.

use std::time::Duration;

use hqueue_protocol::client::{ClientError, ClientOptions, RpcClient};
use hqueue_protocol::generated::{TErrorCode, THQueueAdminServiceSyncClient, THQueueServiceSyncClient, TSubscriberSpec};
use hqueue_protocol::rpc::{AddSubscriber, AddSubscriberArgs};
use hqueue_tests::cluster::SHORT;
use hqueue_tests::gateway::registration;
use hqueue_tests::{Answer, Cluster, Consumer, Id, PATIENCE, refusal, wait};

const PARTITIONS: i16 = 4;

/// How long a slow call takes.
const CALL: Duration = Duration::from_millis(150);

fn spec(name: &str, consumer: &Consumer, from: &str) -> TSubscriberSpec {
    TSubscriberSpec {
        name: Some(name.into()),
        addresses: Some(vec![consumer.address()]),
        start_position: Some(from.to_owned()),
        ..TSubscriberSpec::default()
    }
}

/// A subscriber is deleted while both brokers have calls under way: when that returns, no call is under way and none comes any more,
/// though messages wait; all its nodes are gone; its name can be used again and begins anew.
#[test]
fn deleted_with_calls_in_flight() {
    let cluster = Cluster::start(2);
    let [one, two] = &cluster.brokers[..] else { panic!("two brokers") };
    one.create("q", PARTITIONS.into());
    for registered in [false, true] {
        let name = if registered { "registered" } else { "fixed" };
        let consumer = Consumer::answering(|_| Answer::Slow(CALL, 0));
        if registered {
            two.gateway().subscribe("q".into(), registration(name, &consumer.address())).unwrap();
        } else {
            one.subscribe("q", name, &consumer.address(), &[("batch-messages", "1")]);
        }
        for p in 0..PARTITIONS {
            one.put("q", p, &vec!["m"; 50]);
        }
        wait("calls of both brokers are under way", PATIENCE, || {
            let status = one.subscription("q", name);
            status.0.in_flight.unwrap() > 0 && consumer.call_count() >= 4
        });
        one.admin().delete_subscriber("q".into(), name.into()).unwrap();
        let (calls, ended) = (consumer.call_count(), std::time::Instant::now());
        let last = consumer.calls().into_iter().map(|call| call.at).max().unwrap();
        assert!(last + CALL <= ended, "{name}: a call is under way that began {:?} before", ended - last);
        for p in 0..PARTITIONS {
            assert_eq!(cluster.hand.get(&format!("/queues/q/{p}/{name}")), None);
            one.put("q", p, &["later"]);
        }
        assert_eq!(cluster.hand.get(&format!("/queues/q/subscribers/{name}")), None);
        wait("the brokers know", PATIENCE, || cluster.brokers.iter().all(|b| b.status("q").subscriptions.unwrap().is_empty()));
        wait("longer than a call takes", PATIENCE, || ended.elapsed() > Duration::from_millis(400));
        assert_eq!(consumer.call_count(), calls, "{name}: called after its end");
        let successor = Consumer::start();
        two.admin().add_subscriber("q".into(), spec(name, &successor, "latest")).unwrap();
        for p in 0..PARTITIONS {
            two.put("q", p, &["new"]);
        }
        wait("the successor is served", PATIENCE, || successor.count() == 4);
        assert_eq!(successor.values(), ["new"; 4]);
        two.admin().delete_subscriber("q".into(), name.into()).unwrap();
    }
}

/// A subscriber is added while a broker is away, from each kind of position: the partitions of that broker begin where it says, too.
#[test]
fn added_while_a_broker_is_away() {
    let mut cluster = Cluster::with_session(2, SHORT);
    cluster.brokers[0].create("q", PARTITIONS.into());
    let mut last: Vec<Id> = Vec::new();
    for p in 0..PARTITIONS {
        let ids = cluster.brokers[0].put("q", p, &[format!("{p}-0"), format!("{p}-1"), format!("{p}-2")]);
        last.push(ids[2]);
    }
    let away: Vec<i16> = (0..PARTITIONS).filter(|p| cluster.assigned("q")[*p as usize] == 1).collect();
    cluster.brokers[1].kill();
    wait("it is away", PATIENCE, || cluster.hand.children("/brokers").len() == 1);
    let newest = last.iter().max().unwrap();
    let positions = [
        ("all", "earliest".to_owned(), 3),
        ("new", "latest".to_owned(), 0),
        ("ago", "-10m".to_owned(), 3),
        ("id", newest.to_string(), 1),
    ];
    let consumers: Vec<Consumer> = positions
        .iter()
        .map(|(name, from, _)| {
            let consumer = Consumer::start();
            cluster.brokers[0].admin().add_subscriber("q".into(), spec(name, &consumer, from)).unwrap();
            consumer
        })
        .collect();
    assert_eq!(cluster.hand.text(&format!("/queues/q/{}/new", away[0])), "", "where latest is, only its broker can tell");
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    wait("latest is fixed", PATIENCE, || away.iter().all(|p| cluster.hand.checkpoint("q", *p, "new") == Some(last[*p as usize])));
    for p in 0..PARTITIONS {
        cluster.brokers[0].put("q", p, &[format!("{p}-later")]);
    }
    for ((name, _, old), consumer) in positions.iter().zip(&consumers) {
        cluster.brokers[0].wait_for_no_lag("q", name);
        for p in 0..PARTITIONS {
            let of_this: Vec<String> = consumer.values().into_iter().filter(|v| v.starts_with(&format!("{p}-"))).collect();
            let what = format!("{name}, partition {p}: {of_this:?}");
            assert!(of_this.contains(&format!("{p}-later")), "{what}");
            match *name {
                // Of every partition what is not older than the newest of all.
                "id" => assert!(of_this.len() <= 2, "{what}"),
                _ => assert_eq!(of_this.len(), old + 1, "{what}"),
            }
        }
    }
    assert_eq!(consumers[3].values().iter().filter(|v| !v.contains("later")).count(), 1, "the newest itself");
}

/// Deleted while a broker is away: it does not come back with the broker.
#[test]
fn deleted_while_a_broker_is_away() {
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    let consumer = Consumer::start();
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[]);
    for p in 0..PARTITIONS {
        cluster.brokers[0].put("q", p, &["a"]);
    }
    wait("all is pushed", PATIENCE, || consumer.count() == 4);
    cluster.brokers[1].kill();
    // Its node may still stand: the command must not hang on it, nor fail.
    cluster.brokers[0].admin().delete_subscriber("q".into(), "s".into()).unwrap();
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    for p in 0..PARTITIONS {
        cluster.brokers[0].put("q", p, &["b"]);
    }
    assert!(cluster.brokers[1].status("q").subscriptions.unwrap().is_empty());
    assert_eq!(refusal(cluster.brokers[1].admin().delete_subscriber("q".into(), "s".into())).code, TErrorCode::NOT_FOUND);
    assert_eq!(consumer.count(), 4);
    let all = cluster.hand.tree("/queues/q");
    assert!(all.iter().all(|(path, _)| !path.ends_with("/s")), "{all:?}");
}

/// The part of an addition that a broker is asked to do comes late: the command has given up. Nothing is written for the next one of the
/// name to begin at.
#[test]
fn a_part_that_comes_late_is_not_carried_out() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", PARTITIONS.into());
    let of_second: Vec<i16> = (0..PARTITIONS).filter(|p| cluster.assigned("q")[*p as usize] == 1).collect();
    let wanted = TSubscriberSpec {
        name: Some("s".into()),
        addresses: Some(Vec::new()),
        topics: Some(Vec::new()),
        partitions: Some(of_second.clone()),
        start_position: Some("earliest".to_owned()),
        options: Some(std::collections::BTreeMap::new()),
    };
    let args = AddSubscriberArgs { queue_name: b"q".to_vec(), spec: wanted };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let late = runtime.block_on(async {
        let peer = RpcClient::new(ClientOptions::new(vec![cluster.brokers[1].address()]));
        peer.call_owner::<AddSubscriber>(&args).await
    });
    assert!(
        matches!(&late, Err(ClientError::Refused { code, message }) if *code == TErrorCode::WRONG_STATE && message.contains("has ended")),
        "{late:?}"
    );
    assert!(of_second.iter().all(|p| cluster.hand.get(&format!("/queues/q/{p}/s")).is_none()));
}

//! What a subscriber can rely on, with messages in HBase: checkpoints and seeks over owners, dead letters, time to live, fetches, ids.

use std::time::Duration;

use hqueue_protocol::generated::{TFetch, THQueueServiceSyncClient, TMessageID};
use hqueue_tests::cluster::{SESSION, SHORT};
use hqueue_tests::hbase::HBase;
use hqueue_tests::letters::{QUICK, failing_at, letters, values};
use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Cluster, Consumer, PATIENCE, wait};

fn cluster(brokers: usize, session: &str) -> Cluster {
    Cluster::in_hbase(brokers, session, HBase::shared().gateway())
}

/// A checkpoint goes on at the next owner, and a seek moves it there.
#[test]
fn checkpoints_and_seeks_hold_over_owners() {
    let cluster = cluster(2, SESSION);
    let broker = &cluster.brokers[0];
    broker.create("q", 2);
    cluster.wait_until_even("q", 2, &[0, 1]);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    for p in 0..2 {
        broker.put("q", p, &["1", "2", "3"]);
    }
    broker.wait_for_no_lag("q", "s");
    let swap = |n: usize| {
        for p in 0..2 {
            let to = cluster.name(1 - cluster.owner("q", p).unwrap());
            cluster.brokers[n].run(&["move", "q", &p.to_string(), &to]).text();
        }
    };
    swap(0);
    for p in 0..2 {
        broker.put("q", p, &["4"]);
    }
    broker.wait_for_no_lag("q", "s");
    assert_eq!((consumer.count(), check_order(&consumer.accepted())), (8, 0), "they go on where the others were");
    consumer.forget();
    cluster.brokers[1].run(&["seek", "q", "s", "earliest"]).text();
    wait("all comes again", PATIENCE, || consumer.count() == 8);
    broker.wait_for_no_lag("q", "s");
    swap(1);
    consumer.forget();
    broker.run(&["pause", "q", "s"]).text();
    broker.put("q", 0, &["paused"]);
    swap(0);
    assert_eq!(cluster.brokers[1].subscription("q", "s").lag(), 1);
    assert_eq!(consumer.count(), 0, "it is paused at the next owner, too");
    broker.run(&["resume", "q", "s"]).text();
    wait("it goes on", PATIENCE, || consumer.has("paused"));
}

/// Poison goes to the dead-letter queue, whose one partition moves, too; letters are not made twice, and are redriven.
#[test]
fn dead_letters() {
    let mut cluster = cluster(2, SHORT);
    cluster.brokers[0].create("q", 2);
    cluster.wait_until_even("q", 2, &[0, 1]);
    let consumer = Consumer::answering(failing_at(|m| m.text() == "bad", Answer::Value(-1)));
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &QUICK);
    for p in 0..2 {
        cluster.brokers[0].put("q", p, &["a", "bad", "b"]);
    }
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!(values(&letters(&cluster.brokers[1], "q", "s")), ["bad", "bad"]);
    let keeper = cluster.owner("q.dlq", 0).unwrap();
    cluster.brokers[keeper].kill();
    let other = 1 - keeper;
    wait("its letters are at the other", PATIENCE, || cluster.owner("q.dlq", 0) == Some(other));
    let broker = &cluster.brokers[other];
    wait("they are listed", PATIENCE, || broker.run(&["dlq", "list", "q", "s"]).code == Some(0));
    assert_eq!(values(&letters(broker, "q", "s")).len(), 2);
    broker.put("q", 0, &["bad"]);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(values(&letters(broker, "q", "s")).len(), 3, "one more, and none twice");
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert!(letters(broker, "q", "s").is_empty());
}

/// What has expired is not read, and a subscriber that comes late is told how many it missed.
#[test]
fn messages_expire() {
    let cluster = cluster(2, SESSION);
    let broker = &cluster.brokers[0];
    broker.create_with_ttl("q", 2, 2);
    broker.subscribe("q", "late", "127.0.0.1:9", &[]);
    for p in 0..2 {
        broker.put("q", p, &["old"]);
    }
    wait("they expire", PATIENCE, || (0..2).all(|p| cluster.brokers[1].scan("q", p).is_empty()));
    let status = broker.subscription("q", "late").0;
    assert_eq!((status.lag_messages, status.expired_messages), (Some(0), Some(2)), "{status:?}");
}

/// A consumer that fetches, from any broker, over owners.
#[test]
fn fetches_and_commits() {
    let cluster = cluster(2, SESSION);
    let [a, b] = [&cluster.brokers[0], &cluster.brokers[1]];
    a.create("q", 1);
    a.run(&["add_subscriber", "q", "s", "--from", "earliest"]).text();
    a.put("q", 0, &["1", "2", "3"]);
    let what =
        |max| TFetch { subscriber: Some(b"s".to_vec()), max_messages: Some(max), wait_ms: Some(20_000), ..TFetch::default() };
    let next: TMessageID = {
        let fetched = b.gateway().fetch("q".into(), 0, what(2)).unwrap();
        assert_eq!(fetched.messages.unwrap().len(), 2);
        fetched.next_i_d.unwrap()
    };
    b.gateway().commit("q".into(), "s".into(), 0, next).unwrap();
    let to = cluster.name(1 - cluster.owner("q", 0).unwrap());
    a.run(&["move", "q", "0", &to]).text();
    let fetched = a.gateway().fetch("q".into(), 0, what(5)).unwrap().messages.unwrap();
    assert_eq!(fetched.len(), 1, "behind what was committed at the last owner");
    let next = a.gateway().fetch("q".into(), 0, what(5)).unwrap().next_i_d.unwrap();
    a.gateway().commit("q".into(), "s".into(), 0, next).unwrap();
    let waits = {
        let port = b.port();
        std::thread::spawn(move || {
            let mut gateway = hqueue_tests::gateway::gateway(port, hqueue_tests::Dialect::USUAL).unwrap();
            gateway.fetch(
                "q".into(),
                0,
                TFetch { subscriber: Some(b"s".to_vec()), max_messages: Some(5), wait_ms: Some(20_000), ..TFetch::default() },
            )
        })
    };
    a.put("q", 0, &["4"]);
    assert_eq!(waits.join().unwrap().unwrap().messages.unwrap().len(), 1, "a fetch that waits is woken");
}

/// Idle for longer than ids are reserved for, and then many at once on one connection: they keep their order.
#[test]
fn ids_are_reserved_again_after_a_rest() {
    let cluster = cluster(2, SESSION);
    let broker = &cluster.brokers[0];
    broker.create("q", 1);
    let first = broker.put("q", 0, &["first"])[0];
    let below = || -> i64 {
        let marks = cluster.hand.children("/marks");
        marks.iter().map(|name| cluster.hand.json(&format!("/marks/{name}"))["below"].as_i64().unwrap()).max().unwrap()
    };
    let reserved = below();
    assert!(first.timestamp < reserved && reserved < first.timestamp + 20_000, "a few seconds ahead: {first} {reserved}");
    let began = std::time::Instant::now();
    wait("it rests", PATIENCE, || began.elapsed() > Duration::from_secs(7));
    assert_eq!(below(), reserved, "not while it is idle");
    let lines: String = (0..2000).map(|n| format!("{n}\n")).collect();
    broker.run_with(&["put", "q", "--topic", "t", "--partition", "0", "-"], lines.as_bytes()).text();
    let texts: Vec<String> = broker.scan("q", 0).iter().skip(1).map(|m| m.text().to_owned()).collect();
    assert_eq!(texts, (0..2000).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(below() > reserved);
}

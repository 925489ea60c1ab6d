//! Dead letters where the dead-letter queue, the partition and the broker that is asked are three different ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hqueue_tests::letters::{QUICK, failing_at, letters, values};
use hqueue_tests::order::{by_partition, check_order};
use hqueue_tests::{Answer, Cluster, Consumer, Message, PATIENCE, wait};
use serde_json::json;

fn is_bad(message: &Message) -> bool {
    message.value.starts_with(b"bad")
}

/// A cluster with queue `q`, and one letter of each of its four partitions. Returns where the letters are.
fn with_letters(cluster: &Cluster, consumer: &Consumer) -> usize {
    cluster.brokers[0].create("q", 4);
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &QUICK);
    for partition in 0..4 {
        cluster.brokers[0].put("q", partition, &[format!("a{partition}"), format!("bad{partition}"), format!("b{partition}")]);
    }
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 8);
    cluster.assigned("q.dlq")[0]
}

fn four() -> BTreeSet<String> {
    (0..4).map(|p| format!("bad{p}")).collect()
}

/// Several connections to one endpoint: a message that ends its process takes the calls beside it along, and they are not to be blamed.
#[test]
fn who_is_beside_poison_on_another_connection_is_not_charged() {
    let cluster = Cluster::start(1);
    let broker = &cluster.brokers[0];
    broker.create("q", 6);
    let options = ["--retry-min", "20ms", "--retry-max", "50ms", "--max-attempts", "3", "--from", "earliest"];
    broker.run(&[&["add_subscriber", "q", "s", "--batch-messages", "5"], &options[..]].concat()).text();
    for partition in 0..6 {
        let mut texts: Vec<String> = (0..20).map(|n| format!("{partition}-{n}")).collect();
        if partition == 3 {
            texts[7] = "bad".to_owned();
        }
        broker.put("q", partition, &texts);
    }
    let consumer = Arc::new(Consumer::start());
    let weak = Arc::downgrade(&consumer);
    consumer.answer_with(move |messages| {
        if !messages.iter().any(is_bad) {
            // Long enough to be there when the process ends.
            return Answer::Slow(Duration::from_millis(30), 0);
        }
        // All connections end at once, as those of a process do.
        if let Some(consumer) = weak.upgrade() {
            consumer.close_connections();
        }
        Answer::Close
    });
    let address = json!({"address": consumer.address(), "connections": 4}).to_string();
    cluster.register("q", 6, "s", &address);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(values(&letters(broker, "q", "s")), ["bad"], "only the one that ends it");
    let came: BTreeSet<String> = consumer.values().into_iter().collect();
    assert_eq!(came.iter().filter(|text| *text != "bad").count(), 6 * 20 - 1);
    assert!(consumer.connections_ever() > 4, "there were several at a time");
}

#[test]
fn any_broker_lists_redrives_and_drops() {
    let cluster = Cluster::start(2);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    let at = with_letters(&cluster, &consumer);
    for broker in &cluster.brokers {
        let found = values(&letters(broker, "q", "s"));
        assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (4, four()));
        assert_eq!(broker.run(&["list", "--format", "json"]).json()["queues"].as_array().unwrap().len(), 1);
    }
    // Asked for at the broker that does not have them, while the subscriber still fails.
    let other = &cluster.brokers[1 - at];
    other.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["0 accepted", "-1"]);
    other.run(&["dlq", "redrive", "q", "nobody", "--yes"]).refused(1, &["nobody"]);
    assert_eq!(letters(other, "q", "s").len(), 4);
    consumer.answer_all();
    consumer.forget();
    assert!(other.run(&["dlq", "redrive", "q", "s", "--yes"]).err.contains("4 accepted"));
    assert_eq!(consumer.values().into_iter().collect::<BTreeSet<_>>(), four());
    assert_eq!(by_partition(&consumer.accepted()).len(), 4, "from the owner of each partition");
    assert!(letters(&cluster.brokers[at], "q", "s").is_empty());

    consumer.answer_with(|_| Answer::Value(-3));
    for partition in 0..4 {
        cluster.brokers[1].put("q", partition, &["bad again"]);
    }
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert!(other.run(&["dlq", "drop", "q", "s", "--yes"]).err.contains("4 removed"));
    assert!(letters(&cluster.brokers[0], "q", "s").is_empty() && letters(&cluster.brokers[1], "q", "s").is_empty());
    cluster.brokers[0].run(&["disable", "q"]).text();
    cluster.brokers[1].run(&["drop", "q", "--yes"]).text();
    wait("letters go with their queue", PATIENCE, || cluster.hand.get("/queues/q.dlq").is_none());
}

/// As long as a letter cannot be kept its partition waits; those at the broker that has the letters go on.
#[test]
fn a_partition_waits_for_the_broker_that_keeps_its_letters() {
    let mut cluster = Cluster::start(2);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    let at = with_letters(&cluster, &consumer);
    let partition = cluster.partition_of("q", 1 - at);
    cluster.brokers[at].kill();
    let there = &cluster.brokers[1 - at];
    wait("it is seen to be away", PATIENCE, || {
        there.put("q", partition, &["x"]);
        let known = there.run(&["locations", "q.dlq"]);
        known.code != Some(0) || there.run(&["scan", "q.dlq"]).code == Some(1)
    });
    there.put("q", partition, &["bad late", "behind"]);
    wait("it waits", PATIENCE, || there.subscription("q", "s").last_error().contains("dead letter cannot be kept"));
    assert!(!consumer.has("behind"), "nothing overtakes a letter that is not kept yet");
    there.run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &[]);
    cluster.brokers[at].restart();
    cluster.wait_until_complete();
    wait("it goes on", PATIENCE * 2, || consumer.has("behind"));
    cluster.brokers[0].wait_for_no_lag("q", "s");
    let found = values(&letters(&cluster.brokers[0], "q", "s"));
    let mut wanted = four();
    wanted.insert("bad late".to_owned());
    assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (5, wanted));
    check_order(&consumer.accepted());
}

/// Letters of a partition whose broker is away stay; the others go.
#[test]
fn a_redrive_does_what_can_be_done() {
    let mut cluster = Cluster::start(2);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    let at = with_letters(&cluster, &consumer);
    let away: BTreeSet<String> = cluster
        .assigned("q")
        .iter()
        .enumerate()
        .filter(|(_, broker)| **broker != at)
        .map(|(partition, _)| format!("bad{partition}"))
        .collect();
    cluster.brokers[1 - at].kill();
    consumer.answer_all();
    consumer.forget();
    cluster.brokers[at].run(&["dlq", "redrive", "q", "s", "--yes"]).refused(1, &["2 accepted"]);
    assert_eq!(values(&letters(&cluster.brokers[at], "q", "s")).into_iter().collect::<BTreeSet<_>>(), away);
    cluster.brokers[1 - at].restart();
    cluster.wait_until_complete();
    wait("the rest goes, too", PATIENCE, || {
        let done = cluster.brokers[1 - at].run(&["dlq", "redrive", "q", "s", "--yes"]);
        done.code == Some(0) && letters(&cluster.brokers[at], "q", "s").is_empty()
    });
    // The broker that was killed pushes its last second again.
    let bad: BTreeSet<String> = consumer.values().into_iter().filter(|v| v.starts_with("bad")).collect();
    assert_eq!(bad, four());
}

/// Attempts, and a partition that is blocked, over the end of its broker.
#[test]
fn trouble_outlives_a_broker() {
    let mut cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    let partition = cluster.partition_of("q", 1);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    let options = [QUICK.as_slice(), &[("max-attempts", "8"), ("retry-max", "200ms"), ("on-poison", "block")]].concat();
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &options);
    let path = format!("/queues/q/{partition}/s");
    cluster.brokers[0].put("q", partition, &["bad"]);
    wait("attempts are stored", PATIENCE, || cluster.hand.json(&path)["attempts"].as_i64() >= Some(3));
    let (calls, stored) = (consumer.call_count(), cluster.hand.json(&path)["attempts"].as_i64().unwrap());
    consumer.answer_with(|_| Answer::Value(-2));
    cluster.brokers[1].kill();
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    wait("it is pushed again", PATIENCE, || consumer.call_count() > calls);
    let attempts = i64::from(cluster.brokers[0].subscription("q", "s").attempts());
    assert!(attempts >= stored, "{attempts} attempts, {stored} were stored");
    consumer.answer_with(|_| Answer::Value(-1));
    let blocked = |cluster: &Cluster| cluster.brokers[0].subscription("q", "s").state() == "blocked";
    wait("it is blocked", PATIENCE, || blocked(&cluster));
    wait("that is stored", PATIENCE, || cluster.hand.json(&path)["attempts"].as_i64() >= Some(8));
    cluster.brokers[1].stop();
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    wait("it is blocked again", PATIENCE, || blocked(&cluster));
    assert_eq!(consumer.count(), 0);
    consumer.answer_all();
    // Asked for at the broker that does not have the partition.
    cluster.brokers[0].run(&["resume", "q", "s"]).text();
    cluster.brokers[0].wait_for_no_lag("q", "s");
    assert_eq!(consumer.values(), ["bad"]);
}

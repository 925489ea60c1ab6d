//! Pause, resume and seek where the partitions are at several brokers, and when one of them is away.

use hqueue_tests::letters::QUICK;
use hqueue_tests::order::by_partition;
use hqueue_tests::{Broker, Cluster, Consumer, PATIENCE, wait};

fn put_everywhere(broker: &Broker, text: &str) {
    for partition in 0..4 {
        broker.put("q", partition, &[text]);
    }
}

fn started() -> (Cluster, Consumer) {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 4);
    let consumer = Consumer::start();
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &QUICK);
    put_everywhere(&cluster.brokers[0], "a");
    wait("all is read", PATIENCE, || consumer.count() == 4);
    cluster.brokers[0].wait_for_no_lag("q", "s");
    (cluster, consumer)
}

#[test]
fn a_command_at_one_broker_counts_at_all() {
    let (cluster, consumer) = started();
    let watched = Consumer::start();
    cluster.brokers[0].subscribe("q", "other", &watched.address(), &QUICK);
    for (n, broker) in cluster.brokers.iter().enumerate() {
        let (text, before) = (format!("during {n}"), consumer.count());
        broker.run(&["pause", "q", "s"]).text();
        wait("every broker says so", PATIENCE, || cluster.brokers.iter().all(|b| b.subscription("q", "s").state() == "paused"));
        put_everywhere(broker, &text);
        wait("others are served", PATIENCE, || watched.values().iter().filter(|v| **v == text).count() == 4);
        assert_eq!((consumer.count(), broker.subscription("q", "s").lag()), (before, 4));
        cluster.brokers[1 - n].run(&["resume", "q", "s"]).text();
        wait("it goes on everywhere", PATIENCE, || consumer.count() == before + 4);
        cluster.brokers[0].wait_for_no_lag("q", "s");
        consumer.forget();
        broker.run(&["seek", "q", "s", "earliest"]).text();
        wait("all of it comes again", PATIENCE, || consumer.count() == 4 * (n + 2));
        assert_eq!(by_partition(&consumer.accepted()).len(), 4);
        cluster.brokers[0].wait_for_no_lag("q", "s");
        consumer.forget();
        broker.run(&["seek", "q", "s", "earliest", "--partition", "1", "--partition", "2"]).text();
        wait("two partitions", PATIENCE, || consumer.count() == 2 * (n + 2));
        cluster.brokers[0].wait_for_no_lag("q", "s");
        assert_eq!(by_partition(&consumer.accepted()).keys().copied().collect::<Vec<_>>(), [1, 2]);
    }
}

#[test]
fn with_a_broker_away_all_is_moved_or_nothing() {
    let (mut cluster, consumer) = started();
    let (here, there) = (cluster.partition_of("q", 0), cluster.partition_of("q", 1));
    cluster.brokers[1].stop();
    let broker = &cluster.brokers[0];
    wait("it is seen to be away", PATIENCE, || cluster.owner_session("q", there).is_none());
    consumer.forget();
    broker.run(&["seek", "q", "s", "earliest"]).refused(1, &["nothing is moved"]);
    broker.run(&["seek", "q", "s", "earliest", "--partition", &there.to_string()]).refused(1, &["nothing is moved"]);
    broker.run(&["seek", "q", "s", "earliest", "--partition", &here.to_string()]).text();
    wait("what is here is moved", PATIENCE, || consumer.count() == 1);
    assert_eq!(consumer.accepted()[0].partition, here);

    // A pause counts for the one that is away when it is back.
    broker.run(&["pause", "q", "s"]).text();
    cluster.brokers[1].restart();
    cluster.wait_until_complete();
    wait("its partitions are back", PATIENCE, || cluster.owner_session("q", there).is_some());
    put_everywhere(&cluster.brokers[0], "b");
    wait("the lag is seen", PATIENCE, || cluster.brokers[0].subscription("q", "s").lag() == 4);
    assert_eq!(cluster.brokers[1].subscription("q", "s").state(), "paused");
    assert_eq!(consumer.count(), 1, "nothing is pushed during a pause, by whoever is back");
    cluster.brokers[1].run(&["resume", "q", "s"]).text();
    wait("it goes on", PATIENCE, || consumer.count() == 5);
}

#[test]
fn set_subscriber_at_one_broker_counts_at_all() {
    let (cluster, consumer) = started();
    let sizes = || consumer.calls().iter().map(|call| call.messages.len()).collect::<Vec<_>>();
    for (n, size) in [(0, 2), (1, 1)] {
        let most = size.to_string();
        cluster.brokers[n].run(&["set_subscriber", "q", "s", "--batch-messages", &most]).text();
        cluster.brokers[n].run(&["set_subscriber", "q", "s", "--batch-messages", "0"]).refused(2, &["100000"]);
        // Whichever broker has a partition: in the end it goes by the new size.
        wait("every broker goes by it", PATIENCE, || {
            consumer.forget();
            for partition in 0..4 {
                cluster.brokers[1 - n].put("q", partition, &["a", "b", "c", "d"]);
            }
            wait("all come", PATIENCE, || consumer.count() == 16);
            sizes().iter().all(|n| *n <= size)
        });
        assert_eq!(by_partition(&consumer.accepted()).len(), 4);
        cluster.brokers[0].wait_for_no_lag("q", "s");
    }
}

/// One that was registered by hand gets options, and reads no more partitions than before.
#[test]
fn set_subscriber_of_one_that_was_registered_by_hand_or_is_broken() {
    let cluster = Cluster::start(1);
    let broker = &cluster.brokers[0];
    broker.create("q", 2);
    let consumer = Consumer::start();
    cluster.register("q", 1, "s", &consumer.address());
    broker.put("q", 0, &["first"]);
    wait("it is served", PATIENCE, || consumer.has("first"));
    broker.run(&["set_subscriber", "q", "s", "--batch-messages", "2"]).text();
    broker.put("q", 1, &["not for it"]);
    broker.put("q", 0, &["a", "b", "c", "d", "e"]);
    wait("all come", PATIENCE, || consumer.has("e"));
    assert!(consumer.calls().iter().all(|call| call.messages.len() <= 2));
    assert!(!consumer.has("not for it"));
    let checkpoints = broker.subscription("q", "s").0.checkpoints.expect("a list");
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");

    let node = "/queues/q/subscribers/s";
    cluster.hand.set(node, r#"{"options": {"batch-messages": 0}}"#);
    wait("it is broken", PATIENCE, || broker.subscription("q", "s").state() == "broken");
    broker.run(&["set_subscriber", "q", "s", "--calls", "2"]).refused(1, &["batch-messages", "nothing is changed"]);
    broker.run(&["set_subscriber", "q", "s", "--batch-messages", "3"]).text();
    wait("it is well again", PATIENCE, || broker.subscription("q", "s").state() == "active");
    cluster.hand.set(node, "{");
    wait("it cannot be read", PATIENCE, || broker.subscription("q", "s").state() == "broken");
    broker.run(&["set_subscriber", "q", "s", "--batch-messages", "3"]).refused(1, &[node, "cannot be read"]);
}

//! `--on-poison block`: a partition waits, visibly, behind the message that cannot be consumed.

use hqueue_tests::letters::{QUICK, failing_at};
use hqueue_tests::{Answer, Broker, Consumer, Message, PATIENCE, wait};

fn is_bad(message: &Message) -> bool {
    message.value.starts_with(b"bad")
}

fn blocking() -> Vec<(&'static str, &'static str)> {
    [QUICK.as_slice(), &[("on-poison", "block")]].concat()
}

fn wait_for_block(broker: &Broker, queue: &str, name: &str) {
    wait("it is blocked", PATIENCE, || broker.subscription(queue, name).state() == "blocked");
}

#[test]
fn one_partition_waits_and_the_others_go_on() {
    let broker = Broker::start();
    broker.create("q", 2);
    let ids = broker.put("q", 0, &["a", "bad", "b"]);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &blocking());
    wait_for_block(&broker, "q", "s");
    let status = broker.subscription("q", "s");
    assert_eq!((status.lag(), status.attempts(), status.0.dead_lettered), (2, 3, Some(0)));
    assert!(status.last_error().contains(&format!("partition 0 is blocked by message {}", ids[1])), "{}", status.last_error());
    assert!(status.last_error().contains("-1"), "{}", status.last_error());
    assert_eq!(broker.metrics().sum("hqueue_subscription_state", &["subscriber=\"s\"", "state=\"blocked\""]), 1.0);
    let text = broker.run(&["status", "q"]);
    let line = "\nin trouble:\n  subscriber s: blocked by a message after 3 attempts, 2 messages wait; resume tries it again; last error ";
    assert!(text.text().contains(line), "{text}");
    let text = broker.run(&["status"]);
    assert!(text.text().contains("\n  subscriber s of queue q: blocked by a message after 3 attempts"), "{text}");
    let calls = consumer.call_count();
    broker.put("q", 0, &["c"]);
    broker.put("q", 1, &["other"]);
    wait("other partitions go on", PATIENCE, || consumer.has("other"));
    assert_eq!(consumer.call_count(), calls + 1, "no call for the partition that is blocked");
    assert_eq!(consumer.values(), ["a", "other"]);
    broker.run(&["scan", "q.dlq"]).refused(1, &["q.dlq"]);

    // It fails again: from 0 attempts on, and blocks again.
    broker.run(&["resume", "q", "s"]).text();
    wait("it is tried again", PATIENCE, || consumer.call_count() >= calls + 5);
    wait_for_block(&broker, "q", "s");
    assert_eq!(
        (broker.subscription("q", "s").attempts(), consumer.call_count()),
        (4, calls + 5),
        "two attempts of all that waits, one of two, one of the message alone"
    );
    consumer.answer_all();
    broker.run(&["resume", "q", "s"]).text();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.values(), ["a", "other", "bad", "b", "c"]);
    assert_eq!((broker.subscription("q", "s").state(), broker.subscription("q", "s").attempts()), ("active", 0));
}

#[test]
fn a_restart_skips_nothing() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a", "bad", "b"]);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &blocking());
    wait_for_block(&broker, "q", "s");
    for kill in [true, false] {
        let calls = consumer.call_count();
        if kill {
            broker.kill()
        } else {
            broker.stop();
        }
        broker.restart();
        wait_for_block(&broker, "q", "s");
        let more = consumer.call_count() - calls;
        // What was counted in the last second may be forgotten.
        assert!((1..=5).contains(&more), "{more} calls until it is blocked again");
    }
    let mut values = consumer.values();
    values.dedup();
    assert_eq!(values, ["a"]);
    consumer.forget();
    broker.run(&["seek", "q", "s", "latest"]).text();
    broker.put("q", 0, &["c"]);
    wait("a seek behind it goes on, too", PATIENCE, || consumer.has("c"));
    assert_eq!(consumer.values(), ["c"]);
    assert_eq!(broker.subscription("q", "s").state(), "active");
}

/// There are no dead letters of dead letters: whoever cannot consume one waits.
#[test]
fn poison_among_dead_letters_blocks() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["bad-1", "bad-2"]);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.wait_for_no_lag("q", "s");
    for (name, answer) in [("fails", Answer::Value(-1)), ("refuses", Answer::Value(-3))] {
        let watcher = Consumer::answering(move |_| answer.clone());
        broker.subscribe("q.dlq", name, &watcher.address(), &QUICK);
        wait_for_block(&broker, "q.dlq", name);
        watcher.answer_all();
        broker.run(&["resume", "q.dlq", name]).text();
        broker.wait_for_no_lag("q.dlq", name);
        assert_eq!(watcher.values(), ["bad-1", "bad-2"]);
    }
}

//! Steering a subscription: pause, resume, seek.

use std::time::Duration;

use hqueue_tests::letters::{QUICK, failing_at};
use hqueue_tests::{Answer, Broker, Consumer, Message, PATIENCE, wait};

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[test]
fn a_pause_holds_over_a_restart() {
    let mut broker = Broker::start();
    broker.create("q", 2);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["a"]);
    broker.wait_for_no_lag("q", "s");
    broker.run(&["pause", "q", "s"]).text();
    broker.run(&["pause", "q", "s"]).text();
    broker.put("q", 1, &["b"]);
    broker.kill();
    broker.restart();
    let other = Consumer::start();
    broker.subscribe("q", "other", &other.address(), &QUICK);
    broker.put("q", 0, &["c"]);
    wait("others are served", PATIENCE, || other.count() == 3);
    let status = broker.subscription("q", "s");
    assert_eq!((status.state(), status.lag(), consumer.count()), ("paused", 2, 1));
    broker.run(&["resume", "q", "s"]).text();
    wait("it goes on", PATIENCE, || consumer.count() == 3);
    assert_eq!(broker.subscription("q", "s").state(), "active");
    for command in ["pause", "resume"] {
        broker.run(&[command, "q", "nobody"]).refused(1, &["nobody"]);
        broker.run(&[command, "nothing", "s"]).refused(1, &["nothing"]);
        broker.run(&[command, "q"]).refused(2, &[]);
    }
}

/// When the command returns, no call begins any more; one under way ends, and counts.
#[test]
fn no_call_begins_after_a_pause() {
    let broker = Broker::start();
    broker.create("q", 1);
    for options in [vec![("batch-messages", "1")], vec![("batch-messages", "1"), ("rate-messages", "3")]] {
        let name = if options.len() == 1 { "free" } else { "slow" };
        broker.put("q", 0, &numbers(0..50));
        let consumer = Consumer::answering(|_| Answer::Slow(Duration::from_millis(10), 0));
        broker.subscribe("q", name, &consumer.address(), &options);
        wait("it runs", PATIENCE, || consumer.count() >= 4);
        broker.run(&["pause", "q", name]).text();
        let calls = consumer.call_count();
        // What must not come has its time.
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(consumer.call_count(), calls, "{name}");
        wait("the last one counts", PATIENCE, || broker.subscription("q", name).0.delivered == Some(consumer.count() as i64));
        broker.run(&["delete_subscriber", "q", name, "--yes"]).text();
    }
}

#[test]
fn a_seek_moves_what_it_is_told_and_nothing_else() {
    let broker = Broker::start();
    broker.create("q", 3);
    let ids: Vec<_> = (0..3).map(|p| broker.put("q", p, &numbers(0..10))).collect();
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    let other = Consumer::start();
    broker.subscribe("q", "other", &other.address(), &QUICK);
    wait("all is read", PATIENCE, || consumer.count() == 30 && other.count() == 30);
    broker.wait_for_no_lag("q", "s");
    consumer.forget();
    broker.run(&["seek", "q", "s", &ids[1][7].to_string(), "--partition", "1"]).text();
    wait("from there on", PATIENCE, || consumer.count() == 3);
    assert_eq!(consumer.values(), ["7", "8", "9"], "a position is inclusive");
    assert!(consumer.accepted().iter().all(|m| m.partition == 1));
    // Two partitions, back and forth.
    consumer.forget();
    broker.run(&["seek", "q", "s", "earliest", "--partition", "0", "--partition", "2"]).text();
    wait("both", PATIENCE, || consumer.count() == 20);
    broker.wait_for_no_lag("q", "s");
    consumer.forget();
    broker.run(&["pause", "q", "s"]).text();
    broker.run(&["seek", "q", "s", "earliest"]).text();
    assert_eq!(broker.subscription("q", "s").lag(), 30, "the place is kept during a pause");
    broker.run(&["seek", "q", "s", "-10m"]).text();
    assert_eq!(broker.subscription("q", "s").lag(), 30);
    broker.run(&["seek", "q", "s", "latest"]).text();
    assert_eq!(broker.subscription("q", "s").lag(), 0);
    broker.put("q", 2, &["new"]);
    broker.run(&["resume", "q", "s"]).text();
    wait("what came after the command", PATIENCE, || consumer.has("new"));
    assert_eq!((consumer.count(), other.count()), (1, 31));

    let before: Vec<_> = (0..3).map(|p| broker.subscription("q", "s").checkpoint(p)).collect();
    for (words, code, says) in [
        (&["seek", "q", "s", "someday"][..], 2, "someday"),
        (&["seek", "q", "s", "earliest", "--partition", "3"], 1, "3"),
        (&["seek", "q", "nobody", "earliest"], 1, "nobody"),
        (&["seek", "nothing", "s", "earliest"], 1, "nothing"),
        (&["seek", "q", "s", "2099-01-01T00:00:00Z"], 1, "future"),
        (&["seek", "q", "s"], 2, ""),
    ] {
        broker.run(words).refused(code, &[says]);
    }
    assert_eq!((0..3).map(|p| broker.subscription("q", "s").checkpoint(p)).collect::<Vec<_>>(), before);
}

/// Partitions that the subscriber does not read are not its to move.
#[test]
fn a_seek_of_a_partition_that_is_not_read_is_refused() {
    let broker = Broker::start();
    broker.create("q", 2);
    broker.put("q", 0, &["a"]);
    broker.run(&["add_subscriber", "q", "s", "--partition", "1", "--from", "earliest"]).text();
    broker.run(&["seek", "q", "s", "earliest", "--partition", "0"]).refused(1, &["partition 0"]);
    broker.run(&["seek", "q", "s", "earliest"]).text();
    assert_eq!(broker.subscription("q", "s").lag(), 0);
}

/// The end of a call that began before a seek moves nothing.
#[test]
fn a_call_under_way_at_a_seek_moves_nothing() {
    for ordering in ["partition", "none"] {
        let broker = Broker::start();
        broker.create("q", 1);
        let ids = broker.put("q", 0, &numbers(0..10));
        let consumer = Consumer::answering(|_| Answer::Hang);
        let options = [("ordering", ordering), ("batch-messages", "10"), ("retry-min", "10ms"), ("retry-max", "10ms")];
        broker.subscribe("q", "s", &consumer.address(), &options);
        wait("a call is under way", PATIENCE, || consumer.call_count() == 1);
        broker.run(&["seek", "q", "s", &ids[4].to_string()]).text();
        assert_eq!(broker.subscription("q", "s").lag(), 6, "{ordering}");
        // The hanging call is answered with -1, all others are accepted.
        consumer.answer_all();
        wait("it goes on from there", PATIENCE, || consumer.has("9"));
        broker.wait_for_no_lag("q", "s");
        assert_eq!(consumer.values(), numbers(4..10), "{ordering}");
        assert_eq!(broker.subscription("q", "s").attempts(), 0, "{ordering}");
    }
}

/// Trouble ends with a seek: attempts, waits and all.
#[test]
fn a_seek_leaves_trouble_behind() {
    let broker = Broker::start();
    broker.create("q", 1);
    let ids = broker.put("q", 0, &["a", "bad", "b"]);
    let consumer = Consumer::answering(failing_at(|m: &Message| m.text() == "bad", Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "10m"), ("retry-max", "1h")]);
    wait("it waits", PATIENCE, || broker.subscription("q", "s").attempts() == 1);
    broker.run(&["seek", "q", "s", &ids[2].to_string()]).text();
    wait("it goes on at once", PATIENCE, || consumer.has("b"));
    let status = broker.subscription("q", "s");
    assert_eq!((status.attempts(), status.state(), consumer.values()), (0, "active", vec!["a".to_owned(), "b".to_owned()]));
    // So does a pause that ends: it is tried at once, from 0 attempts on.
    broker.run(&["seek", "q", "s", "earliest"]).text();
    wait("it waits again", PATIENCE, || broker.subscription("q", "s").attempts() == 1);
    let calls = consumer.call_count();
    broker.run(&["resume", "q", "s"]).text();
    wait("it is tried again", PATIENCE, || consumer.call_count() > calls);
    wait("from 0 attempts", PATIENCE, || broker.subscription("q", "s").attempts() == 1);
}

/// A seek is durable when the command returns.
#[test]
fn a_seek_survives_a_kill() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let ids = broker.put("q", 0, &numbers(0..10));
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("all is read", PATIENCE, || consumer.count() == 10);
    broker.run(&["pause", "q", "s"]).text();
    broker.run(&["seek", "q", "s", &ids[6].to_string()]).text();
    broker.kill();
    broker.restart();
    consumer.forget();
    broker.run(&["resume", "q", "s"]).text();
    wait("from there on", PATIENCE, || consumer.has("9"));
    assert_eq!(consumer.values(), numbers(6..10));
}

//! `--ordering none`: several calls of a partition at a time, and a batch that fails is in nobody's way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hqueue_tests::letters::{QUICK, failing_at, failing_whole, letters, values};
use hqueue_tests::{Answer, Broker, Consumer, Message, PATIENCE, wait};

fn unordered(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [QUICK.as_slice(), &[("ordering", "none"), ("batch-messages", "5")], more].concat()
}

fn numbers(n: usize) -> Vec<String> {
    (0..n).map(|n| n.to_string()).collect()
}

fn is_bad(message: &Message) -> bool {
    message.value.starts_with(b"bad")
}

fn set(values: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    values.into_iter().collect()
}

#[test]
fn so_many_calls_of_one_partition_are_under_way() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &numbers(100));
    // It begins with one call at a time, and comes to more as they end well.
    let options = [("ordering", "none"), ("calls", "3"), ("batch-messages", "5"), ("call-timeout", "1h")];
    let silent = Consumer::answering(|_| Answer::Hang);
    broker.subscribe("q", "slow", &silent.address(), &options);
    let mut calls = 0;
    let consumer = Consumer::answering(move |_| {
        calls += 1;
        if calls <= 2 { Answer::Value(0) } else { Answer::Hang }
    });
    broker.subscribe("q", "s", &consumer.address(), &options);
    wait("as many as may be", PATIENCE, || consumer.call_count() == 2 + 3);
    assert_eq!((broker.subscription("q", "slow").0.in_flight, silent.call_count()), (Some(5), 1));
    assert_eq!(broker.subscription("q", "s").0.in_flight, Some(15));
    let sent = set(consumer.calls().iter().flat_map(|c| &c.messages).map(|m| m.text().to_owned()));
    assert_eq!(sent, set(numbers(25)));
    consumer.answer_all();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(set(consumer.values()), set(numbers(100)));
}

/// One batch fails again and again while the others go on, as far as the span lets them; the checkpoint stays before it.
#[test]
fn a_batch_that_fails_is_in_nobodys_way() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let mut texts = numbers(100);
    texts[7] = "bad".to_owned();
    let ids = broker.put("q", 0, &texts);
    let consumer = Consumer::answering(failing_whole(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &unordered(&[("max-span", "40"), ("max-attempts", "1000000")]));
    // 0 to 4 are behind the checkpoint, 5 to 9 fail, and the span counts from there.
    wait("others go on", PATIENCE, || consumer.count() == 40);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(consumer.count(), 40, "no further than the span");
    let status = broker.subscription("q", "s");
    assert_eq!((status.checkpoint(0), status.lag()), (Some(ids[4]), 95), "the end of the unbroken prefix");
    assert!(status.attempts() > 0 && status.state() == "retrying");
    broker.kill();
    broker.restart();
    consumer.answer_all();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(set(consumer.values()), set(texts));
}

#[test]
fn only_poison_becomes_a_letter() {
    let broker = Broker::start();
    broker.create("q", 2);
    let (mut bad, mut good) = (BTreeSet::new(), BTreeSet::new());
    for partition in 0..2 {
        let texts: Vec<String> = (0..60).map(|n| format!("{}{partition}-{n}", if n % 9 == 4 { "bad" } else { "" })).collect();
        broker.put("q", partition, &texts);
        for text in texts {
            if text.starts_with("bad") {
                bad.insert(text)
            } else {
                good.insert(text)
            };
        }
    }
    let consumer = Consumer::answering(failing_whole(is_bad, Answer::Exception("no".to_owned())));
    broker.subscribe("q", "s", &consumer.address(), &unordered(&[]));
    broker.wait_for_no_lag("q", "s");
    assert_eq!(set(consumer.values()), good);
    let found = values(&letters(&broker, "q", "s"));
    assert_eq!((found.len(), set(found)), (bad.len(), bad));
    consumer.answer_all();
    broker.run(&["dlq", "redrive", "q", "s", "--yes"]).text();
    assert!(letters(&broker, "q", "s").is_empty());
}

#[test]
fn poison_may_block_and_a_refusal_never_does() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a", "bad", "never", "b"]);
    let consumer = Consumer::answering(|messages| match messages[0].text() {
        "bad" => Answer::Value(-1),
        "never" => Answer::Value(-3),
        _ => Answer::Value(1),
    });
    broker.subscribe("q", "s", &consumer.address(), &unordered(&[("batch-messages", "1"), ("on-poison", "block")]));
    wait("it is blocked, and the others are done", PATIENCE, || {
        broker.subscription("q", "s").state() == "blocked" && consumer.count() == 2
    });
    wait("the refused one is a letter", PATIENCE, || broker.subscription("q", "s").0.dead_lettered == Some(1));
    assert_eq!(broker.subscription("q", "s").lag(), 3, "all behind the checkpoint");
    consumer.answer_all();
    broker.run(&["resume", "q", "s"]).text();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(set(consumer.values()), set(["a", "b", "bad"].map(str::to_owned)));
    assert_eq!((consumer.count(), values(&letters(&broker, "q", "s"))), (3, vec!["never".to_owned()]));
}

/// A message that ends its consumer takes the calls beside it along: they are not to be blamed.
#[test]
fn who_is_in_flight_beside_poison_is_not_charged() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut texts = numbers(60);
    texts[31] = "bad".to_owned();
    broker.put("q", 0, &texts);
    let consumer = Arc::new(Consumer::start());
    let killed = Arc::new(AtomicUsize::new(0));
    let (weak, count) = (Arc::downgrade(&consumer), Arc::clone(&killed));
    consumer.answer_with(move |messages| {
        if !messages.iter().any(is_bad) {
            // Long enough to be there when the process ends.
            return Answer::Slow(Duration::from_millis(40), 0);
        }
        // All connections end at once, as those of a process do.
        count.fetch_add(1, Ordering::SeqCst);
        if let Some(consumer) = weak.upgrade() {
            consumer.close_connections();
        }
        Answer::Close
    });
    broker.subscribe("q", "s", &consumer.address(), &unordered(&[("max-attempts", "3"), ("calls", "4")]));
    broker.wait_for_no_lag("q", "s");
    assert_eq!(values(&letters(&broker, "q", "s")), ["bad"], "only the one that ends it");
    texts.remove(31);
    assert!(set(texts).is_subset(&set(consumer.values())));
    println!("its consumer was ended {} times", killed.load(Ordering::SeqCst));
}

/// Attempts are those of the oldest batch, and outlive the broker.
#[test]
fn attempts_survive_a_kill() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["bad", "a", "b"]);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &unordered(&[("max-attempts", "1000000")]));
    wait("some attempts", PATIENCE, || broker.subscription("q", "s").attempts() >= 5);
    consumer.answer_with(|_| Answer::Value(-2));
    wait("no more failures", PATIENCE, || consumer.calls().last().is_some_and(|c| c.answer == Answer::Value(-2)));
    let attempts = broker.subscription("q", "s").attempts();
    // They are stored at most a second late.
    std::thread::sleep(Duration::from_millis(1500));
    broker.kill();
    let calls = consumer.call_count();
    broker.restart();
    wait("it is pushed again", PATIENCE, || consumer.call_count() > calls);
    assert_eq!(broker.subscription("q", "s").attempts(), attempts);
    consumer.answer_all();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
}

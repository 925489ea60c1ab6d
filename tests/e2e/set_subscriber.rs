//! Options of a subscriber that are changed while it is served.

use std::time::Duration;

use hqueue_protocol::generated::THQueueAdminServiceSyncClient;
use hqueue_tests::explained::{explained, state, wait_until};
use hqueue_tests::letters::{QUICK, failing_at, failing_whole, letters, values};
use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Broker, Consumer, Message, PATIENCE, wait};

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// The sizes of the calls from the nth on.
fn sizes(consumer: &Consumer, from: usize) -> Vec<usize> {
    consumer.calls().iter().skip(from).map(|call| call.messages.len()).filter(|n| *n > 0).collect()
}

#[test]
fn set_subscriber_changes_the_batch_size_under_load() {
    let broker = Broker::start();
    broker.create("q", 2);
    let consumer = Consumer::answering(|_| Answer::Slow(Duration::from_millis(3), 0));
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "4"), ("window-messages", "16")]);
    let mut put = 0;
    let mut more = |broker: &Broker| {
        for partition in 0..2 {
            broker.put("q", partition, &numbers(put..put + 300));
        }
        put += 300;
    };
    more(&broker);
    for size in ["1", "9", "2"] {
        let before = consumer.count();
        wait("it runs", PATIENCE, || consumer.count() > before);
        broker.run(&["set_subscriber", "q", "s", "--batch-messages", size]).text();
        // What was under way when the command returned may still come: a call for each partition.
        let after = consumer.call_count() + 2;
        more(&broker);
        wait("calls by the new size", PATIENCE, || consumer.call_count() >= after + 20);
        let most: usize = size.parse().expect("a number");
        let sizes = sizes(&consumer, after);
        assert!(sizes.iter().all(|n| *n <= most), "{size}: {sizes:?}");
        assert!(sizes.contains(&most), "{size}: {sizes:?}");
    }
    broker.wait_for_no_lag("q", "s");
    let accepted = consumer.accepted();
    check_order(&accepted);
    assert_eq!(accepted.len(), 2 * put, "nothing is lost, and nothing was repeated: no call failed");
    let status = broker.subscription("q", "s");
    assert_eq!((status.delivered(), status.state()), (2 * put as i64, "active"), "what was counted stays");
}

#[test]
fn set_subscriber_with_a_bad_value_leaves_all_as_it_was() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "3"), ("retry-max", "2s")]);
    broker
        .run(&["set_subscriber", "q", "s", "--batch-messages", "7", "--retry-min", "3s"])
        .refused(1, &["retry-min", "retry-max", "nothing is changed"]);
    for (words, code, says) in [
        (&["set_subscriber", "q", "s", "--batch-messages", "0"][..], 2, &["batch-messages", "100000"][..]),
        (&["set_subscriber", "q", "s", "--colour", "red"], 2, &["colour"]),
        (&["set_subscriber", "q", "s"], 2, &["option"]),
        (&["set_subscriber", "q", "nobody", "--calls", "2"], 1, &["nobody"]),
        (&["set_subscriber", "nothing", "s", "--calls", "2"], 1, &["nothing"]),
    ] {
        broker.run(words).refused(code, says);
    }
    // The broker looks itself, and all at once.
    let set = |pairs: &[(&str, &str)]| {
        let options = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        broker.admin().set_subscriber(b"q".to_vec(), b"s".to_vec(), options)
    };
    for (pairs, says) in [
        (&[("batch-messages", "7"), ("calls", "17")][..], "calls"),
        (&[("batch-messages", "7"), ("colour", "red")], "colour"),
        (&[], "no option"),
    ] {
        let error = set(pairs).expect_err("refused");
        assert!(format!("{error:?}").contains(says), "{error:?}");
    }
    broker.put("q", 0, &numbers(0..30));
    broker.wait_for_no_lag("q", "s");
    assert!(sizes(&consumer, 0).iter().all(|n| *n <= 3), "{:?}", sizes(&consumer, 0));
    // Both at once go together.
    set(&[("retry-min", "3s"), ("retry-max", "3s")]).expect("taken");
}

#[test]
fn set_subscriber_takes_the_syntax_of_the_shell() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    broker.run(&["shell", "-e", "set_subscriber 'q', 's', {'batch-messages' => 2, 'retry_min' => '10ms'}"]).text();
    broker.run(&["shell", "-e", "set_subscriber 'q', 's', {'batch-messages' => 0}"]).refused(1, &["batch-messages"]);
    broker.run(&["shell", "-e", "set_subscriber 'q', 's', {'colour' => 1}"]).refused(1, &["colour"]);
    broker.put("q", 0, &numbers(0..20));
    broker.wait_for_no_lag("q", "s");
    assert!(sizes(&consumer, 0).iter().all(|n| *n <= 2), "{:?}", sizes(&consumer, 0));
}

/// A call under way ends first, however long it takes: until then no other begins, and others of the queue go on.
#[test]
fn set_subscriber_waits_for_the_calls_under_way() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Hang);
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "5"), ("call-timeout", "1h")]);
    broker.put("q", 0, &numbers(0..10));
    wait("a call is under way", PATIENCE, || consumer.call_count() == 1);
    broker.run(&["set_subscriber", "q", "s", "--batch-messages", "2", "--retry-min", "10ms", "--retry-max", "10ms"]).text();
    let other = Consumer::start();
    broker.subscribe("q", "other", &other.address(), &[("batch-messages", "5")]);
    broker.put("q", 0, &["more"]);
    broker.wait_for_no_lag("q", "other");
    assert_eq!((consumer.call_count(), consumer.count()), (1, 0));
    assert_eq!(broker.subscription("q", "s").endpoints(), [consumer.address()]);
    // The hanging call is answered with -1, all others are accepted.
    consumer.answer_all();
    broker.wait_for_no_lag("q", "s");
    let expected: Vec<String> = numbers(0..10).into_iter().chain(["more".to_owned()]).collect();
    assert_eq!(consumer.values(), expected);
    assert!(sizes(&consumer, 1).iter().all(|n| *n <= 2), "{:?}", sizes(&consumer, 1));
    // It is kept.
    broker.stop();
    broker.restart();
    consumer.forget();
    broker.put("q", 0, &numbers(10..20));
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.values(), numbers(10..20));
    assert!(sizes(&consumer, 0).iter().all(|n| *n <= 2), "{:?}", sizes(&consumer, 0));
}

/// What has failed so often has failed so often: with fewer attempts allowed it is looked for at once.
#[test]
fn set_subscriber_keeps_the_place_and_the_attempts() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a", "bad", "b"]);
    let consumer = Consumer::answering(failing_at(|m: &Message| m.text() == "bad", Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "10ms"), ("retry-max", "20ms"), ("max-attempts", "1000000")]);
    wait("it has failed", PATIENCE, || broker.subscription("q", "s").attempts() >= 5);
    let (before, place) = (broker.subscription("q", "s").attempts(), broker.subscription("q", "s").checkpoint(0));
    broker.run(&["set_subscriber", "q", "s", "--retry-min", "10m", "--retry-max", "1h"]).text();
    let status = broker.subscription("q", "s");
    assert!(status.attempts() >= before && status.checkpoint(0) == place, "{} after {before}", status.attempts());
    assert_eq!(consumer.values(), ["a"]);
    broker.run(&["set_subscriber", "q", "s", "--retry-min", "10ms", "--retry-max", "20ms", "--max-attempts", "2"]).text();
    wait("it goes on", PATIENCE, || consumer.has("b"));
    assert_eq!(values(&letters(&broker, "q", "s")), ["bad"]);
    assert_eq!(consumer.values(), ["a", "b"]);
}

/// A message that is in the way goes to the dead letters when that is what is wanted from now on; and pauses last.
#[test]
fn set_subscriber_of_one_that_is_blocked_or_paused() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["bad", "b"]);
    let consumer = Consumer::answering(failing_at(|m: &Message| m.text() == "bad", Answer::Value(-1)));
    broker.subscribe("q", "s", &consumer.address(), &[QUICK.as_slice(), &[("on-poison", "block")]].concat());
    wait("it is blocked", PATIENCE, || broker.subscription("q", "s").state() == "blocked");
    broker.run(&["pause", "q", "s"]).text();
    let calls = consumer.call_count();
    broker.run(&["set_subscriber", "q", "s", "--on-poison", "dead-letter"]).text();
    assert_eq!((broker.subscription("q", "s").state(), consumer.call_count()), ("paused", calls));
    broker.run(&["resume", "q", "s"]).text();
    wait("it goes on", PATIENCE, || consumer.has("b"));
    assert_eq!(values(&letters(&broker, "q", "s")), ["bad"]);
}

/// From order to none and back while messages come: all of them arrive.
#[test]
fn set_subscriber_changes_the_ordering() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Slow(Duration::from_millis(2), 0));
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "5")]);
    let mut put = 0;
    for ordering in ["none", "partition", "none"] {
        broker.put("q", 0, &numbers(put..put + 200));
        put += 200;
        let before = consumer.count();
        wait("it runs", PATIENCE, || consumer.count() > before);
        broker.run(&["set_subscriber", "q", "s", "--ordering", ordering, "--calls", "3"]).text();
    }
    broker.wait_for_no_lag("q", "s");
    let mut seen: Vec<usize> = consumer.values().iter().map(|v| v.parse().expect("a number")).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..put).collect::<Vec<_>>());
}

/// What failed waits as long as it had to: setting options is no attempt, and takes none back.
#[test]
fn set_subscriber_tries_nothing_once_more() {
    for ordering in ["partition", "none"] {
        let broker = Broker::start();
        broker.create("q", 1);
        let consumer = Consumer::answering(failing_whole(|m: &Message| m.text() != "good", Answer::Value(-1)));
        let patient = [("retry-min", "10m"), ("retry-max", "1h"), ("max-attempts", "1000000"), ("batch-messages", "1")];
        broker.subscribe("q", "s", &consumer.address(), &[&patient[..], &[("ordering", ordering)]].concat());
        let ids = broker.put("q", 0, &["bad", "good", "as bad", "good"]);
        wait_until(&broker, "q", 0, ids[0], "s", "waiting retrying");
        if ordering == "none" {
            wait_until(&broker, "q", 0, ids[2], "s", "waiting retrying");
            wait_until(&broker, "q", 0, ids[3], "s", "delivered");
        }
        let (calls, log) = (consumer.call_count(), broker.log().len());
        for calls in ["2", "3", "2"] {
            broker.run(&["set_subscriber", "q", "s", "--calls", calls, "--call-timeout", &format!("{calls}s")]).text();
        }
        wait("all of them count", PATIENCE, || broker.log()[log..].matches("it has other options now").count() == 3);
        let failing = if ordering == "none" { vec![ids[0], ids[2]] } else { vec![ids[0]] };
        for id in &failing {
            let told = explained(&broker, "q", 0, *id, "s");
            assert_eq!((state(&told).as_str(), told["attempts"].as_i64()), ("waiting retrying", Some(1)), "{ordering}: {told}");
            assert!(told["wait_ms"].as_i64() > Some(60_000), "{ordering}: {told}");
        }
        assert_eq!(consumer.call_count(), calls, "{ordering}: nobody was called");
        // Less patience counts at once; what was delivered before does not come again.
        broker.run(&["set_subscriber", "q", "s", "--retry-min", "10ms", "--retry-max", "20ms"]).text();
        for id in &failing {
            wait("it is tried again", PATIENCE, || explained(&broker, "q", 0, *id, "s")["calls"].as_array().unwrap().len() > 2);
        }
        consumer.answer_all();
        broker.wait_for_no_lag("q", "s");
        assert_eq!(consumer.count(), 4, "{ordering}: each once: {:?}", consumer.values());
    }
}

/// One that blocks goes on to do so, and one that says that it is busy is asked when it wanted to be.
#[test]
fn set_subscriber_leaves_alone_what_blocks_or_is_busy() {
    let broker = Broker::start();
    broker.create("q", 1);
    let id = broker.put("q", 0, &["bad"])[0];
    let blocked = Consumer::answering(|_| Answer::Value(-1));
    broker.subscribe("q", "blocked", &blocked.address(), &[QUICK.as_slice(), &[("on-poison", "block")]].concat());
    let busy = Consumer::answering(|_| Answer::Value(-2));
    broker.subscribe("q", "busy", &busy.address(), &[("retry-min", "10m"), ("retry-max", "1h")]);
    let mut hanging = Consumer::start();
    hanging.freeze();
    broker.subscribe(
        "q",
        "hanging",
        &hanging.address(),
        &[("call-timeout", "100ms"), ("retry-min", "20ms"), ("retry-max", "50ms")],
    );
    wait_until(&broker, "q", 0, id, "blocked", "waiting blocked");
    wait_until(&broker, "q", 0, id, "busy", "waiting busy");
    wait_until(&broker, "q", 0, id, "hanging", "waiting endpoint_away");
    let calls = [&blocked, &busy].map(Consumer::call_count);
    let log = broker.log().len();
    for name in ["blocked", "busy", "hanging"] {
        broker.run(&["set_subscriber", "q", name, "--batch-messages", "7"]).text();
    }
    wait("all of them count", PATIENCE, || broker.log()[log..].matches("it has other options now").count() == 3);
    for (name, wanted) in [("blocked", "waiting blocked"), ("busy", "waiting busy"), ("hanging", "waiting endpoint_away")] {
        let told = explained(&broker, "q", 0, id, name);
        assert_eq!(state(&told), wanted, "{told}");
    }
    assert_eq!([&blocked, &busy].map(Consumer::call_count), calls, "nobody was called");
    hanging.thaw();
    wait_until(&broker, "q", 0, id, "hanging", "delivered");
    hanging.stop();
    // What is in the way goes to the dead letters when that is wanted from now on.
    broker.run(&["set_subscriber", "q", "blocked", "--on-poison", "dead-letter"]).text();
    wait_until(&broker, "q", 0, id, "blocked", "dead_lettered");
}

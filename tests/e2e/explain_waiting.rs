//! What a message waits for: `explain` of messages that are not delivered yet.

use std::time::Duration;

use hqueue_tests::explained::{explain, explained, state, text, wait_until};
use hqueue_tests::letters::{QUICK, failing_at, failing_whole};
use hqueue_tests::{Answer, Broker, Consumer, Id, Message, PATIENCE, wait};

const PATIENT: [(&str, &str); 3] = [("retry-min", "10m"), ("retry-max", "1h"), ("max-attempts", "1000000")];

fn is_bad(message: &Message) -> bool {
    message.text().starts_with("bad")
}

/// A handler that hangs: its batch is in flight, what lies behind waits for that call.
#[test]
fn explain_a_call_that_hangs() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Hang);
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "2"), ("call-timeout", "1h")]);
    let ids = broker.put("q", 0, &["a", "b", "c"]);
    for id in &ids[..2] {
        let told = wait_until(&broker, "q", 0, *id, "s", "in_flight");
        assert_eq!(
            (told["endpoint"].as_str(), told["attempts"].as_i64()),
            (Some(consumer.address().as_str()), Some(1)),
            "{told}"
        );
    }
    let told = explained(&broker, "q", 0, ids[2], "s");
    assert_eq!(state(&told), "waiting call", "{told}");
    assert_eq!((told["behind"].as_str(), told["ahead"].as_i64()), (Some(ids[0].to_string().as_str()), Some(2)), "{told}");
    assert!(text(&told).contains(&consumer.address()) && text(&told).contains("2 messages lie before it"), "{told}");
    let since = told["time"].clone();
    // Other options count once that call has ended.
    broker.run(&["set_subscriber", "q", "s", "--batch-messages", "3"]).text();
    wait_until(&broker, "q", 0, ids[2], "s", "waiting changing");
    assert_eq!(explained(&broker, "q", 0, ids[0], "s")["time"], since, "it is the same call");
    consumer.answer_all();
    ids.iter().for_each(|id| drop(wait_until(&broker, "q", 0, *id, "s", "delivered")));
}

/// In order: behind a message that fails; itself in the batch that failed.
#[test]
fn explain_what_waits_behind_a_failing_message() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(failing_at(is_bad, Answer::Exception("the database is away".to_owned())));
    broker.subscribe("q", "s", &consumer.address(), &PATIENT);
    let bad = broker.put("q", 0, &["bad", "with it"]);
    let own = wait_until(&broker, "q", 0, bad[0], "s", "waiting retrying");
    assert_eq!((own["attempts"].as_i64(), own.get("behind")), (Some(1), None), "{own}");
    assert!(
        own["wait_ms"].as_i64().unwrap() > 60_000 && own["last_error"].as_str().unwrap().contains("the database is away"),
        "{own}"
    );
    let behind = broker.put("q", 0, &["behind"])[0];
    let told = explained(&broker, "q", 0, behind, "s");
    assert_eq!(
        (state(&told).as_str(), told["behind"].as_str()),
        ("waiting retrying", Some(bad[0].to_string().as_str())),
        "{told}"
    );
    assert!(text(&told).contains("1 attempt so far") && text(&told).contains("the database is away"), "{told}");
    assert_eq!(told["ahead"], 2, "{told}");
    consumer.answer_all();
    broker.run(&["resume", "q", "s"]).text();
    let told = wait_until(&broker, "q", 0, bad[0], "s", "delivered");
    assert_eq!(told["attempts"], 1, "a resume begins anew: {told}");
    assert_eq!(told["calls"].as_array().unwrap().len(), 2, "{told}");
    wait_until(&broker, "q", 0, behind, "s", "delivered");
}

#[test]
fn explain_pauses_and_a_disabled_queue() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &[]);
    broker.run(&["pause", "q", "s"]).text();
    let ids = broker.put("q", 0, &["a", "b"]);
    let told = wait_until(&broker, "q", 0, ids[1], "s", "waiting paused");
    assert!(text(&told).contains("is paused") && told["ahead"] == 1, "{told}");
    broker.run(&["disable", "q"]).text();
    wait_until(&broker, "q", 0, ids[0], "s", "waiting disabled");
    broker.run(&["enable", "q"]).text();
    wait_until(&broker, "q", 0, ids[0], "s", "waiting paused");
    broker.run(&["resume", "q", "s"]).text();
    wait_until(&broker, "q", 0, ids[1], "s", "delivered");
}

#[test]
fn explain_a_message_that_blocks() {
    for ordering in ["partition", "none"] {
        let broker = Broker::start();
        broker.create("q", 1);
        let consumer = Consumer::answering(failing_whole(is_bad, Answer::Value(-1)));
        let options = [QUICK.as_slice(), &[("on-poison", "block"), ("ordering", ordering), ("batch-messages", "2")]].concat();
        broker.subscribe("q", "s", &consumer.address(), &options);
        let bad = broker.put("q", 0, &["bad"])[0];
        let own = wait_until(&broker, "q", 0, bad, "s", "waiting blocked");
        assert!(own["attempts"].as_i64() >= Some(2) && own.get("behind").is_none(), "{own}");
        assert!(text(&own).contains("resume") && text(&own).contains("-1"), "{own}");
        let next = broker.put("q", 0, &["next"])[0];
        if ordering == "partition" {
            let told = wait_until(&broker, "q", 0, next, "s", "waiting blocked");
            assert_eq!(told["behind"], bad.to_string(), "{told}");
        } else {
            wait_until(&broker, "q", 0, next, "s", "delivered");
        }
    }
}

#[test]
fn explain_endpoints_that_do_not_answer() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut consumer = Consumer::start();
    consumer.stop();
    let id = broker.put("q", 0, &["a"])[0];
    broker.subscribe("q", "down", &consumer.address(), &QUICK);
    let told = wait_until(&broker, "q", 0, id, "down", "waiting endpoint_away");
    assert!(told["endpoint"] == consumer.address() && text(&told).contains("does not answer: "), "{told}");
    broker.run(&["add_subscriber", "q", "none", "--from", "earliest"]).text();
    wait_until(&broker, "q", 0, id, "none", "waiting no_endpoint");
    consumer.resume();
    wait_until(&broker, "q", 0, id, "down", "delivered");
}

/// It fails at everything: nothing more is dead-lettered, the oldest is tried now and then.
#[test]
fn explain_a_consumer_that_fails_at_everything() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Value(-1));
    let options =
        [("retry-min", "10ms"), ("retry-max", "1h"), ("max-attempts", "1"), ("max-dead-in-a-row", "1"), ("batch-messages", "1")];
    broker.subscribe("q", "s", &consumer.address(), &options);
    let ids = broker.put("q", 0, &["a", "b", "c"]);
    wait_until(&broker, "q", 0, ids[0], "s", "dead_lettered");
    let told = wait_until(&broker, "q", 0, ids[1], "s", "waiting failing");
    assert!(told.get("behind").is_none(), "{told}");
    let told = wait_until(&broker, "q", 0, ids[2], "s", "waiting failing");
    assert_eq!(told["behind"], ids[1].to_string(), "{told}");
}

#[test]
fn explain_a_busy_one_and_a_rate() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Value(-2));
    broker.subscribe("q", "busy", &consumer.address(), &PATIENT);
    let id = broker.put("q", 0, &["a"])[0];
    let told = wait_until(&broker, "q", 0, id, "busy", "waiting busy");
    assert!(text(&told).contains("busy (-2)") && told["wait_ms"].as_i64() > Some(60_000), "{told}");
    let ids = broker.put("q", 0, &vec!["x"; 300]);
    let slow = Consumer::start();
    broker.subscribe("q", "slow", &slow.address(), &[("rate-messages", "5"), ("batch-messages", "5")]);
    wait("it has begun", PATIENCE, || slow.count() > 0);
    let last: Id = *ids.last().unwrap();
    let told = wait_until(&broker, "q", 0, last, "slow", "waiting rate_limit");
    assert!(told["ahead"].as_i64() > Some(100), "{told}");
}

/// Each batch waits by itself; behind too many none is sent.
#[test]
fn explain_without_order() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(failing_whole(is_bad, Answer::Value(-1)));
    let options = [PATIENT.as_slice(), &[("ordering", "none"), ("batch-messages", "1"), ("max-span", "3")]].concat();
    broker.subscribe("q", "s", &consumer.address(), &options);
    let ids = broker.put("q", 0, &["bad", "a", "b", "c"]);
    let own = wait_until(&broker, "q", 0, ids[0], "s", "waiting retrying");
    assert!(own["attempts"] == 1 && own.get("behind").is_none(), "{own}");
    // Above the checkpoint, and delivered.
    for id in &ids[1..3] {
        let told = wait_until(&broker, "q", 0, *id, "s", "delivered");
        assert_eq!(
            (told["attempts"].as_i64(), told["endpoint"].as_str()),
            (Some(1), Some(consumer.address().as_str())),
            "{told}"
        );
    }
    let told = wait_until(&broker, "q", 0, ids[3], "s", "waiting span");
    assert_eq!(told["behind"], ids[0].to_string(), "{told}");
    consumer.answer_all();
    broker.run(&["resume", "q", "s"]).text();
    ids.iter().for_each(|id| drop(wait_until(&broker, "q", 0, *id, "s", "delivered")));
}

/// Several calls at once: what is in one of them, and what waits until one ends.
#[test]
fn explain_several_calls_without_order() {
    let broker = Broker::start();
    broker.create("q", 1);
    // It comes to two calls at a time when the first has ended well.
    let consumer = Consumer::answering(|messages| if messages[0].value == b"first" { Answer::Value(0) } else { Answer::Hang });
    let options = [("ordering", "none"), ("calls", "2"), ("batch-messages", "1"), ("call-timeout", "1h")];
    broker.subscribe("q", "s", &consumer.address(), &options);
    let first = broker.put("q", 0, &["first"])[0];
    wait_until(&broker, "q", 0, first, "s", "delivered");
    let ids = broker.put("q", 0, &["a", "b", "c"]);
    wait("two calls", PATIENCE, || consumer.call_count() == 1 + 2);
    for id in &ids[..2] {
        wait_until(&broker, "q", 0, *id, "s", "in_flight");
    }
    wait_until(&broker, "q", 0, ids[2], "s", "waiting call");
}

/// The window is one for all partitions.
#[test]
fn explain_a_full_window() {
    waits_for_a_window(("window-messages", "1"));
}

/// An endpoint begins with one batch: what goes there from another partition waits, though the subscription's window has room.
#[test]
fn explain_an_endpoint_that_begins_slowly() {
    waits_for_a_window(("batch-messages", "1"));
}

fn waits_for_a_window(limit: (&str, &str)) {
    let broker = Broker::start();
    broker.create("q", 2);
    let consumer = Consumer::answering(|_| Answer::Hang);
    let options = [limit, ("ordering", "none"), ("call-timeout", "1h")];
    broker.subscribe("q", "s", &consumer.address(), &options);
    let first = broker.put("q", 0, &["a"])[0];
    wait_until(&broker, "q", 0, first, "s", "in_flight");
    let other = broker.put("q", 1, &["b"])[0];
    wait_until(&broker, "q", 1, other, "s", "waiting window");
}

/// While it is asked all the time, nothing else is disturbed, and no answer is wrong.
#[test]
fn explain_under_load() {
    let broker = Broker::start();
    broker.create("q", 1);
    let consumer = Consumer::answering(|_| Answer::Slow(Duration::from_millis(1), 0));
    broker.subscribe("q", "s", &consumer.address(), &[("batch-messages", "3")]);
    let texts: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let ids = broker.put("q", 0, &texts);
    for id in ids.iter().step_by(37) {
        let before = consumer.accepted().last().map(|m| m.id);
        let told = &explain(&broker, "q", 0, *id)["subscriptions"][0];
        let state = state(told);
        let is_possible = match state.as_str() {
            "delivered" => true,
            "in_flight" | "waiting call" | "waiting messages" | "waiting next" | "waiting window" => {
                before.is_none_or(|before| before < *id)
            }
            _ => false,
        };
        assert!(is_possible, "{id} while {before:?} was accepted: {told}");
    }
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 300);
    for id in &ids[..3] {
        wait_until(&broker, "q", 0, *id, "s", "delivered");
    }
}

//! A consumer that fails at everything is not a queue of poison.

use std::time::{Duration, Instant};

use hqueue_tests::letters::letters;
use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, wait};

const MOST: usize = 3;
const OPTIONS: [(&str, &str); 5] =
    [("retry-min", "10ms"), ("retry-max", "500ms"), ("max-attempts", "2"), ("max-dead-in-a-row", "3"), ("call-timeout", "300ms")];

fn texts() -> Vec<String> {
    (0..40).map(|n| n.to_string()).collect()
}

/// Whatever it answers to messages, a few are buried and then it is left alone, but for a try now and then. The first success ends it.
fn fails_at_everything(answer: &Answer, ordering: &str) {
    let broker = Broker::start();
    broker.create("q", 2);
    broker.put("q", 0, &texts());
    broker.put("q", 1, &texts());
    let failing = answer.clone();
    let consumer = Consumer::answering(move |_| failing.clone());
    let options = [OPTIONS.as_slice(), &[("ordering", ordering), ("batch-messages", "8")]].concat();
    broker.subscribe("q", "s", &consumer.address(), &options);
    wait("it is found out", PATIENCE, || broker.subscription("q", "s").state() == "failing");
    assert_eq!(broker.metrics().sum("hqueue_subscription_state", &["subscriber=\"s\"", "state=\"failing\""]), 1.0);
    if ordering == "partition" {
        // Tries of either partition that were under way, and then one in a while.
        let (began, calls) = (Instant::now(), consumer.call_count());
        wait("it is tried again", PATIENCE, || consumer.call_count() >= calls + 6);
        assert!(began.elapsed() >= Duration::from_millis(700), "{answer:?}: 6 tries in {:?}", began.elapsed());
    }
    wait("the letters are kept", PATIENCE, || broker.subscription("q", "s").0.dead_lettered == Some(MOST as i64));
    let status = broker.subscription("q", "s");
    assert_eq!((status.state(), status.0.dead_lettered), ("failing", Some(MOST as i64)), "{answer:?} {ordering}");
    assert_eq!(letters(&broker, "q", "s").len(), MOST);
    let text = broker.run(&["status", "q"]);
    let row = text.text().lines().find(|line| line.starts_with("s ")).unwrap();
    assert!(row.ends_with(&format!("  {MOST}")), "how many were dead-lettered: {text}");
    assert!(text.text().contains("in trouble:\n  subscriber s: failing at everything, attempt "), "{text}");
    assert!(text.text().contains("; last error "), "{text}");
    assert!(text.text().contains("  subscriber s: has dead letters, see dlq list q s; the oldest since 20"), "{text}");
    if ordering == "partition" {
        assert_eq!(status.lag() as usize, 80 - MOST);
    }
    consumer.forget();
    consumer.answer_all();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 80 - MOST, "{answer:?} {ordering}");
    if ordering == "partition" {
        assert_eq!(consumer.calls()[0].messages.len(), 1, "it begins with one message");
    }
    assert_eq!(broker.subscription("q", "s").state(), "active");
    let log = broker.log();
    for said in ["failing: so many dead letters in a row", "well again"] {
        assert_eq!(log.lines().filter(|line| line.contains(said)).count(), 1, "{said} is said once");
    }
}

#[test]
fn by_minus_one() {
    fails_at_everything(&Answer::Value(-1), "partition");
}

#[test]
fn by_exceptions() {
    fails_at_everything(&Answer::Exception("the database is away".to_owned()), "partition");
}

/// It answers empty calls, so it is there; every message ends it.
#[test]
fn by_closing() {
    fails_at_everything(&Answer::Close, "partition");
}

#[test]
fn by_hanging() {
    fails_at_everything(&Answer::Hang, "partition");
}

#[test]
fn without_order() {
    fails_at_everything(&Answer::Value(-1), "none");
}

/// Successes in between begin the count anew: many poison messages among others are all buried.
#[test]
fn success_begins_the_count_anew() {
    let broker = Broker::start();
    broker.create("q", 1);
    let texts: Vec<String> = (0..40).map(|n| format!("{}{n}", if n % 4 == 0 { "" } else { "bad" })).collect();
    broker.put("q", 0, &texts);
    let consumer = Consumer::answering(hqueue_tests::letters::failing_at(|m| m.value.starts_with(b"bad"), Answer::Value(-1)));
    let options = [OPTIONS.as_slice(), &[("max-dead-in-a-row", "4")]].concat();
    broker.subscribe("q", "s", &consumer.address(), &options);
    broker.wait_for_no_lag("q", "s");
    assert_eq!((consumer.count(), letters(&broker, "q", "s").len()), (10, 30));
}

/// `resume` gives it another chance.
#[test]
fn resume_gives_another_chance() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &texts());
    let consumer = Consumer::answering(|_| Answer::Value(-1));
    let options = [OPTIONS.as_slice(), &[("retry-max", "1h")]].concat();
    broker.subscribe("q", "s", &consumer.address(), &options);
    wait("it is found out", PATIENCE, || broker.subscription("q", "s").state() == "failing");
    consumer.answer_all();
    broker.run(&["resume", "q", "s"]).text();
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.count(), 40 - MOST);
}

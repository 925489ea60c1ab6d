//! What counts as an attempt: the consumer's failures do, an outage does not.

use std::time::Duration;

use hqueue_tests::order::check_order;
use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, wait};

const QUICK: [(&str, &str); 3] = [("retry-min", "20ms"), ("retry-max", "40ms"), ("call-timeout", "500ms")];

fn broker_with_queue() -> Broker {
    let broker = Broker::start();
    broker.create("q", 1);
    broker
}

#[test]
fn a_connection_that_cannot_be_made_is_no_attempt() {
    let broker = broker_with_queue();
    let mut consumer = Consumer::start();
    consumer.stop();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["a"]);
    let mut times = std::collections::BTreeSet::new();
    wait("it is tried again and again", PATIENCE, || {
        let status = broker.subscription("q", "s");
        assert_eq!(status.attempts(), 0);
        times.extend(status.0.last_error_time);
        times.len() >= 5
    });
    assert!(broker.subscription("q", "s").last_error().contains(&consumer.address()), "which address cannot be reached");
    consumer.resume();
    wait("the message comes when the consumer is back", PATIENCE, || consumer.has("a"));
}

#[test]
fn a_hang_is_one_attempt_however_long_it_lasts() {
    let broker = broker_with_queue();
    let consumer = Consumer::start();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["a"]);
    wait("the first is pushed", PATIENCE, || consumer.has("a"));
    consumer.freeze();
    broker.put("q", 0, &["b"]);
    wait("the hang is an attempt", PATIENCE, || broker.subscription("q", "s").attempts() == 1);
    let connections = consumer.connections_ever();
    wait("it is asked again and again", PATIENCE, || {
        assert_eq!(broker.subscription("q", "s").attempts(), 1);
        consumer.connections_ever() >= connections + 5
    });
    assert_eq!(consumer.call_count(), 1, "messages are not sent before an empty call was answered");
    let status = broker.subscription("q", "s");
    assert!(status.last_error().contains("no answer"), "the hang stays the last error: {}", status.last_error());
    consumer.thaw();
    wait("the message comes when the consumer answers", PATIENCE, || consumer.has("b"));
    broker.wait_for_no_lag("q", "s");
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
    assert!(consumer.empty_calls() > 0);
}

/// An endpoint that has never answered anything cannot be blamed for a message.
#[test]
fn an_endpoint_that_never_answered_is_charged_nothing() {
    let broker = broker_with_queue();
    let consumer = Consumer::start();
    consumer.freeze();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["a"]);
    wait("it is asked again and again", PATIENCE, || {
        assert_eq!(broker.subscription("q", "s").attempts(), 0);
        consumer.connections_ever() >= 5
    });
    consumer.thaw();
    wait("the message comes", PATIENCE, || consumer.has("a"));
}

/// A message that ends its consumer each time is found: the consumer answers empty calls in between.
#[test]
fn a_message_that_kills_its_consumer_is_counted() {
    let broker = broker_with_queue();
    let consumer = Consumer::answering(|_| Answer::Close);
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["boom"]);
    wait("each end is an attempt", PATIENCE, || broker.subscription("q", "s").attempts() >= 4);
    assert!(consumer.empty_calls() >= 3, "an empty call before each repetition");
}

/// Attempts stand in the checkpoint: a restart does not forget them.
#[test]
fn attempts_survive_a_kill() {
    let mut broker = broker_with_queue();
    let consumer = Consumer::answering(|_| Answer::Value(-1));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["a"]);
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
}

/// Many stock servers close connections that are idle for a while: that is nobody's fault and costs no wait.
#[test]
fn a_closed_idle_connection_costs_nothing() {
    let broker = broker_with_queue();
    let consumer = Consumer::start();
    let options = [("retry-min", "10s"), ("retry-max", "10s"), ("call-timeout", "5s")];
    broker.subscribe("q", "s", &consumer.address(), &options);
    broker.put("q", 0, &["a"]);
    wait("the first is pushed", PATIENCE, || consumer.has("a"));
    consumer.close_connections();
    broker.put("q", 0, &["b"]);
    wait("the next is pushed over a new connection, at once", Duration::from_secs(5), || consumer.has("b"));

    // One that looks open until a call comes. Half a second is what counts as idle.
    std::thread::sleep(Duration::from_millis(800));
    let mut first = true;
    consumer.answer_with(move |_| if std::mem::take(&mut first) { Answer::Close } else { Answer::Value(0) });
    broker.put("q", 0, &["c"]);
    wait("the call is sent again, at once", Duration::from_secs(5), || consumer.has("c"));
    broker.wait_for_no_lag("q", "s");
    let status = broker.subscription("q", "s");
    assert_eq!((status.attempts(), status.0.failed), (0, Some(0)));
}

/// A consumer that needs its time for each message must not meet all of them again after a timeout.
#[test]
fn a_consumer_that_is_slow_with_each_message_gets_along() {
    let broker = broker_with_queue();
    let values: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    broker.put("q", 0, &values);
    let consumer = Consumer::answering(|messages| {
        let time = Duration::from_millis(20) * messages.len() as u32;
        // Far from the timeout on either side: a busy machine must not decide.
        if messages.len() <= 20 { Answer::Slow(time, 0) } else { Answer::Late(time + Duration::from_secs(1), 0) }
    });
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "20ms"), ("retry-max", "40ms"), ("call-timeout", "1s")]);
    wait("all are accepted", PATIENCE, || consumer.has("59"));
    broker.wait_for_no_lag("q", "s");
    check_order(&consumer.accepted());
    let sizes: Vec<usize> = consumer.calls().iter().map(|c| c.messages.len()).collect();
    assert_eq!(sizes[..3], [60, 30, 15], "halved by each timeout");
}

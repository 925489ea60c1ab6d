//! Every answer that `consumeMessages` can have: order is kept, nothing is skipped, what was consumed does not come again.

use std::time::Duration;

use hqueue_tests::consumer::{Call, turns};
use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, seed, wait};

const QUICK: [(&str, &str); 4] = [("retry-min", "20ms"), ("retry-max", "40ms"), ("call-timeout", "1s"), ("batch-messages", "10")];

/// Pushes the numbers 0..30 in calls of 10 to a consumer that gives these answers first. Returns the calls; everything was accepted
/// once and in order.
fn push(answers: Vec<Answer>) -> Vec<Call> {
    let broker = Broker::start();
    broker.create("q", 1);
    let values: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    broker.put("q", 0, &values);
    let consumer = Consumer::answering(turns(answers));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("all are accepted", PATIENCE, || consumer.count() >= 30);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.values(), values, "in order, each accepted once");
    assert_eq!(broker.subscription("q", "s").attempts(), 0, "success ends the count of attempts");
    consumer.calls()
}

/// The numbers in a call.
fn numbers(call: &Call) -> Vec<usize> {
    call.messages.iter().map(|m| m.text().parse().unwrap()).collect()
}

#[test]
fn zero_and_n_are_all() {
    let calls = push(vec![Answer::Value(0), Answer::Value(10)]);
    assert_eq!(numbers(&calls[0]), (0..10).collect::<Vec<_>>());
    assert_eq!(numbers(&calls[1])[0], 10);
    assert_eq!(numbers(&calls[2])[0], 20);
    assert_eq!(calls.len(), 3);
}

#[test]
fn k_is_the_first_k() {
    let calls = push(vec![Answer::Value(1), Answer::Value(7), Answer::Value(9)]);
    let begins: Vec<usize> = calls.iter().map(|c| numbers(c)[0]).collect();
    assert_eq!(begins[..4], [0, 1, 8, 17], "the next call begins behind what was consumed");
}

#[test]
fn failures_repeat_the_batch() {
    for answer in [
        Answer::Value(-1),
        Answer::Value(11),
        Answer::Value(i32::MAX),
        Answer::Value(i32::MIN),
        Answer::Value(-4),
        Answer::Exception("the handler failed".to_owned()),
        Answer::Close,
    ] {
        let calls = push(vec![Answer::Value(10), answer.clone(), answer.clone()]);
        let begins: Vec<usize> = calls.iter().map(|c| numbers(c)[0]).collect();
        assert_eq!(begins[..4], [0, 10, 10, 10], "{answer:?}");
    }
}

/// The first answer comes when its caller has given up: it must not pass for that of the next call.
#[test]
fn a_late_answer_counts_for_nothing() {
    let calls = push(vec![Answer::Late(Duration::from_millis(1500), 0)]);
    assert_eq!(numbers(&calls[1])[0], 0, "nothing is known of what was consumed");
    assert_eq!(calls[1].messages.len(), 5, "after a timeout the next call carries half");
    assert_eq!(calls[2].messages.len(), 10, "and grows back with success");
}

#[test]
fn partly_consumed_and_then_failed() {
    let calls = push(vec![Answer::Value(4), Answer::Value(-1), Answer::Value(3), Answer::Exception("no".to_owned())]);
    let begins: Vec<usize> = calls.iter().map(|c| numbers(c)[0]).collect();
    assert_eq!(begins[..5], [0, 4, 4, 7, 7]);
}

#[test]
fn busy_is_no_attempt() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    let consumer = Consumer::answering(|_| Answer::Value(-2));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("it is asked again and again", PATIENCE, || consumer.call_count() >= 6);
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
    consumer.answer_with(|_| Answer::Value(-1));
    wait("failures are attempts", PATIENCE, || broker.subscription("q", "s").attempts() >= 3);
    let failing = broker.subscription("q", "s");
    assert_eq!(failing.state(), "retrying");
    assert!(failing.last_error().contains("-1"), "{}", failing.last_error());
    consumer.answer_with(|_| Answer::Value(-2));
    wait("the last failure is answered", PATIENCE, || consumer.calls().last().is_some_and(|c| c.answer == Answer::Value(-2)));
    let calls = consumer.call_count();
    let attempts = broker.subscription("q", "s").attempts();
    wait("it is asked again and again", PATIENCE, || consumer.call_count() >= calls + 5);
    assert_eq!(broker.subscription("q", "s").attempts(), attempts, "busy leaves the attempts as they are");
    consumer.answer_all();
    wait("the message is accepted", PATIENCE, || consumer.has("a"));
}

/// What a consumer refuses for good is not passed over in silence: it comes again, or it is in the count of dead letters.
#[test]
fn refused_for_good_is_not_lost() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a", "never", "b"]);
    let mut refusals = 0;
    let consumer = Consumer::answering(move |messages| match messages[0].text() {
        "never" if refusals < 3 => {
            refusals += 1;
            Answer::Value(-3)
        }
        _ => Answer::Value(1),
    });
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("the others are accepted", PATIENCE, || consumer.has("b"));
    broker.wait_for_no_lag("q", "s");
    let dead = broker.subscription("q", "s").0.dead_lettered.unwrap();
    if dead == 0 {
        assert_eq!(consumer.values(), ["a", "never", "b"]);
    } else {
        assert_eq!((dead, consumer.values()), (1, vec!["a".to_owned(), "b".to_owned()]));
    }
}

/// The error text of a handler is what people look for.
#[test]
fn the_reason_of_an_exception_is_kept() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    let consumer = Consumer::answering(|_| Answer::Exception("the database is away".to_owned()));
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("the reason is shown", PATIENCE, || broker.subscription("q", "s").last_error().contains("the database is away"));
    let status = broker.subscription("q", "s");
    assert!(status.0.last_error_time.is_some_and(|t| t.contains('T') && t.ends_with('Z')), "when, in RFC 3339");
    assert!(status.0.failed > Some(0));
}

/// Any mixture of answers, over several partitions.
#[test]
fn any_mixture_keeps_order_and_skips_nothing() {
    let mut random = seed("any_mixture_keeps_order_and_skips_nothing");
    let broker = Broker::start();
    broker.create("q", 3);
    let values: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    for partition in 0..3 {
        broker.put("q", partition, &values);
    }
    let mut left = 60;
    let consumer = Consumer::answering(move |messages| {
        left -= 1;
        if left < 0 {
            return Answer::Value(0);
        }
        match random.usize(0..12) {
            0 => Answer::Value(-1),
            1 => Answer::Value(-2),
            2 => Answer::Exception("now and then".to_owned()),
            3 => Answer::Close,
            4 => Answer::Value(messages.len() as i32 + random.i32(1..5)),
            5 if random.usize(0..4) == 0 => Answer::Late(Duration::from_millis(1500), random.i32(-2..10)),
            6 => Answer::Slow(Duration::from_millis(random.u64(0..100)), 0),
            _ => Answer::Value(random.i32(0..=messages.len() as i32)),
        }
    });
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("all are accepted", PATIENCE * 2, || consumer.count() >= 600);
    broker.wait_for_no_lag("q", "s");
    let accepted = consumer.accepted();
    for (partition, came) in hqueue_tests::order::by_partition(&accepted) {
        let came: Vec<&str> = came.iter().map(|m| m.text()).collect();
        assert_eq!(came, values, "partition {partition}");
    }
}

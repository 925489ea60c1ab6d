//! Limits on how fast and how much: rates and windows.

use std::time::{Duration, Instant};

use hqueue_tests::{Answer, Broker, Consumer, PATIENCE, wait};

/// Pushes to a consumer with these options and returns how long that took.
fn took(options: &[(&str, &str)], messages: usize, bytes: usize) -> Duration {
    let broker = Broker::start();
    broker.create("q", 4);
    for partition in 0..4 {
        broker.put("q", partition, &vec!["x".repeat(bytes); messages / 4]);
    }
    let consumer = Consumer::start();
    let began = Instant::now();
    broker.subscribe("q", "s", &consumer.address(), options);
    wait("all come", PATIENCE, || consumer.count() == messages);
    began.elapsed()
}

/// A second's worth may come at once, the rest at the rate.
#[test]
fn messages_a_second() {
    let took = took(&[("rate-messages", "100")], 400, 10);
    assert!((2500..9000).contains(&took.as_millis()), "400 messages at 100 a second in {took:?}");
}

#[test]
fn bytes_a_second() {
    let took = took(&[("rate-bytes", "100000")], 400, 1000);
    assert!((2500..9000).contains(&took.as_millis()), "400,000 bytes at 100,000 a second in {took:?}");
}

/// Over all partitions and connections no more messages are on their way than the window lets.
#[test]
fn the_window_is_one_for_all() {
    let broker = Broker::start();
    broker.create("q", 8);
    for partition in 0..8 {
        broker.put("q", partition, &vec!["x"; 50]);
    }
    let consumers: Vec<Consumer> = (0..4).map(|_| Consumer::answering(|_| Answer::Hang)).collect();
    let addresses = consumers.iter().map(Consumer::address).collect::<Vec<_>>().join(",");
    let window = ["--window-messages", "10", "--batch-messages", "8", "--from", "earliest", "--retry-min", "10ms"];
    broker.run(&[&["add_subscriber", "q", "s", "--address", &addresses][..], &window].concat()).text();
    let sent = || consumers.iter().flat_map(Consumer::calls).map(|call| call.messages.len()).sum::<usize>();
    wait("the window is full", PATIENCE, || sent() >= 10);
    // What must not come has its time.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((sent(), broker.subscription("q", "s").0.in_flight), (10, Some(10)));
    consumers.iter().for_each(Consumer::answer_all);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumers.iter().map(Consumer::count).sum::<usize>(), 400);
}

#[test]
fn what_cannot_be_is_refused() {
    let broker = Broker::start();
    broker.create("q", 1);
    for (option, value) in [
        ("rate-messages", "many"),
        ("rate-bytes", "4294967296"),
        ("window-messages", "10000001"),
        ("window-bytes", "1023"),
        ("batch-messages", "0"),
        ("batch-bytes", "16000001"),
        ("max-attempts", "0"),
        ("max-dead-in-a-row", "0"),
        ("calls", "17"),
        ("calls", "0"),
        ("max-span", "0"),
        ("ordering", "random"),
        ("on-poison", "ignore"),
        ("retry-min", "9ms"),
        ("call-timeout", "2h"),
    ] {
        let flag = format!("--{option}");
        let done = broker.run(&["add_subscriber", "q", "s", &flag, value]);
        assert!(done.code == Some(2) && done.err.contains(value) && done.err.contains(option), "{done}");
    }
    broker.run(&["add_subscriber", "q", "s", "--retry-min", "10s", "--retry-max", "1s"]).refused(2, &["retry-min", "retry-max"]);
    assert!(broker.run(&["list_subscribers", "q", "--format", "json"]).json()["subscribers"].as_array().unwrap().is_empty());
}

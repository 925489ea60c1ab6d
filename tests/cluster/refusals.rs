//! What is not done ends with a non-zero exit code and the reason, at the owner and at any other broker.

use std::time::Duration;

use hqueue_tests::cluster::SHORT;
use hqueue_tests::{Answer, Broker, Cluster, Consumer, Meeting, PATIENCE, Setup, free_port, wait};

#[test]
fn puts_that_are_not_stored() {
    let mut cluster = Cluster::with_session(2, SHORT);
    cluster.brokers[0].create("q", 2);
    let p = cluster.partition_of("q", 1).to_string();
    let large = vec![b'x'; (4 << 20) + 1];
    for broker in &cluster.brokers {
        let put = ["put", "q", "--topic", "t", "--partition", &p, "--whole", "-"];
        broker.run_with(&put, &large).refused(1, &["4194305", "4194304"]);
        broker.run(&["put", "q", "--topic", "t", "--partition", "2", "x"]).refused(1, &["2", "0 to 1"]);
        broker.run(&["put", "none", "--topic", "t", "x"]).refused(1, &["none"]);
    }
    cluster.brokers[1].kill();
    let one = &cluster.brokers[0];
    // While its node stands, and when it is gone.
    let put = |expected: &str| {
        let done = one.run(&["put", "q", "--topic", "t", "--partition", &p, "x"]);
        assert_eq!(done.code, Some(1), "{done}");
        assert!(done.out.is_empty(), "nothing is printed as if it had been stored: {done}");
        done.err.contains(expected)
    };
    assert!(put(&cluster.brokers[1].port().to_string()) || put("offline"));
    wait("it is known to be away", PATIENCE, || put("offline"));
    one.run(&["scan", "q", "--partition", &p]).refused(1, &["offline"]);
    one.run(&["truncate_queue", "q", "--yes"]).refused(1, &["offline"]);
    let status = one.run(&["status", "q", "--format", "json"]).json();
    let states: Vec<_> = status["partitions"].as_array().unwrap().iter().map(|p| p["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|s| **s == "offline").count(), 1, "{status}");
    assert_eq!(one.run(&["put", "q", "--topic", "t", "anywhere"]).code, Some(0));
}

/// With messages in the brokers' logs partitions stay where they are.
#[test]
fn what_only_brokers_that_share_a_store_can_do() {
    let cluster = Cluster::start(1);
    let alone = Broker::start();
    cluster.brokers[0].create("q", 1);
    alone.create("q", 1);
    for words in [&["move", "q", "0", "other"][..], &["balancer", "off"], &["balancer", "on"], &["balancer", "status"]] {
        cluster.brokers[0].run(words).refused(1, &["log of the broker"]);
        alone.run(words).refused(1, &["the only one"]);
    }
}

/// A subscriber that fails at everything: its status tells at any broker what, how often and since when.
#[test]
fn a_subscriber_that_fails() {
    let cluster = Cluster::start(2);
    cluster.brokers[0].create("q", 2);
    let consumer = Consumer::answering(|_| Answer::Exception("out of order".to_owned()));
    cluster.brokers[0].subscribe("q", "s", &consumer.address(), &[("retry-min", "50ms"), ("retry-max", "200ms")]);
    cluster.brokers[0].subscribe("q", "unknown", "no-such-host.invalid:9", &[]);
    for p in 0..2 {
        cluster.brokers[0].put("q", p, &["a", "b"]);
    }
    wait("both brokers have tried", PATIENCE, || {
        let calls = consumer.calls();
        (0..2).all(|p| calls.iter().filter(|c| c.messages[0].partition == p).count() >= 2)
    });
    for broker in &cluster.brokers {
        wait("it is told", PATIENCE, || {
            let status = broker.subscription("q", "s");
            status.attempts() >= 2 && status.last_error().contains("out of order")
        });
        let status = broker.subscription("q", "s");
        assert_eq!((status.state(), status.lag()), ("retrying", 4));
        assert!(status.0.last_error_time.as_ref().is_some_and(|t| !t.is_empty()) && status.0.failed.unwrap() >= 4);
        wait("what cannot be resolved is named", PATIENCE, || {
            let unknown = broker.subscription("q", "unknown");
            unknown.last_error().contains("no-such-host.invalid:9") && unknown.last_error().contains("resolve")
        });
    }
    consumer.answer_all();
    cluster.brokers[1].wait_for_no_lag("q", "s");
    // In each partition what was done of a batch is not sent again; what was not comes first.
    let partial = Consumer::answering({
        let mut answers = [6, -1, i32::MAX, -2, 11].into_iter();
        move |messages| match answers.next() {
            Some(k) if k <= 0 || k as usize <= messages.len() || k > 10 => Answer::Value(k),
            _ => Answer::Value(0),
        }
    });
    cluster.brokers[1].subscribe(
        "q",
        "partial",
        &partial.address(),
        &[("retry-min", "20ms"), ("retry-max", "50ms"), ("batch-messages", "10")],
    );
    for p in 0..2 {
        cluster.brokers[0].put("q", p, &(0..30).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    cluster.brokers[0].wait_for_no_lag("q", "partial");
    assert_eq!(partial.count(), 64, "each once: nothing is skipped, nothing that was done comes again");
}

/// Addresses that others cannot use are warned of at the start; who meets one says which it is and whose.
#[test]
fn advertised_addresses() {
    let cluster = Cluster::start(1);
    assert!(cluster.brokers[0].log().contains("127.0.0.1 is advertised: brokers and clients on other machines cannot reach it"));
    let meeting = || Meeting { zookeeper: cluster.zookeeper().to_owned(), session_timeout: "10s".to_owned() };
    let nowhere = format!("127.0.0.1:{}", free_port());
    for (advertise, warning) in [
        ("no-such-host.invalid:9190", "cannot be resolved"),
        ("0.0.0.0:9190", "0.0.0.0 is advertised"),
        (nowhere.as_str(), "127.0.0.1 is advertised"),
    ] {
        let flags = vec!["--advertise".to_owned(), advertise.to_owned()];
        let broker = Broker::with(Setup { meeting: Some(meeting()), flags, ..Setup::default() });
        assert!(broker.log().contains(warning), "{advertise}");
        wait("the other knows of it", PATIENCE, || cluster.hand.children("/brokers").len() == 2);
        let status = || cluster.brokers[0].run(&["status"]);
        wait("the other says what it cannot reach", PATIENCE, || {
            let status = status();
            status.code == Some(0) && status.err.contains(advertise) && status.text().contains(advertise)
        });
        let queue = format!("q{}", advertise.len());
        cluster.brokers[0].create(&queue, 2);
        let errors: Vec<_> = (0..2)
            .map(|p| cluster.brokers[0].run(&["put", &queue, "--topic", "t", "--partition", &p.to_string(), "x"]))
            .filter(|done| done.code != Some(0))
            .collect();
        let [refused] = &errors[..] else { panic!("one partition is at the other: {errors:?}") };
        refused.refused(1, &[advertise]);
        assert!(refused.took < Duration::from_secs(10), "{refused}");
        drop(broker);
        wait("it is gone", PATIENCE, || cluster.hand.children("/brokers").len() == 1);
    }
    for wrong in ["nowhere", "host:0", "host:70000"] {
        let flags = vec!["--advertise".to_owned(), wrong.to_owned()];
        let mut broker = Broker::prepared(Setup { meeting: Some(meeting()), flags, ..Setup::default() });
        broker.launch();
        let status = broker.ended(PATIENCE);
        assert!(status.code() == Some(2) && broker.log().contains(wrong), "{wrong}: {status}, {}", broker.log());
    }
}

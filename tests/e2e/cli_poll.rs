//! `hqueue poll`: what it prints, where it goes on, its fairness, its wait.

use std::time::{Duration, Instant};

use hqueue_tests::{Broker, Follower, PATIENCE, run, wait};

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// Calls that have begun.
fn requests(broker: &Broker) -> f64 {
    broker.metrics().sum("hqueue_requests_total", &[])
}

fn connections(broker: &Broker) -> f64 {
    broker.metrics().sum("hqueue_connections", &[])
}

fn poll(broker: &Broker, flags: &[&str]) -> Vec<String> {
    let words: Vec<&str> = ["poll", "q", "--name", "p", "--format", "json"].iter().chain(flags).copied().collect();
    broker.run(&words).json_lines().iter().map(|line| line["value"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_command_goes_on_where_it_was() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &numbers(0..10));
    assert!(poll(&broker, &[]).is_empty(), "latest unless said");
    assert!(poll(&broker, &["--from", "earliest"]).is_empty(), "the name is not new any more");
    broker.run(&["delete_subscriber", "q", "p", "--yes"]).text();
    assert_eq!(poll(&broker, &["--from", "earliest", "--max", "4", "--no-commit"]), numbers(0..4));
    assert_eq!(poll(&broker, &["--max", "4"]), numbers(0..4));
    assert_eq!(poll(&broker, &[]), numbers(4..10));
    broker.put("q", 0, &["a\tb"]);
    let text = broker.run(&["poll", "q", "--name", "p"]);
    let fields: Vec<&str> = text.text().trim_end().split('\t').collect();
    assert_eq!((fields[0], fields[2], fields[3]), ("0", "t", "a\\tb"));
    assert!(poll(&broker, &[]).is_empty());
    broker.put("q", 0, &numbers(0..1500));
    assert_eq!((poll(&broker, &[]).len(), poll(&broker, &[]).len()), (1000, 500));
    broker.run(&["poll", "q", "--name", "p", "--max", "0"]).refused(2, &["100000"]);
    broker.run(&["poll", "q"]).refused(2, &["--name"]);
    broker.run(&["poll", "nowhere", "--name", "p"]).refused(1, &["nowhere"]);
    broker.run(&["poll", "q", "--name", "a b"]).refused(2, &["a b"]);
    broker.run(&["poll", "q", "--name", "p", "--wait", "5"]).refused(2, &["'5'"]);
    run(["poll", "q", "--name", "p", "--connect", "hqueue://127.0.0.1:1"], b"").refused(1, &["127.0.0.1:1"]);
}

#[test]
fn the_command_is_fair_to_the_partitions() {
    let broker = Broker::start();
    broker.create("q", 4);
    poll(&broker, &[]);
    for partition in 0..3 {
        broker.put("q", partition, &vec![partition.to_string(); 1000]);
    }
    let got = poll(&broker, &["--max", "300"]);
    for partition in 0..3 {
        let share = got.iter().filter(|value| **value == partition.to_string()).count();
        assert!((99..=101).contains(&share), "{share} of partition {partition}");
    }
    assert_eq!(got.len(), 300);
    // What one does not have falls to the others, and nothing is lost on the way.
    broker.put("q", 3, &["3", "3"]);
    let mut rest: Vec<String> =
        std::iter::from_fn(|| Some(poll(&broker, &["--max", "1000"])).filter(|got| !got.is_empty())).flatten().collect();
    rest.sort();
    assert_eq!((rest.len(), rest[0].as_str(), rest[2701].as_str()), (2702, "0", "3"));
}

#[test]
fn the_command_waits_at_all_partitions_at_once() {
    let broker = Broker::start();
    broker.create("q", 100);
    poll(&broker, &[]);
    let began = Instant::now();
    assert!(poll(&broker, &["--wait", "300ms"]).is_empty());
    assert!(began.elapsed() >= Duration::from_millis(300));
    for partition in [0, 47, 48, 99] {
        let (open, begun) = (connections(&broker), requests(&broker));
        let follower = Follower::start(broker.words(&["poll", "q", "--name", "p", "--wait", "1m", "--format", "json"]));
        // How many partitions there are, a look at each, and the waits.
        wait("it waits", PATIENCE, || requests(&broker) >= begun + 201.0);
        let put = Instant::now();
        broker.put("q", partition, &["now"]);
        assert_eq!(follower.json()["partition"], partition);
        println!("printed {:?} after the put", put.elapsed());
        assert!(put.elapsed() < Duration::from_secs(5));
        wait("what was printed is committed", PATIENCE, || broker.subscription("q", "p").lag() == 0);
        wait("it leaves nothing", PATIENCE, || connections(&broker) <= open);
    }
    assert!(poll(&broker, &[]).is_empty());
}

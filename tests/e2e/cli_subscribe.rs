//! `hqueue subscribe`, and readers that leave.

use hqueue_tests::silent::HangsUp;
use hqueue_tests::{Broker, Follower, PATIENCE, wait};

use crate::cli::has_fields;

#[test]
fn subscribe_prints_what_comes_and_leaves_in_order() {
    let broker = Broker::start();
    broker.create("q", 2);
    broker.put("q", 0, &["early"]);
    let follower = Follower::start(broker.words(&["subscribe", "q", "--name", "s", "--from", "earliest", "--format", "json"]));
    let early = follower.json();
    has_fields(&early, &["partition", "id", "topic", "value"]);
    assert_eq!(early["value"], "early");
    broker.put("q", 1, &["later"]);
    assert_eq!(follower.json()["value"], "later");
    let status = broker.subscription("q", "s");
    assert_eq!((status.state(), status.endpoints().len()), ("active", 1));
    let (code, rest) = follower.terminate();
    assert_eq!((code, rest), (Some(0), vec![]));
    wait("it has left", PATIENCE, || broker.subscription("q", "s").endpoints().is_empty());
    broker.put("q", 0, &["meanwhile"]);
    assert_eq!(broker.subscription("q", "s").lag(), 1);
    let follower = Follower::start(broker.words(&["subscribe", "q", "--name", "s"]));
    let line = follower.line();
    let columns: Vec<&str> = line.split('\t').collect();
    assert_eq!((columns.len(), columns[0], columns[2], columns[3]), (4, "0", "t", "meanwhile"));
    follower.kill();
}

/// A broker that takes the connection and then does not help is no reason to give up, if there are others.
#[test]
fn the_next_broker_is_asked() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    let hangs_up = HangsUp::listen();
    let url = format!("hqueue://{},127.0.0.1:{}", hangs_up.address(), broker.port());
    let follower = Follower::start(["subscribe", "q", "--name", "s", "--from", "earliest", "--connect", &url]);
    assert!(follower.line().ends_with("\ta"));
    assert!(hangs_up.count() > 0, "it was asked first");
    assert_eq!(follower.terminate().0, Some(0));
}

/// A second process of the name takes over what the first, killed, no longer takes.
#[test]
fn a_killed_subscriber_loses_nothing() {
    let broker = Broker::start();
    broker.create("q", 1);
    let words = broker.words(&["subscribe", "q", "--name", "s", "--from", "earliest"]);
    let first = Follower::start(&words);
    broker.put("q", 0, &["a"]);
    assert!(first.line().ends_with("\ta"));
    broker.wait_for_no_lag("q", "s");
    first.kill();
    broker.put("q", 0, &["b"]);
    let second = Follower::start(&words);
    assert!(second.line().ends_with("\tb"), "as soon as it is there, or when the registration of the dead one ends");
    second.kill();
}

/// A reader that leaves early is no failure.
#[test]
fn a_closed_pipe_is_no_failure() {
    let broker = Broker::start();
    broker.create("q", 1);
    let values: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    broker.put("q", 0, &values);
    let program = hqueue_tests::hqueue().display();
    let script = format!("set -o pipefail; {program} scan q --connect {} | head -1", broker.url());
    let output = std::process::Command::new("bash").arg("-c").arg(script).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

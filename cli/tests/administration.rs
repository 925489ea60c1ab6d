//! Queues and subscribers, made, shown and removed from the command line.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use serde_json::json;
use support::Broker;

#[test]
fn a_queue_from_creation_to_its_end() {
    let broker = Broker::start();
    assert_eq!(broker.json(&["list"]), json!({"queues": []}));
    broker.create("q1", 2);
    let done = broker.try_run(&["create", "q1", "--partitions", "2", "--ttl", "60"]);
    assert!(done.code == 1 && done.err.contains("exists"), "{done:?}");
    let listed = json!({"name": "q1", "partitions": 2, "ttl_seconds": 3600, "state": "enabled"});
    assert_eq!(broker.json(&["list"]), json!({"queues": [listed]}));
    let described = broker.json(&["describe", "q1"]);
    assert_eq!((&described["partitions"], &described["configuration"]), (&json!(2), &json!({})));
    assert!(described["created"].as_str().unwrap().ends_with('Z'), "{described}");
    assert_eq!(broker.json(&["locations", "q1"]), json!({"locations": [broker.address.to_string(), broker.address.to_string()]}));

    broker.run(&["put", "q1", "--topic", "t", "v"]);
    broker.run(&["truncate_queue", "q1", "--yes"]);
    assert_eq!(broker.run(&["scan", "q1"]), "");
    assert_eq!(broker.try_run(&["drop", "q1", "--yes"]).code, 1, "disable comes first");
    broker.run(&["disable", "q1"]);
    assert_eq!(broker.try_run(&["put", "q1", "--topic", "t", "v"]).code, 1);
    broker.run(&["enable", "q1"]);
    broker.run(&["put", "q1", "--topic", "t", "v"]);
    broker.run(&["disable", "q1"]);
    broker.run(&["drop", "q1", "--yes"]);
    assert_eq!(broker.json(&["list"]), json!({"queues": []}));
    let done = broker.try_run(&["describe", "q1"]);
    assert!(done.code == 1 && done.err.contains("q1"), "{done:?}");
}

#[test]
fn a_subscriber_from_adding_to_deleting() {
    let broker = Broker::start();
    broker.create("q", 2);
    let words = ["add_subscriber", "q", "s", "--topic", "a", "--topic", "b,c", "--partition", "1", "--from", "earliest"];
    broker.run(&[&words[..], &["--retry-min", "50ms", "--retry-max", "1s", "--batch-messages", "10"]].concat());
    let done = broker.try_run(&["add_subscriber", "q", "s"]);
    assert!(done.code == 1 && done.err.contains("exists"), "{done:?}");
    let listed = broker.json(&["list_subscribers", "q"]);
    let subscriber = &listed["subscribers"][0];
    assert_eq!((&subscriber["name"], &subscriber["state"]), (&json!("s"), &json!("waiting")));
    assert_eq!((&subscriber["topics"], &subscriber["endpoints"]), (&json!(["a", "b,c"]), &json!([])));
    assert_eq!(subscriber["checkpoints"][0]["partition"], 1);

    broker.run(&["add_subscriber", "q", "fixed", "--address", "127.0.0.1:1,127.0.0.1:2"]);
    let status = broker.json(&["status", "q"]);
    assert_eq!(status["subscriptions"].as_array().unwrap().len(), 2);
    let fixed = status["subscriptions"].as_array().unwrap().iter().find(|s| s["name"] == "fixed").unwrap();
    assert_eq!(fixed["endpoints"], json!(["127.0.0.1:1", "127.0.0.1:2"]));

    for (words, says) in [
        (&["add_subscriber", "q", "x", "--partition", "2"][..], "partition"),
        (&["delete_subscriber", "q", "nobody", "--yes"], "nobody"),
        (&["dlq", "list", "q", "nobody"], "it has fixed, s"),
    ] {
        let done = broker.try_run(words);
        assert!(done.code == 1 && done.err.contains(says) && done.err.lines().count() < 6, "{words:?}: {done:?}");
    }
    broker.run(&["delete_subscriber", "q", "s", "--yes"]);
    assert_eq!(broker.json(&["list_subscribers", "q"])["subscribers"].as_array().unwrap().len(), 1);
}

#[test]
fn status_shows_brokers_queues_and_partitions() {
    let broker = Broker::start();
    broker.create("q", 2);
    broker.run(&["add_subscriber", "q", "s", "--from", "earliest"]);
    broker.run(&["put", "q", "--topic", "t", "--partition", "1", "a", "b"]);
    let status = broker.json(&["status"]);
    assert_eq!(status["brokers"][0]["address"], broker.address.to_string());
    assert_eq!(status["queues"], json!([{"name": "q", "partitions": 2, "offline": 0, "subscriptions": 1, "lag_messages": 2}]));
    let status = broker.json(&["status", "q"]);
    assert_eq!(status["partitions"][0]["first_id"], json!(null));
    assert_eq!((&status["partitions"][1]["messages"], &status["partitions"][1]["state"]), (&json!(2), &json!("online")));
    assert_eq!(status["subscriptions"][0]["lag_messages"], 2);
    let text = broker.run(&["status", "q"]);
    assert!(text.starts_with("queue q, enabled\n\nPARTITION  OWNER"), "{text}");
    assert!(text.contains("ATTEMPTS") && text.contains("DEAD-LETTERED"), "{text}");
    assert!(text.ends_with("\nin trouble:\n  subscriber s: no endpoint, 2 messages wait\n"), "{text}");
    let text = broker.run(&["status"]);
    assert!(text.starts_with("BROKER") && text.contains("DEAD-LETTERED"), "{text}");
    assert!(text.ends_with("\nin trouble:\n  subscriber s of queue q: no endpoint, 2 messages wait\n"), "{text}");
    broker.run(&["seek", "q", "s", "latest"]);
    for words in [&["status"][..], &["status", "q"], &["list_subscribers", "q"]] {
        let text = broker.run(words);
        assert!(!text.contains("in trouble:"), "{text}");
    }
    assert!(broker.run(&["list"]).starts_with("NAME"));
}

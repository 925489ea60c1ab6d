//! The command line: exit codes, what it prints for people and as JSON, and what it refuses.

use std::collections::BTreeSet;

use hqueue_tests::{Answer, Broker, Consumer, Id, PATIENCE, free_port, run, wait};
use serde_json::{Value, json};

/// The names of an object's fields.
#[track_caller]
fn fields(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap_or_else(|| panic!("no object: {object}")).keys().map(String::as_str).collect()
}

/// Checks that an object has these fields and no others.
#[track_caller]
pub(crate) fn has_fields(object: &Value, wanted: &[&str]) {
    assert_eq!(fields(object), wanted.iter().copied().collect(), "{object}");
}

const SUBSCRIPTION: [&str; 15] = [
    "name",
    "state",
    "endpoints",
    "topics",
    "lag_messages",
    "lag_seconds",
    "in_flight",
    "attempts",
    "delivered",
    "failed",
    "expired_messages",
    "dead_lettered",
    "last_error",
    "last_error_time",
    "checkpoints",
];

#[test]
fn put_and_scan_in_text_and_json() {
    let broker = Broker::start();
    assert_eq!(broker.run(&["create", "q", "--partitions", "2", "--ttl", "60"]).text(), "");
    let put = broker.run(&["put", "q", "--topic", "t", "--partition", "1", "one", "two"]);
    let lines: Vec<&str> = put.text().lines().collect();
    let ids: Vec<Id> = lines.iter().map(|l| l.strip_prefix("1 ").unwrap().parse().unwrap()).collect();
    assert!(ids.len() == 2 && ids[0] < ids[1], "PARTITION ID, in order");
    let put = broker.run(&["put", "q", "--topic", "t", "--partition", "1", "--format", "json", "three"]).json_lines();
    has_fields(&put[0], &["partition", "id"]);
    assert_eq!(put[0]["partition"], 1);
    let third = put[0]["id"].as_str().unwrap();
    let scan = broker.run(&["scan", "q"]);
    let expected = format!("1\t{}\tt\tone\n1\t{}\tt\ttwo\n1\t{third}\tt\tthree\n", ids[0], ids[1]);
    assert_eq!(scan.text(), expected);
    let scan = broker.run(&["scan", "q", "--format", "json"]).json_lines();
    assert_eq!(scan[2], json!({"partition": 1, "id": third, "topic": "t", "value": "three"}));
    assert_eq!(broker.run(&["scan", "q", "--limit", "2"]).text().lines().count(), 2);
    assert_eq!(broker.run(&["scan", "q", "--partition", "0"]).text(), "");
}

#[test]
fn odd_bytes_harm_no_terminal() {
    let broker = Broker::start();
    broker.create("q", 1);
    let value = b"tab\there\x1b[31mred\x00\xff\\ \xe2\x9c\x93\nsecond\r\n";
    broker.run_with(&["put", "q", "--topic", "a\tb", "--whole", "-"], value).text();
    let text = broker.run(&["scan", "q"]);
    let text = text.text();
    assert_eq!(text.lines().count(), 1, "a message is a line: {text:?}");
    let columns: Vec<&str> = text.trim_end_matches('\n').split('\t').collect();
    assert_eq!(columns[2..], ["a\\tb", "tab\\there\\x1b[31mred\\x00\\xff\\\\ ✓\\nsecond\\r\\n"]);
    let line = &broker.run(&["scan", "q", "--format", "json"]).json_lines()[0];
    has_fields(line, &["partition", "id", "topic", "value_base64"]);
    use base64::Engine;
    let decoded = base64::engine::general_purpose::STANDARD.decode(line["value_base64"].as_str().unwrap()).unwrap();
    assert_eq!(decoded, value);
    assert_eq!(line["topic"], "a\tb");
    broker.run(&["put", "q", "--topic", "t", "--header", "käse=gut", "--header", "b=", "with headers"]).text();
    let line = broker.run(&["scan", "q", "--format", "json", "--topic", "t"]).json_lines().remove(0);
    assert_eq!(line["headers"], json!({"käse": "gut", "b": ""}));
}

#[test]
fn lines_of_standard_input_and_files() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.run_with(&["put", "q", "--topic", "t", "-"], b"one\n\nthree\r\nlast without an end").text();
    let values = |topic: &str| -> Vec<String> {
        let lines = broker.run(&["scan", "q", "--topic", topic, "--format", "json"]).json_lines();
        lines.iter().map(|l| l["value"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(values("t"), ["one", "", "three\r", "last without an end"], "a line a message, an empty line is an empty value");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from\na file\n").unwrap();
    let path = file.path().to_str().unwrap();
    broker.run(&["put", "q", "--topic", "file", "--file", path]).text();
    assert_eq!(values("file"), ["from", "a file"]);
    broker.run(&["put", "q", "--topic", "whole", "--file", path, "--whole"]).text();
    assert_eq!(values("whole"), ["from\na file\n"]);
    assert_eq!(broker.run_with(&["put", "q", "--topic", "none", "-"], b"").text(), "", "nothing to put is fine");
    broker.run(&["put", "q", "--topic", "dash", "--", "-x", "--yes", "-"]).text();
    assert_eq!(values("dash"), ["-x", "--yes", "-"]);
    let many: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    let put = broker.run_with(&["put", "q", "--topic", "many", "--partition", "0", "-"], many.as_bytes());
    assert_eq!(put.text().lines().count(), 20_000);
    assert_eq!(values("many").join("\n") + "\n", many, "in order");
    broker.run(&["put", "q", "--topic", "t", "--file", "/no/such/file"]).refused(1, &["/no/such/file"]);
}

/// Messages of one key go to one partition.
#[test]
fn keys_choose_the_partition() {
    let broker = Broker::start();
    broker.create("q", 16);
    let partition = |key: &str, value: &str| {
        let put = broker.run(&["put", "q", "--topic", "t", "--key", key, value]);
        put.text().split(' ').next().unwrap().to_owned()
    };
    let first: Vec<String> = ["anna", "bert", "carla", "dora"].iter().map(|k| partition(k, "1")).collect();
    let again: Vec<String> = ["anna", "bert", "carla", "dora"].iter().map(|k| partition(k, "2")).collect();
    assert_eq!(first, again);
    assert!(first.iter().collect::<BTreeSet<_>>().len() > 1, "not all in one: {first:?}");
    broker.run(&["put", "q", "--topic", "t", "--key", "k", "--partition", "1", "v"]).refused(2, &["--partition"]);
}

#[test]
fn the_shapes_of_the_json_objects() {
    let broker = Broker::start();
    let empty = broker.run(&["list", "--format", "json"]).json();
    assert_eq!(empty, json!({"queues": []}));
    broker.run(&["create", "q", "--partitions", "2", "--ttl", "60", "--set", "hbase.hqueue.partitionsPerRegion=4"]).text();
    let listed = json!({"queues": [{"name": "q", "partitions": 2, "ttl_seconds": 60, "state": "enabled"}]});
    assert_eq!(broker.run(&["list", "--format", "json"]).json(), listed);
    let described = broker.run(&["describe", "q", "--format", "json"]).json();
    has_fields(&described, &["name", "partitions", "ttl_seconds", "state", "configuration", "created"]);
    assert_eq!(described["configuration"], json!({"hbase.hqueue.partitionsPerRegion": "4"}));
    assert!(described["created"].as_str().is_some_and(|c| c.ends_with('Z')), "RFC 3339: {described}");
    let locations = broker.run(&["locations", "q", "--format", "json"]).json();
    let address = format!("127.0.0.1:{}", broker.port());
    assert_eq!(locations, json!({"locations": [address, address]}));

    let consumer = Consumer::answering(|_| Answer::Exception("not today".to_owned()));
    let endpoint = consumer.address();
    let add = ["add_subscriber", "q", "s", "--address", &endpoint, "--topic", "t", "--from", "earliest", "--retry-min", "50ms"];
    assert_eq!(broker.run(&add).text(), "");
    broker.run(&["put", "q", "--topic", "t", "--partition", "1", "a", "b"]).text();
    wait("the failure is seen", PATIENCE, || broker.subscription("q", "s").attempts() > 0);
    let status = broker.run(&["status", "q", "--format", "json"]).json();
    has_fields(&status, &["name", "state", "partitions", "subscriptions"]);
    assert_eq!((&status["name"], &status["state"]), (&json!("q"), &json!("enabled")));
    let partitions = status["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 2);
    for partition in partitions {
        has_fields(partition, &["partition", "owner", "state", "first_id", "last_id", "messages", "bytes"]);
        assert_eq!(partition["state"], "online");
    }
    assert_eq!((&partitions[0]["messages"], &partitions[1]["messages"]), (&json!(0), &json!(2)));
    assert!(partitions[0]["last_id"].is_null() && partitions[1]["last_id"].is_string());
    let s = &status["subscriptions"][0];
    has_fields(s, &SUBSCRIPTION);
    assert_eq!((&s["name"], &s["state"], &s["lag_messages"]), (&json!("s"), &json!("retrying"), &json!(2)));
    assert_eq!((&s["endpoints"], &s["topics"]), (&json!([endpoint]), &json!(["t"])));
    assert!(s["last_error"].as_str().unwrap().contains("not today"));
    assert!(s["lag_seconds"].as_f64().unwrap() > 0.0);
    for checkpoint in s["checkpoints"].as_array().unwrap() {
        has_fields(checkpoint, &["partition", "id"]);
        checkpoint["id"].as_str().unwrap().parse::<Id>().unwrap();
    }
    let subscribers = broker.run(&["list_subscribers", "q", "--format", "json"]).json();
    has_fields(&subscribers, &["subscribers"]);
    has_fields(&subscribers["subscribers"][0], &SUBSCRIPTION);

    let cluster = broker.run(&["status", "--format", "json"]).json();
    has_fields(&cluster, &["brokers", "queues"]);
    has_fields(&cluster["brokers"][0], &["name", "address", "state"]);
    assert_eq!(cluster["brokers"][0]["address"], json!(address));
    let queue = json!({"name": "q", "partitions": 2, "offline": 0, "subscriptions": 1, "lag_messages": 2});
    assert_eq!(cluster["queues"], json!([queue]));
    for words in
        [&["status"][..], &["status", "q"], &["list"], &["describe", "q"], &["list_subscribers", "q"], &["locations", "q"]]
    {
        let text = broker.run(words);
        assert!(!text.text().trim().is_empty() && !text.text().contains('{'), "for people: {text}");
    }
}

/// The first of several brokers that answers is used; the environment names one, too.
#[test]
fn which_broker() {
    let broker = Broker::start();
    broker.create("here", 1);
    let url = format!("hqueue://127.0.0.1:{},127.0.0.1:{}", free_port(), broker.port());
    assert!(run(["list", "--connect", &url], b"").text().contains("here"));
    let mut command = std::process::Command::new(hqueue_tests::hqueue());
    let output = command.arg("list").env("HQUEUE_CONNECT", broker.url()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("here"));
}

#[test]
fn every_command_explains_itself() {
    let help = run(["--help"], b"");
    for command in [
        "standalone",
        "put",
        "scan",
        "subscribe",
        "status",
        "create",
        "list",
        "describe",
        "disable",
        "enable",
        "drop",
        "truncate_queue",
        "add_subscriber",
        "delete_subscriber",
        "list_subscribers",
        "locations",
    ] {
        assert!(help.text().contains(command), "{command}");
        let own = run([command, "--help"], b"");
        assert!(own.text().contains("Usage"), "{own}");
    }
    assert!(run(["--version"], b"").text().starts_with("hqueue "));
}

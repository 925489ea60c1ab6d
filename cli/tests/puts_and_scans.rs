//! `put` and `scan`: what goes in comes out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::process::Stdio;

use support::{Broker, run};

/// Values of a scan, without partition, id and topic.
fn values(scan: &str) -> Vec<&str> {
    scan.lines().map(|line| line.splitn(4, '\t').nth(3).unwrap()).collect()
}

#[test]
fn values_come_from_words_lines_and_files() {
    let broker = Broker::start();
    broker.create("q", 1);
    let placed = broker.run(&["put", "q", "--topic", "t", "one", "two"]);
    assert!(placed.lines().count() == 2 && placed.lines().all(|line| line.starts_with("0 ")), "{placed}");
    broker.run_with(&["put", "q", "--topic", "t", "-"], b"a\n\nlast without an end");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "x\ny\n").unwrap();
    let path = file.path().to_str().unwrap();
    broker.run(&["put", "q", "--topic", "t", "--file", path]);
    broker.run(&["put", "q", "--topic", "t", "--file", path, "--whole"]);
    broker.run_with(&["put", "q", "--topic", "t", "--whole", "-"], b"");
    let done = broker.try_run(&["put", "q", "--topic", "t", "word", "--", "-", "--topic"]);
    assert_eq!((done.code, done.out.lines().count()), (0, 3), "{done:?}");
    assert_eq!(
        values(&broker.run(&["scan", "q"])),
        ["one", "two", "a", "", "last without an end", "x", "y", "x\\ny\\n", "", "word", "-", "--topic"]
    );
}

#[test]
fn many_lines_are_put_in_order_and_their_places_are_printed_in_order() {
    let broker = Broker::start();
    broker.create("q", 3);
    let text: String = (0..10_000).map(|n| format!("{n}\n")).collect();
    let placed = broker.run_with(&["put", "q", "--topic", "t", "--partition", "2", "-"], text.as_bytes());
    let ids: Vec<&str> = placed.lines().map(|line| line.strip_prefix("2 ").unwrap()).collect();
    let scan = broker.run(&["scan", "q"]);
    assert_eq!(scan.lines().map(|line| line.split('\t').nth(1).unwrap()).collect::<Vec<_>>(), ids);
    assert!(values(&scan).into_iter().eq((0..10_000).map(|n| n.to_string()).collect::<Vec<_>>()));
    let key = |at: &str| broker.run(&["put", "q", "--topic", "t", "--key", at, "v"]).chars().next().unwrap();
    // Their hashes, cbf29ce484222325 and 1e1b8c70eb18f59e, modulo 3.
    assert_eq!((key(""), key("customer-42")), ('2', '2'));
}

#[test]
fn scans_have_ranges_topics_and_limits() {
    let broker = Broker::start();
    broker.create("q", 2);
    for (partition, topic) in [("0", "a"), ("0", "b"), ("1", "a")] {
        let text: String = (0..5).map(|n| format!("{partition}{topic}{n}\n")).collect();
        broker.run_with(&["put", "q", "--topic", topic, "--partition", partition, "-"], text.as_bytes());
    }
    let all = broker.run(&["scan", "q"]);
    assert_eq!(all.lines().count(), 15);
    let id = |n: usize| all.lines().nth(n).unwrap().split('\t').nth(1).unwrap().to_owned();
    let range = broker.run(&["scan", "q", "--partition", "0", "--start", &id(2), "--stop", &id(6)]);
    assert_eq!(values(&range), ["0a2", "0a3", "0a4", "0b0"]);
    assert_eq!(values(&broker.run(&["scan", "q", "--topic", "b", "--limit", "3"])), ["0b0", "0b1", "0b2"]);
    assert_eq!(broker.run(&["scan", "q", "--limit", "7"]).lines().count(), 7);
    assert_eq!(broker.run(&["scan", "q", "--limit", "0"]), "");
    assert_eq!(broker.run(&["scan", "q", "--start", "latest"]), "");
    assert_eq!(broker.run(&["scan", "q", "--stop", "latest"]), all);
    assert_eq!(broker.run(&["scan", "q", "--start", "-10m"]), all);
    assert_eq!(broker.run(&["scan", "q", "--stop", "-10m"]), "");
}

#[test]
fn json_has_an_object_a_line() {
    let broker = Broker::start();
    broker.create("q", 1);
    let words = ["put", "q", "--topic", "t", "--header", "k=v=w", "é", "--format", "json"];
    let placed: serde_json::Value = serde_json::from_str(&broker.run(&words)).unwrap();
    broker.run_with(&["put", "q", "--topic", "t", "--whole", "-"], b"\xff");
    let scan = broker.run(&["scan", "q", "--format", "json"]);
    let lines: Vec<serde_json::Value> = scan.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["id"], placed["id"]);
    assert_eq!((&lines[0]["value"], &lines[0]["headers"]["k"]), (&"é".into(), &"v=w".into()));
    assert_eq!((&lines[1]["value_base64"], lines[1].get("headers")), (&"/w==".into(), None));
}

#[test]
fn what_cannot_be_put_is_said_and_nothing_of_it_is_stored() {
    let broker = Broker::start();
    broker.create("q", 1);
    let put = |input: &[u8]| run(&mut broker.command(&["put", "q", "--topic", "t", "--whole", "-"]), input);
    let done = put(&vec![b'x'; 4 * 1024 * 1024 + 1]);
    assert!(done.code == 1 && done.err.contains("4194304"), "{done:?}");
    let done = put(&vec![b'x'; 16 * 1024 * 1024 + 1]);
    assert!(done.code == 1 && done.err.contains("16777216"), "{done:?}");
    let lines: String = (0..3000).map(|n| format!("{n}\n")).collect();
    let done = run(&mut broker.command(&["put", "nowhere", "--topic", "t", "-"]), lines.as_bytes());
    assert!(done.code == 1 && done.out.is_empty() && done.err.contains("nowhere"), "{done:?}");
    assert!(done.err.contains("message 1:") && done.err.lines().count() == 2, "{done:?}");
    let done = broker.try_run(&["put", "q", "--topic", "t", "--file", "/nowhere/f"]);
    assert!(done.code == 1 && done.err.contains("/nowhere/f"), "{done:?}");
    assert_eq!(broker.run(&["scan", "q"]), "");
}

#[test]
fn output_that_nobody_reads_ends_a_scan_quietly_and_stops_no_put() {
    let broker = Broker::start();
    broker.create("q", 1);
    let text: String = (0..50_000).map(|n| format!("{n}\n")).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    for words in [&["put", "q", "--topic", "t", "--file", file.path().to_str().unwrap()][..], &["scan", "q"]] {
        let mut child = broker.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }
    assert_eq!(broker.run(&["scan", "q"]).lines().count(), 50_000);
}

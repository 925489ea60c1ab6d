//! Commands that run until they are told to stop.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use support::{Broker, hqueue, run, send, wait};

/// `hqueue subscribe`, killed with the test.
struct Subscriber {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Subscriber {
    fn start(broker: &Broker, words: &[&str]) -> Self {
        let mut child = broker.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn subscribe_prints_what_is_pushed_and_leaves_on_sigterm() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.run(&["put", "q", "--topic", "t", "early"]);
    let words = ["subscribe", "q", "--name", "s", "--from", "earliest"];
    for (signal, put, comes) in [("-TERM", "later", &["early", "later"][..]), ("-INT", "last", &["last"])] {
        let mut subscriber = Subscriber::start(&broker, &words);
        broker.run(&["put", "q", "--topic", "t", put]);
        for value in comes {
            assert!(subscriber.line().ends_with(&format!("\tt\t{value}")));
        }
        send(&subscriber.child, signal);
        assert!(wait(&mut subscriber.child).success());
        let status = broker.json(&["status", "q"]);
        let subscription = &status["subscriptions"][0];
        assert_eq!((&subscription["endpoints"], &subscription["lag_messages"]), (&serde_json::json!([]), &0.into()));
    }
}

#[test]
fn subscribe_ends_quietly_when_nobody_reads_and_what_was_not_printed_comes_again() {
    let broker = Broker::start();
    broker.create("q", 1);
    let mut subscriber = Subscriber::start(&broker, &["subscribe", "q", "--name", "s", "--from", "earliest"]);
    broker.run(&["put", "q", "--topic", "t", "first"]);
    assert!(subscriber.line().ends_with("first"));
    // The reading end is closed by taking the lines away.
    let Subscriber { child, lines } = &mut subscriber;
    let closed = std::process::Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    drop(std::mem::replace(lines, BufReader::new(reading_end(closed)).lines()));
    broker.run(&["put", "q", "--topic", "t", "second"]);
    assert!(wait(child).success());
    assert_eq!(std::io::read_to_string(child.stderr.take().unwrap()).unwrap(), "");
    let mut subscriber = Subscriber::start(&broker, &["subscribe", "q", "--name", "s", "--format", "json"]);
    let line: serde_json::Value = serde_json::from_str(&subscriber.line()).unwrap();
    assert_eq!(line["value"], "second");
}

fn reading_end(mut child: Child) -> ChildStdout {
    let end = child.stdout.take().unwrap();
    child.wait().unwrap();
    end
}

#[test]
fn subscribe_to_what_is_not_there_is_refused() {
    let broker = Broker::start();
    let done = broker.try_run(&["subscribe", "nowhere", "--name", "s"]);
    assert!(done.code == 1 && done.err.contains("nowhere"), "{done:?}");
}

#[test]
fn standalone_stops_in_order_and_keeps_what_it_has() {
    let mut broker = Broker::start();
    broker.create("q", 1);
    broker.run(&["put", "q", "--topic", "t", "v"]);
    let second =
        run(hqueue(&["standalone", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"]).arg(broker.data.path()), b"");
    assert!(second.code == 1 && second.err.contains(broker.data.path().to_str().unwrap()), "{second:?}");
    broker.signal("-TERM");
    assert!(broker.wait().success());
    let done = broker.try_run(&["list"]);
    assert_eq!(done.code, 1, "{done:?}");
}

#[test]
fn standalone_refuses_options_outside_their_limits() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    let words = ["standalone", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data];
    for (flag, value, says) in [
        ("--max-message-bytes", "0", "from 1 to 16000000"),
        ("--max-message-bytes", "16000001", "from 1 to 16000000"),
        ("--tail-cache-bytes", "1M", "1048576 or more"),
        ("--durability", "maybe", "sync"),
    ] {
        let done = run(&mut hqueue(&[&words[..], &[flag, value]].concat()), b"");
        assert!(done.code == 2 && done.err.contains(value) && done.err.contains(says), "{done:?}");
    }
}

#[test]
fn the_demo_shows_every_line_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "one\n\nthree\n").unwrap();
    let with_file = run(hqueue(&["demo", file.path().to_str().unwrap()]).env("TMPDIR", temporary.path()), b"");
    let with_lines = run(hqueue(&["demo"]).env("TMPDIR", temporary.path()), b"one\n\nthree");
    for done in [with_file, with_lines] {
        assert_eq!(done.code, 0, "{done:?}");
        let ends: Vec<&str> = done.out.lines().map(|line| line.split(" ms  ").nth(1).unwrap()).collect();
        assert_eq!(ends, ["one", "", "three"], "{done:?}");
        assert!(done.err.contains("3 messages, from put to push: median"), "{done:?}");
        assert!(done.err.contains("A broker on hqueue://127.0.0.1:"), "{done:?}");
        assert!(!done.err.contains("add_subscriber"), "nobody can attach anything before it is over: {done:?}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    let done = run(&mut hqueue(&["demo", "/nowhere/f"]), b"");
    assert!(done.code == 1 && done.err.contains("/nowhere/f"), "{done:?}");
}

#[test]
fn a_standard_error_that_nobody_reads_harms_no_stop() {
    let data = tempfile::tempdir().unwrap();
    let words = ["standalone", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"];
    let mut child = hqueue(&words).arg(data.path()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("metrics on")));
    drop(lines);
    send(&child, "-TERM");
    assert!(wait(&mut child).success());
}

//! Wrong usage ends with exit code 2 and names the word; no broker ends with 1, soon.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::time::{Duration, Instant};

use support::{hqueue, nobody, run};

#[test]
fn wrong_usage_is_named() {
    for (words, says) in [
        (&["nonsense"][..], "nonsense"),
        (&["put", "q"], "--topic"),
        (&["put", "q", "--topic", "t"], "--file F"),
        (&["put", "q", "--topic", "t", "--topic", "u", "v"], "--topic"),
        (&["put", "q", "--topic", "t", "v", "-"], "stands alone"),
        (&["put", "q", "--topic", "t", "--whole", "v"], "--whole"),
        (&["put", "q", "--topic", "t", "--file", "f", "v"], "--file"),
        (&["put", "q", "--topic", "t", "--partition", "1", "--key", "k", "v"], "--key"),
        (&["put", "q", "--topic", "t", "--partition", "40000", "v"], "40000"),
        (&["put", "q", "--topic", "t", "--header", "novalue", "v"], "KEY=VALUE"),
        (&["put", "q", "--topic", "t", "--header", "a=1", "--header", "a=2", "v"], "--header a"),
        (&["put", "q", "--topic", "t", "-v"], "-v"),
        (&["create", "q", "--partitions", "0", "--ttl", "60"], "--partitions"),
        (&["create", "q", "--partitions", "32768", "--ttl", "60"], "32767"),
        (&["create", "q", "--partitions", "1", "--ttl", "0"], "--ttl"),
        (&["create", "q", "--partitions", "1", "--ttl", "1.5"], "1.5"),
        (&["create", "q", "--partitions", "1", "--partitions", "2", "--ttl", "1"], "--partitions"),
        (&["create", "q", "--partitions", "1", "--ttl", "1", "--set", "a=1", "--set", "a=2"], "--set a"),
        (&["scan", "q", "--start", "yesterday-ish"], "yesterday-ish"),
        (&["scan", "q", "--start", "2026-03-29T02:30:00"], "time zone"),
        (&["scan", "q", "--limit", "many"], "many"),
        (&["subscribe", "q"], "--name"),
        (&["subscribe", "q", "--name", "s", "--listen", "x"], "--listen"),
        (&["add_subscriber", "q", "s", "--retry-min", "5"], "\"5\""),
        (&["add_subscriber", "q", "s", "--transport", "pigeon"], "pigeon"),
        (&["drop", "q"], "--yes"),
        (&["truncate_queue", "q"], "--yes"),
        (&["delete_subscriber", "q", "s"], "--yes"),
        (&["list", "--format", "xml"], "xml"),
        (&["list", "--connect", "zk://127.0.0.1:2181/hqueue"], "\"zk\""),
        (&["list", "--connect", "127.0.0.1:9190"], "hqueue://"),
        (&["standalone", "--listen", "nowhere"], "nowhere"),
    ] {
        let done = run(&mut hqueue(words), b"");
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{words:?}: {}", done.err);
        assert!(done.err.contains(says), "{words:?} should say {says}: {}", done.err);
    }
}

#[test]
fn the_environment_names_the_broker_and_what_is_logged() {
    for (variable, value) in [("HQUEUE_CONNECT", "zk://a:1"), ("HQUEUE_LOG", "a=b=c"), ("HQUEUE_LOG_FORMAT", "xml")] {
        let done = run(hqueue(&["list"]).env(variable, value), b"");
        assert_eq!(done.code, 2, "{}", done.err);
        assert!(done.err.contains(value), "{}", done.err);
    }
}

#[test]
fn without_a_broker_it_ends_within_three_seconds() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for url in [nobody(), format!("hqueue://{},{address}", nobody().trim_start_matches("hqueue://"))] {
        let (began, reaches_somebody) = (Instant::now(), url.contains(','));
        let mut command = hqueue(&["put", "q", "--topic", "t", "v", "--connect", &url]);
        if reaches_somebody {
            // It connects, and then waits for its reply: enough to know that the second address was tried.
            let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
            listener.accept().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            continue;
        }
        let done = run(&mut command, b"");
        assert!(done.code == 1 && began.elapsed() < Duration::from_secs(3), "{done:?}");
        assert!(done.err.contains("cannot connect to 127.0.0.1") && done.err.lines().count() == 1, "{}", done.err);
    }
}

#[test]
fn help_and_version_are_data() {
    for words in [&["help"][..], &["--help"], &["put", "--help"], &["--version"], &["add_subscriber", "-h"]] {
        let done = run(&mut hqueue(words), b"");
        assert!(done.code == 0 && done.out.contains("hqueue") && done.err.is_empty(), "{words:?}: {done:?}");
    }
}

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
        (&["create", "q", "--partitions", "1", "--ttl", "1d"], "1d is 86400"),
        (&["create", "q", "--partitions", "1", "--ttl", "day"], "number of seconds, 1 or more"),
        (&["create", "q", "--partitions", "x", "--ttl", "1"], "from 1 to 32767"),
        (&["create", "q", "--partitions", "1", "--ttl", "1", "--max-bytes", "1G"], "number of bytes, 1 or more"),
        (&["create", "a b", "--partitions", "1", "--ttl", "1"], "A-Z a-z 0-9 _ . -"),
        (&["create", "q.dlq", "--partitions", "1", "--ttl", "1"], ".dlq"),
        (&["create", "q", "--partitions", "1", "--partitions", "2", "--ttl", "1"], "--partitions"),
        (&["create", "q", "--partitions", "1", "--ttl", "1", "--set", "a=1", "--set", "a=2"], "--set a"),
        (&["scan", "q", "--start", "yesterday-ish"], "yesterday-ish"),
        (&["scan", "q", "--start", "2026-03-29T02:30:00"], "time zone"),
        (&["scan", "q", "--start", "14:05"], "2026-03-29T14:05Z"),
        (&["scan", "q", "--stop", "9:30"], "2026-03-29T09:30Z"),
        (&["poll", "q", "--name", "s", "--from", "9:30"], "2026-03-29T09:30Z"),
        (&["subscribe", "q", "--name", "s", "--from", "14:05"], "2026-03-29T14:05Z"),
        (&["add_subscriber", "q", "s", "--from", "14:05"], "2026-03-29T14:05Z"),
        (&["seek", "q", "s", "14:05"], "2026-03-29T14:05Z"),
        (&["scan", "q", "--limit", "many"], "0 or more"),
        (&["scan", "q", "--partition", "x"], "from 0 to 32766"),
        (&["scan", "a b"], "A-Z a-z 0-9 _ . -"),
        (&["scan", "q", "--topic", ""], "1 to 255"),
        (&["put", "q", "--topic", "", "v"], "1 to 255"),
        (&["status", "a b"], "A-Z a-z 0-9 _ . -"),
        (&["poll", "q", "--name", "a b"], "A-Z a-z 0-9 _ . -"),
        (&["poll", "q", "--name", "s", "--max", "100001"], "from 1 to 100000"),
        (&["poll", "q", "--name", "s", "--wait", "5"], "ms, s, m, h or d"),
        (&["pause", "q", "owner"], "owner"),
        (&["subscribe", "q"], "--name"),
        (&["subscribe", "q", "--name", "s", "--listen", "x"], "127.0.0.1:9190"),
        (&["standalone", "--http", "localhost:80"], "IP:PORT"),
        (&["broker", "--zookeeper", "a", "--advertise", "a"], "from 1 to 65535"),
        (&["broker", "--zookeeper", "a", "--session-timeout", "2s"], "from 3s to 1h"),
        (&["broker", "--zookeeper", "a", "--session-timeout", "2h"], "from 3s to 1h"),
        (&["add_subscriber", "q", "s", "--address", "nonsense"], "HOST:PORT"),
        (&["add_subscriber", "q", "s", "--address", "a:1,b:0"], "from 1 to 65535"),
        (&["add_subscriber", "q", "s", "--call-timeout", "1ms"], "from 100ms to 1h: a whole number and ms, s, m, h or d"),
        (&["add_subscriber", "q", "s", "--batch-bytes", "1"], "from 1024 to 16000000"),
        (&["add_subscriber", "q", "s", "--batch-bytes", "1M"], "from 1024 to 16000000"),
        (&["add_subscriber", "q", "s", "--batch-messages", "0"], "from 1 to 100000"),
        (&["add_subscriber", "q", "s", "--max-attempts", "many"], "from 1 to 1000000"),
        (&["add_subscriber", "q", "s", "--max-dead-in-a-row", "0"], "from 1 to 1000000"),
        (&["add_subscriber", "q", "s", "--window-messages", "-"], "from 0 to 10000000"),
        (&["add_subscriber", "q", "s", "--window-bytes", "0"], "from 1024 to 1073741824"),
        (&["add_subscriber", "q", "s", "--rate-messages", "1k"], "from 0 to 4294967295"),
        (&["add_subscriber", "q", "s", "--rate-bytes", "1k"], "from 0 to 4294967295"),
        (&["add_subscriber", "q", "s", "--calls", "17"], "from 1 to 16"),
        (&["add_subscriber", "q", "s", "--max-span", "0"], "from 1 to 1000000"),
        (&["add_subscriber", "q", "s", "--retry-max", "500ms"], "retry-min (1s) is longer than retry-max (500ms)"),
        (&["list", "--connect", "hqueue://a:0"], "from 1 to 65535"),
        (&["add_subscriber", "q", "s", "--retry-min", "5"], "'5'"),
        (&["add_subscriber", "q", "s", "--transport", "pigeon"], "pigeon"),
        (&["check"], "HOST:PORT"),
        (&["check", "nonsense"], "from 1 to 65535"),
        (&["check", "a:1", "--idle", "70"], "from 1s to 1h"),
        (&["check", "a:1", "--large", "16MiB"], "from 1024 to 16000000"),
        (&["check", "a:1", "--batch", "0"], "from 1 to 100000"),
        (&["drop", "q"], "--yes"),
        (&["truncate_queue", "q"], "--yes"),
        (&["delete_subscriber", "q", "s"], "--yes"),
        (&["list", "--format", "xml"], "xml"),
        (&["list", "--connect", "zk:///hqueue"], "no ZooKeeper host"),
        (&["list", "--connect", "http://127.0.0.1:2181"], "\"http\""),
        (&["completions", "powershell"], "powershell"),
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
    for (variable, value) in [("HQUEUE_CONNECT", "http://a:1"), ("HQUEUE_LOG", "a=b=c"), ("HQUEUE_LOG_FORMAT", "xml")] {
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

#[test]
fn help_goes_into_the_actions_of_a_command() {
    let of_dlq = run(&mut hqueue(&["help", "dlq"]), b"").out;
    for action in ["list", "redrive", "drop"] {
        let done = run(&mut hqueue(&["help", "dlq", action]), b"");
        assert!(done.code == 0 && done.out == of_dlq && done.out.contains(&format!("- {action}:")), "{done:?}");
        let done = run(&mut hqueue(&["shell", "-e", &format!("help dlq {action}")]), b"");
        assert!(done.code == 0 && done.out.contains(&format!("- {action}:")), "{done:?}");
    }
    assert_eq!(run(&mut hqueue(&["help", "completions", "bash"]), b"").code, 0);
    for words in [&["help", "dlq", "bury"][..], &["help", "list", "dlq"], &["help", "nonsense", "list"]] {
        let done = run(&mut hqueue(words), b"");
        assert!(done.code == 2 && done.out.is_empty(), "{words:?}: {done:?}");
    }
    for line in ["help dlq bury", "help list dlq", "help dlq list drop"] {
        let done = run(&mut hqueue(&["shell", "-e", line]), b"");
        assert!(done.code == 1 && done.err.contains("help takes one command"), "{line}: {done:?}");
    }
}

#[test]
fn the_help_says_what_exit_codes_mean() {
    let help = run(&mut hqueue(&["--help"]), b"").out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("0 done; 1 refused by a broker, or failed; 2 wrong usage"), "{help}");
}

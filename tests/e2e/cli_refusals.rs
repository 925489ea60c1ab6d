//! What the command line refuses: exit codes 1 and 2, and the words that help.

use std::time::Duration;

use hqueue_tests::{Broker, free_port, run};

#[test]
fn verbs_that_destroy_want_a_yes() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    broker.run(&["add_subscriber", "q", "s"]).text();
    for words in [&["truncate_queue", "q"][..], &["delete_subscriber", "q", "s"], &["drop", "q"]] {
        broker.run(words).refused(2, &["--yes"]);
        broker.run_with(words, b"yes\n").refused(2, &["--yes"]);
    }
    assert_eq!(broker.scan("q", 0).len(), 1);
    assert_eq!(broker.run(&["delete_subscriber", "q", "s", "--yes"]).text(), "");
    assert_eq!(broker.run(&["truncate_queue", "--yes", "q"]).text(), "", "flags may stand anywhere");
    assert!(broker.scan("q", 0).is_empty());
    broker.run(&["drop", "q", "--yes"]).refused(1, &["disable"]);
    broker.run(&["disable", "q"]).text();
    broker.run(&["put", "q", "--topic", "t", "v"]).refused(1, &["disabled"]);
    broker.run(&["enable", "q"]).text();
    broker.run(&["put", "q", "--topic", "t", "v"]).text();
    broker.run(&["disable", "q"]).text();
    broker.run(&["drop", "q", "--yes"]).text();
    broker.run(&["describe", "q"]).refused(1, &["q"]);
}

#[test]
fn wrong_usage_is_2() {
    let broker = Broker::start();
    broker.create("q", 2);
    for (words, says) in [
        (&["put", "q", "--topic", "t", "--topic", "u", "v"][..], "--topic"),
        (&["put", "q", "--topic", "t", "--partition", "1", "--partition", "0", "v"], "--partition"),
        (&["create", "r", "--partitions", "1", "--partitions", "2", "--ttl", "5"], "--partitions"),
        (&["scan", "q", "--limit", "1", "--limit", "2"], "--limit"),
        (&["add_subscriber", "q", "s", "--call-timeout", "1s", "--call-timeout", "2s"], "--call-timeout"),
        (&["put", "q", "v"], "--topic"),
        (&["put", "q", "--topic", "t"], "put"),
        (&["create", "r", "--partitions", "1"], "--ttl"),
        (&["create", "r", "--partitions", "one", "--ttl", "5"], "one"),
        (&["create", "r", "--partitions", "1", "--ttl", "5m"], "5m"),
        (&["create", "r", "--partitions", "1", "--ttl", "0"], "ttl"),
        (&["create", "r", "--partitions", "0", "--ttl", "5"], "partitions"),
        (&["create", "r", "--partitions", "32768", "--ttl", "5"], "32767"),
        (&["scan", "q", "--start", "yesterday-ish"], "yesterday-ish"),
        (&["scan", "q", "--limit", "-1"], "-1"),
        (&["add_subscriber", "q", "s", "--call-timeout", "soon"], "soon"),
        (&["add_subscriber", "q", "s", "--transport", "http"], "http"),
        (&["put", "q", "--topic", "t", "--header", "novalue", "v"], "novalue"),
        (&["frobnicate", "q"], "frobnicate"),
        (&["put", "q", "--topic", "t", "--frobnicate", "v"], "--frobnicate"),
        (&["list", "--format", "xml"], "xml"),
        (&["list", "--connect", "http://127.0.0.1:80"], "http"),
        (&["put", "q", "--topic", "", "v"], "topic"),
        (&["put", "q", "--topic", &"t".repeat(256), "v"], "255"),
        (&["create", "a b", "--partitions", "1", "--ttl", "5"], "name"),
        (&["put", "a b", "--topic", "t", "v"], "name"),
        (&["add_subscriber", "q", "owner"], "owner"),
        (&["add_subscriber", "q", "s", "--address", "nonsense"], "nonsense"),
        (&["add_subscriber", "q", "s", "--batch-bytes", "1"], "1024"),
        (&["add_subscriber", "q", "s", "--call-timeout", "1ms"], "100ms"),
        (&["add_subscriber", "q", "s", "--retry-min", "5s", "--retry-max", "1s"], "5s"),
        (&["seek", "q", "s", "14:05"], "2026-03-29T14:05Z"),
    ] {
        let done = if words.contains(&"--connect") { run(words, b"") } else { broker.run(words) };
        assert_eq!(done.code, Some(2), "{done}");
        assert!(done.err.contains(says), "{says:?} is not said: {done}");
        assert!(done.out.is_empty(), "{done}");
    }
}

#[test]
fn a_refusal_is_1() {
    let broker = Broker::start();
    broker.create("q", 2);
    let before = broker.files().len();
    for (words, says) in [
        (&["put", "nowhere", "--topic", "t", "v"][..], &["nowhere"][..]),
        (&["scan", "nowhere"], &["nowhere"]),
        (&["status", "nowhere"], &["nowhere"]),
        (&["put", "q", "--topic", "t", "--partition", "2", "v"], &["partition", "2"]),
        (&["create", "q", "--partitions", "1", "--ttl", "5"], &["exists"]),
        (
            &["create", "r", "--partitions", "1", "--ttl", "5", "--set", "hbaze.hqueue.partitionsPerRegion=4"],
            &["hbase.hqueue.partitionsPerRegion"],
        ),
        (&["add_subscriber", "q", "s", "--partition", "7"], &["7"]),
        (&["delete_subscriber", "q", "nobody", "--yes"], &["nobody"]),
        (&["disable", "nowhere"], &["nowhere"]),
    ] {
        let done = broker.run(words);
        done.refused(1, says);
    }
    let large = vec![b'x'; 4_194_305];
    broker.run_with(&["put", "q", "--topic", "t", "--whole", "-"], &large).refused(1, &["4194304", "4194305"]);
    assert!(broker.scan("q", 0).is_empty() && broker.scan("q", 1).is_empty());
    assert_eq!(broker.files().len(), before, "what was refused left nothing behind");
}

/// In the middle of a stream: what was put before the refused line is said, and that the rest was not.
#[test]
fn a_line_that_is_too_large_ends_the_stream_with_its_place() {
    let broker = Broker::with_flags(&["--max-message-bytes", "1000"]);
    broker.create("q", 1);
    let mut input = "short\n".repeat(10);
    input.push_str(&"x".repeat(1001));
    input.push_str("\nbehind\n");
    let done = broker.run_with(&["put", "q", "--topic", "t", "-"], input.as_bytes());
    assert_eq!(done.code, Some(1), "{done}");
    assert!(done.err.contains("1000") && done.err.contains("1001"), "limit and size: {done}");
    let printed = done.out.split(|b| *b == b'\n').filter(|l| !l.is_empty()).count();
    assert_eq!(printed, broker.scan("q", 0).len(), "each message that is stored has its line");
}

#[test]
fn no_broker_there_is_said_soon() {
    for words in
        [&["list"][..], &["put", "q", "--topic", "t", "v"], &["scan", "q"], &["status"], &["subscribe", "q", "--name", "s"]]
    {
        let url = format!("hqueue://127.0.0.1:{}", free_port());
        let done = run(words.iter().copied().chain(["--connect", &url]), b"");
        done.refused(1, &["127.0.0.1"]);
        assert!(done.took < Duration::from_secs(3), "{done}");
    }
    // One that does not even take connections.
    let hole = hqueue_tests::silent::BlackHole::listen();
    let done = run(["list", "--connect", &format!("hqueue://{}", hole.address())], b"");
    done.refused(1, &["127.0.0.1"]);
    assert!(done.took < Duration::from_secs(3), "{done}");
}

#[test]
fn one_broker_a_data_folder_and_ports_that_are_taken() {
    let broker = Broker::start();
    let data = broker.data();
    let data = data.to_str().unwrap();
    let free = || format!("127.0.0.1:{}", free_port());
    let done = run(["standalone", "--data", data, "--listen", &free(), "--http", &free()], b"");
    assert_eq!(done.code, Some(1), "{done}");
    assert!(done.err.contains(data) && done.err.contains("in use"), "{done}");
    let other = tempfile::tempdir().unwrap();
    let other = other.path().to_str().unwrap();
    let taken = format!("127.0.0.1:{}", broker.port());
    let done = run(["standalone", "--data", other, "--listen", &taken, "--http", &free()], b"");
    assert_eq!(done.code, Some(1), "{done}");
    assert!(done.err.contains(&taken), "{done}");
    let done = run(["standalone", "--data", "/proc/nothing", "--listen", &free(), "--http", &free()], b"");
    assert_eq!(done.code, Some(1), "{done}");
    assert!(done.err.contains("/proc/nothing"), "{done}");
    broker.create("still", 1);
}

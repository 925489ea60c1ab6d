//! Peers that talk something else, lie about sizes, say nothing or vanish: each costs its own connection and nothing more.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hqueue_tests::raw::{Reaction, binary_call, connect, framed, nested, send};
use hqueue_tests::{Broker, Consumer, Healthy, PATIENCE, long_form, wait};

/// No hostile peer may cost so much memory.
const MEMORY_BOUND: u64 = 64 << 20;
/// What is recognised at once is closed at once.
const AT_ONCE: Duration = Duration::from_secs(5);

fn grown(broker: &Broker, before: u64) -> u64 {
    broker.figures().rss_bytes.saturating_sub(before)
}

#[test]
fn other_protocols_are_turned_away() {
    let broker = Broker::start();
    let healthy = Healthy::start(&broker);
    let before = broker.figures();
    let peers: [&[u8]; 8] = [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n{test}",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        b"HEAD / HTTP/1.0\r\n\r\n",
        b"Hello, is anybody there?\n",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"*1\r\n$4\r\nPING\r\n",
        b"\x00\x00\x00\x2c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    ];
    for bytes in peers {
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let reaction = send(broker.port(), bytes, AT_ONCE);
                    assert!(matches!(reaction, Reaction::Closed(_)), "{:?}: {reaction:?}", String::from_utf8_lossy(bytes));
                });
            }
        });
    }
    let log = broker.log();
    assert!(log.contains("HTTP"), "the log says what it looked like");
    assert!(log.lines().count() < 60, "160 strangers do not fill the log");
    assert!(grown(&broker, before.rss_bytes) < MEMORY_BOUND);
    wait("their connections are gone", PATIENCE, || broker.figures().descriptors <= before.descriptors + 2);
    healthy.finish();
}

#[test]
fn sizes_that_are_lies_allocate_nothing() {
    let broker = Broker::start();
    broker.create("q", 1);
    let healthy = Healthy::start(&broker);
    let before = broker.figures().rss_bytes;
    let list = |size: &[u8]| [&[0x0f, 0, 1, 0x0c][..], size].concat();
    let in_message = |field: &[u8]| [list(&[0, 0, 0, 1]), field.to_vec()].concat();
    let lies: Vec<(&str, Vec<u8>)> = vec![
        ("a negative string", in_message(b"\x0b\x00\x04\xff\xff\xff\xff")),
        ("a huge string", in_message(b"\x0b\x00\x04\x7f\xff\xff\xffabc")),
        ("a negative list", list(&[0xff; 4])),
        ("a huge list", list(&[0x7f, 0xff, 0xff, 0xff])),
        ("a huge map", in_message(b"\x0d\x00\x05\x0b\x0b\x7f\xff\xff\xff")),
    ];
    let mut calls: Vec<(String, Vec<u8>)> = Vec::new();
    for (what, arguments) in &lies {
        for method in ["putMessages", "putMessagesWithPid", "consumeMessages", "createQueue", "noSuchMethod"] {
            let call = binary_call(method, arguments);
            calls.push((format!("{what} for {method}, framed"), framed(&call)));
            calls.push((format!("{what} for {method}"), call));
        }
    }
    for header in [[0xff; 4], [0x80, 0, 0, 0], [0x7f, 0xff, 0xff, 0xff], [0, 0, 0, 0]] {
        calls.push((format!("a frame of {header:x?}"), header.to_vec()));
    }
    let too_large = [&[1, 0, 0, 1][..], &binary_call("listQueues", &[])].concat();
    calls.push(("a frame of 16 MiB and a byte".to_owned(), too_large));
    calls.push(("a frame that is no call".to_owned(), b"\x00\x00\x00\x08NI_PING\x00".to_vec()));
    calls.push(("a name of 2 GiB".to_owned(), b"\x80\x01\x00\x01\x7f\xff\xff\xffput".to_vec()));
    calls.push(("a compact name of 2 GiB".to_owned(), b"\x82\x21\x01\xff\xff\xff\xff\x07put".to_vec()));
    // Held open all together: what was announced must not have been allocated.
    let open: Vec<(String, TcpStream)> = calls
        .into_iter()
        .map(|(what, bytes)| {
            let mut stream = connect(broker.port(), AT_ONCE);
            let _ = stream.write_all(&bytes);
            (what, stream)
        })
        .collect();
    for (what, mut stream) in open {
        let mut answer = Vec::new();
        let end = stream.read_to_end(&mut answer);
        let waits =
            end.as_ref().is_err_and(|e| matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut));
        assert!(!waits, "{what}: neither refused nor closed");
    }
    let grown = grown(&broker, before);
    assert!(grown < MEMORY_BOUND, "{} MiB more in memory", grown >> 20);
    healthy.finish();
}

/// 60 levels are accepted, more than 64 are refused before any stack is used for them.
#[test]
fn nesting_has_a_limit() {
    let broker = Broker::start();
    let healthy = Healthy::start(&broker);
    let pid = broker.pid();
    for method in ["getQueueLocations", "putMessages", "listQueues", "noSuchMethod"] {
        for depth in [60, 200, 100_000] {
            let call = binary_call(method, &nested(depth));
            for bytes in [framed(&call), call.clone()] {
                let mut stream = connect(broker.port(), AT_ONCE);
                let _ = stream.write_all(&bytes);
                let _ = stream.shutdown(Shutdown::Write);
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                let answered = !answer.is_empty();
                if depth == 60 {
                    assert!(answered, "{method}: 60 levels in an unknown field are skipped");
                }
            }
        }
    }
    // 60 levels do not end the connection.
    let mut stream = connect(broker.port(), AT_ONCE);
    for _ in 0..2 {
        stream.write_all(&framed(&binary_call("listQueues", &nested(60)))).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut reply = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut reply).unwrap();
        assert!(reply.windows(10).any(|w| w == b"listQueues"));
    }
    assert_eq!(broker.pid(), pid);
    assert!(!broker.log().contains("panicked"));
    healthy.finish();
}

/// Thousands of connections that say nothing, or half of something. Their deadlines are 30 s: that they come is the long form,
/// `HQUEUE_LONG_SILENT=1`.
#[test]
fn silent_peers_cost_little() {
    let broker = Broker::start();
    let healthy = Healthy::start(&broker);
    let before = broker.figures();
    let pieces: [&[u8]; 4] = [b"", b"\x00\x00\x10", b"\x00\x00\x10\x00\x80\x01\x00\x01", b"\x80\x01\x00\x01\x00\x00\x00\x0aputM"];
    let open: Vec<TcpStream> = (0..800)
        .map(|n| {
            let mut stream = connect(broker.port(), AT_ONCE);
            stream.write_all(pieces[n % 4]).unwrap();
            stream
        })
        .collect();
    wait("all are accepted", PATIENCE, || broker.figures().descriptors >= 800);
    let rounds = healthy.rounds();
    wait("the healthy client goes on", PATIENCE, || healthy.rounds() > rounds + 50);
    let now = broker.figures();
    assert_eq!(now.threads, before.threads, "no thread for a connection");
    assert!(now.rss_bytes.saturating_sub(before.rss_bytes) < MEMORY_BOUND);
    if long_form("HQUEUE_LONG_SILENT").is_some() {
        wait("their deadlines close them", Duration::from_secs(60), || broker.figures().descriptors <= before.descriptors + 2);
    }
    drop(open);
    wait("their descriptors come back", PATIENCE, || broker.figures().descriptors <= before.descriptors + 2);
    healthy.finish();
}

/// Port probes: connect and leave, reset, or half-close and wait.
#[test]
fn probes_leave_nothing_behind() {
    let broker = Broker::start();
    let healthy = Healthy::start(&broker);
    let before = broker.figures();
    let quiet = broker.log().len();
    for n in 0..2000 {
        let stream = connect(broker.port(), AT_ONCE);
        if n % 2 == 0 {
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
    }
    let half: Vec<TcpStream> = (0..200)
        .map(|_| {
            let stream = connect(broker.port(), AT_ONCE);
            stream.shutdown(Shutdown::Write).unwrap();
            stream
        })
        .collect();
    for mut stream in half {
        let mut answer = Vec::new();
        let end = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
        assert!(end.is_ok() || end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset), "closed in return");
    }
    wait("descriptors come back", PATIENCE, || broker.figures().descriptors <= before.descriptors + 2);
    let lines = broker.log()[quiet..].lines().count();
    assert!(lines < 10, "{lines} lines about probes");
    healthy.finish();
}

/// The calling side needs the same guard: endpoints that answer with nonsense.
#[test]
fn hostile_answers_of_subscribers() {
    let broker = Broker::start();
    broker.create("q", 1);
    let good = Consumer::start();
    broker.subscribe("q", "good", &good.address(), &[]);
    let answers: [&[u8]; 7] = [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\x80\x00\x00\x00",
        b"\x00\x00\x00\x00",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b"\x80\x01\x00\x02\x00\x00\x00\x0fconsumeMessages\x00\x00\x00\x01\x0b\x00\x00\x7f\xff\xff\xff",
        b"\x80\x01\x00\x02\x7f\xff\xff\xff",
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        for dialect in ["auto", "binary"] {
            let transport = if dialect == "auto" { "auto" } else { "buffered" };
            let options = [
                ("retry-min", "20ms"),
                ("retry-max", "50ms"),
                ("call-timeout", "500ms"),
                ("protocol", dialect),
                ("transport", transport),
            ];
            broker.subscribe("q", &format!("bad{n}-{dialect}"), &answering_with(answer), &options);
        }
    }
    let before = broker.figures().rss_bytes;
    broker.put("q", 0, &["a", "b", "c"]);
    wait("the good one has all", PATIENCE, || good.count() == 3);
    for n in 0..answers.len() {
        for dialect in ["auto", "binary"] {
            let name = format!("bad{n}-{dialect}");
            wait("what is wrong is shown", PATIENCE, || !broker.subscription("q", &name).last_error().is_empty());
            let status = broker.subscription("q", &name);
            println!("{name}: {}", status.last_error());
            assert_eq!((status.lag(), status.delivered()), (3, 0));
        }
    }
    assert!(grown(&broker, before) < MEMORY_BOUND);
    assert!(!broker.log().contains("panicked"));
}

/// A server that answers whatever it gets with these bytes and holds the connection; it runs until the process ends.
fn answering_with(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|n| n > 0) && stream.write_all(bytes).is_ok() {}
            });
        }
    });
    address
}

/// Someone who reads no replies: the broker stops reading from it, instead of keeping replies for it without bound.
#[test]
fn a_peer_that_reads_no_replies_is_not_kept_in_memory() {
    let broker = Broker::start();
    broker.create("q", 1);
    let value = "x".repeat(1_000_000);
    broker.put("q", 0, &[&value; 8]);
    let healthy = Healthy::start(&broker);
    let before = broker.figures().rss_bytes;
    let mut greedy: Vec<TcpStream> = (0..4).map(|_| connect(broker.port(), AT_ONCE)).collect();
    for stream in &mut greedy {
        stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        // A scanner is opened by number, which this peer does not read: it asks for locations, over and over.
        let call = framed(&binary_call("getQueueLocations", b"\x0b\x00\x01\x00\x00\x00\x01q\x00"));
        let many = call.repeat(1000);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) && stream.write_all(&many).is_ok() {}
    }
    let grown = grown(&broker, before);
    assert!(grown < MEMORY_BOUND, "{} MiB more in memory", grown >> 20);
    healthy.finish();
}

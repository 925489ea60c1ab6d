//! What the broker does for the sake of single libraries, shown with them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use hqueue_protocol::generated::THQueueServiceSyncClient;
use hqueue_tests::message::to_put;
use hqueue_tests::order::check_order;
use hqueue_tests::raw::binary_call;
use hqueue_tests::{Broker, PATIENCE, refusal, wait};

use crate::checks::{check_complete, check_no_failure, put, with_headers};
use crate::harness::{BINARY, BUFFERED, COMPACT, FRAMED, Scripted, Server};
use crate::table;

const LONG: Duration = Duration::from_secs(120);
/// The default limit of most libraries for a frame, in bytes.
const FRAME_LIMIT: usize = 16_384_000;
/// What `--max-message-bytes` can be at most.
const LARGEST: usize = 16_000_000;

const QUICK: [(&str, &str); 3] = [("retry-min", "20ms"), ("retry-max", "100ms"), ("call-timeout", "60s")];

const fn framed(kind: &'static str) -> Server {
    Server { kind, transport: FRAMED, protocol: BINARY }
}

const fn buffered(kind: &'static str) -> Server {
    Server { kind, transport: BUFFERED, protocol: BINARY }
}

/// Servers that refuse a call of 16,384,001 bytes.
fn strict() -> Vec<Scripted> {
    vec![
        Scripted::start(&table::python(), framed("threaded"), ""),
        Scripted::start(&table::go(), framed("simple"), ""),
        Scripted::start(&table::java(), framed("pool"), ""),
        Scripted::start(&table::cpp(), framed("threaded"), ""),
    ]
}

/// Pushes what is in partition 0 to each and checks that all of it came, without a call that failed.
fn all_take_everything(broker: &Broker, consumers: &mut [Scripted], options: &[(&str, &str)]) {
    let count = broker.scan("q", 0).len();
    for (number, consumer) in consumers.iter().enumerate() {
        broker.subscribe("q", &format!("s{number}"), &consumer.address(), &[&QUICK[..], options].concat());
    }
    for (number, consumer) in consumers.iter_mut().enumerate() {
        consumer.wait_for(count, LONG);
        let name = format!("s{number}");
        broker.wait_for_no_lag("q", &name);
        check_complete(broker, "q", 1, &consumer.accepted(), &format!("{:?}", consumer.server));
        check_no_failure(&broker.subscription("q", &name), &format!("{:?}", consumer.server));
    }
}

/// Whatever the options say, a call stays below what the libraries take.
#[test]
fn calls_stay_below_the_limit_of_the_libraries() {
    let broker = Broker::start();
    broker.create("q", 1);
    let value: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    for _ in 0..2 {
        put(&broker, "q", 0, (0..100).map(|_| to_put("t", value.clone())).collect());
    }
    let options = [("batch-bytes", "16000000"), ("batch-messages", "100000")];
    all_take_everything(&broker, &mut strict(), &options);
}

/// The largest message that a broker can be told to take, to the byte; a larger one is refused at the put.
#[test]
fn the_largest_message_fits_every_library() {
    let broker = Broker::with_flags(&["--max-message-bytes", &LARGEST.to_string()]);
    broker.create("q", 1);
    for size in [LARGEST, 4096] {
        put(&broker, "q", 0, vec![to_put("t".repeat(255), vec![b'v'; size])]);
    }
    for size in [LARGEST + 1, FRAME_LIMIT - 200, FRAME_LIMIT] {
        let refused = refusal(broker.gateway().put_message("q".into(), to_put("t", vec![b'v'; size])));
        assert!(refused.message.contains(&size.to_string()), "the size: {}", refused.message);
        assert!(refused.message.contains(&LARGEST.to_string()), "the limit: {}", refused.message);
    }
    all_take_everything(&broker, &mut strict(), &[]);
}

/// C++ counts the bytes of a connection: framed binary is closed after 100 MiB in all.
#[test]
fn a_connection_that_is_closed_for_its_bytes_is_made_anew() {
    let broker = Broker::start();
    broker.create("q", 1);
    for _ in 0..28 {
        put(&broker, "q", 0, vec![to_put("t", vec![b'v'; 4 << 20])]);
    }
    let mut consumer = Scripted::start(&table::cpp(), framed("quiet"), "");
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    consumer.wait_for(28, LONG);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(check_order(&consumer.accepted()), 0, "nothing came twice");
    assert_eq!(consumer.count(), 28);
    let status = broker.subscription("q", "s");
    assert_eq!(status.attempts(), 0);
    assert!(status.0.failed <= Some(1), "{}", status.last_error());
}

/// Servers that serve one connection at a time get one, for all partitions.
#[test]
fn a_server_of_one_connection_is_enough() {
    let broker = Broker::start();
    broker.create("q", 8);
    for partition in 0..8 {
        broker.put("q", partition, &(0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    let mut consumers = [
        Scripted::start(&table::cpp(), buffered("simple"), ""),
        Scripted::start(&table::php(), buffered("simple"), ""),
        Scripted::start(&table::python(), buffered("simple"), ""),
    ];
    for (number, consumer) in consumers.iter().enumerate() {
        broker.subscribe("q", &format!("s{number}"), &consumer.address(), &QUICK);
    }
    for (number, consumer) in consumers.iter_mut().enumerate() {
        consumer.wait_for(800, LONG);
        broker.wait_for_no_lag("q", &format!("s{number}"));
        check_complete(&broker, "q", 8, &consumer.accepted(), &format!("{:?}", consumer.server));
        check_no_failure(&broker.subscription("q", &format!("s{number}")), &format!("{:?}", consumer.server));
    }
}

/// A consumer that was generated from the original contract skips what is newer.
#[test]
fn consumers_of_the_original_contract_are_served() {
    let broker = Broker::start();
    broker.create("q", 1);
    put(&broker, "q", 0, vec![with_headers("t", "a"), to_put("t", "b"), with_headers("t", "c")]);
    let compact = Server { kind: "original", transport: FRAMED, protocol: COMPACT };
    let mut consumers = [buffered("original"), compact].map(|server| Scripted::start(&table::thriftpy2(), server, ""));
    all_take_everything(&broker, &mut consumers, &[]);
}

/// PHP answers in binary without the version word, and is understood (`php::every_dialect`).
#[test]
fn php_answers_without_the_version_word() {
    let consumer = Scripted::start(&table::php(), buffered("simple"), "");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, consumer.port())).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.write_all(&binary_call("consumeMessages", b"\x0f\0\x01\x0c\0\0\0\0\0")).expect("it reads");
    let mut begin = [0; 19];
    stream.read_exact(&mut begin).expect("it answers");
    assert_eq!(&begin, b"\0\0\0\x0fconsumeMessages");
}

/// A registration that says the wrong transport is never answered: the status says so, nothing is lost.
#[test]
fn a_wrong_transport_is_told() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    let mut consumer = Scripted::start(&table::python(), buffered("threaded"), "");
    broker.subscribe("q", "s", &consumer.address(), &[("transport", "framed"), ("protocol", "binary"), ("call-timeout", "1s")]);
    wait("the status says that there is no answer", PATIENCE, || {
        let status = broker.subscription("q", "s");
        status.last_error().contains("no answer") || status.last_error().contains("closed the connection")
    });
    broker.run(&["delete_subscriber", "q", "s", "--yes"]).text();
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    consumer.wait_for(1, PATIENCE);
}

/// A library with a limit of the user's own resets larger calls: smaller ones come.
#[test]
fn a_call_that_is_too_large_is_made_smaller() {
    let broker = Broker::start();
    broker.create("q", 1);
    put(&broker, "q", 0, (0..50).map(|_| to_put("t", vec![b'v'; 10_000])).collect());
    let mut consumer = Scripted::start(&table::go(), framed("small"), "");
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    wait("the status says why", PATIENCE, || broker.subscription("q", "s").last_error().contains("too large"));
    consumer.wait_for(50, PATIENCE);
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
}

/// A handler whose exceptions close the connection is a failing one: it is called with growing waits.
#[test]
fn a_handler_that_closes_is_not_hammered() {
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    let consumer = Scripted::start(&table::thriftpy2(), buffered("threaded"), &["throw"; 1000].join(","));
    broker.subscribe("q", "s", &consumer.address(), &[("retry-min", "500ms"), ("retry-max", "10s")]);
    wait("it is called again", PATIENCE, || consumer.calls().len() > 1);
    let calls = consumer.calls().len();
    // Waits of 1 s and more follow.
    std::thread::sleep(Duration::from_secs(2));
    assert!(consumer.calls().len() <= calls + 3, "{} calls in 2 s", consumer.calls().len() - calls);
}

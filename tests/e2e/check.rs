//! `hqueue check`: what is a subscriber and what is none, without a broker.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use hqueue_protocol::generated::{HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TMessage};
use hqueue_tests::silent::{HangsUp, NeverReads};
use hqueue_tests::{Answer, Broker, Consumer, Dialect, Done, PATIENCE, free_port, run, wait};
use serde_json::{Value, json};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryInputProtocolFactory as BinaryInput, TBinaryOutputProtocol,
    TBinaryOutputProtocolFactory as BinaryOutput, TCompactInputProtocolFactory as CompactInput,
    TCompactOutputProtocolFactory as CompactOutput,
};
use thrift::server::{TProcessor, TServer};
use thrift::transport::{
    TBufferedReadTransport, TBufferedReadTransportFactory as BufferedRead, TBufferedWriteTransport,
    TBufferedWriteTransportFactory as BufferedWrite, TFramedReadTransportFactory as FramedRead,
    TFramedWriteTransportFactory as FramedWrite, TIoChannel, TTcpChannel,
};

/// The object of a check that found no subscriber. It gives nobody more time than a broker does.
#[track_caller]
fn stranger(address: &str) -> (Value, String) {
    let done: Done = run(["check", address, "--format", "json", "--call-timeout", "1s"], b"");
    assert_eq!(done.code, Some(1), "{done}");
    let found: Value = serde_json::from_slice(&done.out).expect("an object");
    assert_eq!((&found["subscriber"], &found["address"]), (&json!(false), &json!(address)));
    let reason = found["reason"].as_str().expect("a reason").to_owned();
    assert!(done.err.contains("is no subscriber"), "{done}");
    (found["looks_like"].clone(), reason)
}

/// A handler of the stock server.
#[derive(Clone, Copy)]
struct Handler {
    throws: bool,
    takes: Duration,
}

const GOOD: Handler = Handler { throws: false, takes: Duration::ZERO };
const THROWS: Handler = Handler { throws: true, ..GOOD };

impl HQueueSubscriberServiceSyncHandler for Handler {
    fn handle_consume_messages(&self, _: Vec<TMessage>) -> thrift::Result<i32> {
        thread::sleep(self.takes);
        if self.throws { Err("not\nan empty list".into()) } else { Ok(0) }
    }
}

/// The stock library's own server; it runs until the tests end.
fn stock_server(dialect: Dialect, handler: Handler, workers: usize) -> String {
    macro_rules! serve {
        ($address:expr, $read:ident, $write:ident, $input:ident, $output:ident) => {{
            let processor = HQueueSubscriberServiceSyncProcessor::new(handler);
            let mut server = TServer::new($read::new(), $input::new(), $write::new(), $output::new(), processor, workers);
            let address = $address.clone();
            thread::spawn(move || server.listen(address));
        }};
    }
    let address = format!("{}:{}", Ipv4Addr::LOCALHOST, free_port());
    match (dialect.framed, dialect.compact) {
        (false, false) => serve!(address, BufferedRead, BufferedWrite, BinaryInput, BinaryOutput),
        (true, false) => serve!(address, FramedRead, FramedWrite, BinaryInput, BinaryOutput),
        (false, true) => serve!(address, BufferedRead, BufferedWrite, CompactInput, CompactOutput),
        (true, true) => serve!(address, FramedRead, FramedWrite, CompactInput, CompactOutput),
    }
    wait("the stock server listens", PATIENCE, || std::net::TcpStream::connect(&address).is_ok());
    address
}

/// The stock processor; a connection that is idle for so long is left, and closed or not.
fn leaves_idle(after: Duration, closes: bool) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(after)).unwrap();
            thread::spawn(move || {
                let kept = stream.try_clone().unwrap();
                let (read, write) = TTcpChannel::with_stream(stream).split().unwrap();
                let mut input = TBinaryInputProtocol::new(TBufferedReadTransport::new(read), true);
                let mut output = TBinaryOutputProtocol::new(TBufferedWriteTransport::new(write), true);
                let processor = HQueueSubscriberServiceSyncProcessor::new(GOOD);
                while processor.process(&mut input, &mut output).is_ok() {}
                if !closes {
                    // Until the caller has closed.
                    kept.set_read_timeout(Some(PATIENCE)).unwrap();
                    let _ = std::io::copy(&mut &kept, &mut std::io::sink());
                }
            });
        }
    });
    address
}

/// Hands bytes on to a consumer and back. When a connection was silent for so long, it sends a byte of its own.
fn speaks_unasked(consumer: &str, after: Duration) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, consumer) = (listener.local_addr().unwrap().to_string(), consumer.to_owned());
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let called = TcpStream::connect(&consumer).unwrap();
            let (mut asks, mut asked) = (caller.try_clone().unwrap(), called.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut asks, &mut asked).and_then(|_| asked.shutdown(Shutdown::Write)));
            thread::spawn(move || {
                called.set_read_timeout(Some(after)).unwrap();
                let (mut answers, mut answered) = (&called, &caller);
                let _ = std::io::copy(&mut answers, &mut answered);
                let _ = answered.write_all(&[0x80]);
            });
        }
    });
    address
}

fn dialect_of(found: &Value) -> (&str, &str) {
    (found["transport"].as_str().unwrap(), found["protocol"].as_str().unwrap())
}

fn names(dialect: Dialect) -> (&'static str, &'static str) {
    (if dialect.framed { "framed" } else { "buffered" }, if dialect.compact { "compact" } else { "binary" })
}

#[test]
fn a_subscriber_is_known_in_every_dialect_and_is_sent_no_message() {
    for dialect in Dialect::ALL {
        let consumer = Consumer::speaking(dialect);
        let found = run(["check", &consumer.address(), "--format", "json"], b"").json();
        assert_eq!((&found["subscriber"], dialect_of(&found)), (&json!(true), names(dialect)));
        assert_eq!(found["second_connection"], "served");
        let calls = &found["empty_calls"];
        assert!(calls["calls"].as_u64().unwrap() > 0 && calls["connections"] == 1, "{found}");
        assert!(0.0 < calls["min_ms"].as_f64().unwrap() && calls["min_ms"].as_f64() <= calls["median_ms"].as_f64(), "{found}");
        assert!(["batch", "large", "idle"].iter().all(|trial| found.get(trial).is_none()), "{found}");
        assert!(consumer.call_count() == 0 && consumer.empty_calls() > 2, "only empty calls");
    }
}

#[test]
fn the_stock_server_with_one_thread_serves_one_connection_at_a_time() {
    for dialect in Dialect::ALL {
        for (workers, second) in [(1, "waits"), (4, "served")] {
            let address = stock_server(dialect, GOOD, workers);
            let found = run(["check", &address, "--format", "json"], b"").json();
            assert_eq!((&found["second_connection"], dialect_of(&found)), (&json!(second), names(dialect)));
            assert_eq!(found["follows"].to_string().contains("one connection at a time"), second == "waits", "{found}");
        }
    }
}

/// Slower than a broker's questions allow, and a subscriber all the same, if its registration says how it speaks.
#[test]
fn a_slow_server_is_found_and_told_apart_from_a_silent_one() {
    let slow = Handler { takes: Duration::from_millis(1500), ..GOOD };
    let address = stock_server(Dialect::USUAL, slow, 20);
    let done = run(["check", &address, "--format", "json"], b"");
    assert!(done.err.contains("asked once more"), "{done}");
    let found = done.json();
    assert_eq!((&found["subscriber"], &found["second_connection"]), (&json!(true), &json!("served")));
    assert!(
        found["found_after_ms"].as_f64().unwrap() >= 1500.0 && found["empty_calls"]["min_ms"].as_f64().unwrap() >= 1500.0,
        "{found}"
    );
    let follows = found["follows"].to_string();
    assert!(follows.contains("these two are needed") && follows.contains("waits 1s"), "{found}");
    // As it says.
    let broker = Broker::start();
    broker.create("q", 1);
    broker.put("q", 0, &["a"]);
    broker.subscribe("q", "s", &address, &[("transport", "buffered"), ("protocol", "binary")]);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(broker.subscription("q", "s").attempts(), 0);
}

#[test]
fn trials_send_marked_messages() {
    let consumer = Consumer::speaking(Dialect { framed: true, compact: true });
    let done = run(["check", &consumer.address(), "--batch", "100", "--large", "8MiB", "--idle", "1s"], b"");
    let text = done.text();
    for line in [
        "is a subscriber",
        "speaks             framed compact",
        "batch              100 messages, ",
        "large call         8 messages, ",
        "idle               the same connection was answered after 1.",
        "--transport framed --protocol compact",
        "is not too large for it",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    assert_eq!(text.matches("answered with 0: all consumed").count(), 2, "{text}");
    let calls = consumer.calls();
    assert_eq!(calls.iter().map(|call| call.messages.len()).collect::<Vec<_>>(), [100, 8]);
    assert!(calls.iter().flat_map(|call| &call.messages).all(|message| message.topic == b"hq-check"));
    let large: usize = calls[1].messages.iter().map(|message| message.value.len()).sum();
    assert!((8 << 20) - 2048 < large && large < 8 << 20, "{large}");
}

#[test]
fn what_a_consumer_makes_of_a_batch_is_said() {
    let consumer = Consumer::answering(|_| Answer::Exception("no such topic".to_owned()));
    let check = |consumer: &Consumer| run(["check", &consumer.address(), "--batch", "3", "--format", "json"], b"").json();
    let found = check(&consumer);
    assert!(found["batch"]["error"].as_str().unwrap().contains("no such topic") && found["subscriber"] == true, "{found}");
    assert!(found["follows"].to_string().contains("dead-lettered"), "{found}");
    consumer.answer_with(|_| Answer::Value(2));
    let found = check(&consumer);
    assert!(found["batch"]["answer"] == 2 && found["batch"]["messages"] == 3, "{found}");
}

#[test]
fn what_becomes_of_an_idle_connection_is_said() {
    for (closes, fate, says) in [(true, "closed", "connects again"), (false, "left-open", "--call-timeout (400ms)")] {
        let address = leaves_idle(Duration::from_secs(1), closes);
        let words = ["check", &address, "--idle", "2s", "--call-timeout", "400ms", "--format", "json"];
        let found = run(words, b"").json();
        let idle = &found["idle"];
        assert!(idle["connection"] == fate && idle.get("error").is_none(), "{found}");
        let after = idle["after_ms"].as_f64().unwrap();
        assert!(if closes { (900.0..2000.0).contains(&after) } else { after >= 2000.0 }, "{found}");
        assert!(found["follows"].to_string().contains(says), "{found}");
    }
}

/// A byte behind each answer, a while later: the connection is not closed, and no call can be answered on it.
#[test]
fn a_server_that_speaks_unasked_is_told_apart_from_one_that_closes() {
    let consumer = Consumer::speaking(Dialect::USUAL);
    let address = speaks_unasked(&consumer.address(), Duration::from_millis(1500));
    let found = run(["check", &address, "--idle", "5s", "--format", "json"], b"").json();
    let idle = &found["idle"];
    assert!(idle["connection"] == "spoken-on" && idle.get("error").is_none(), "{found}");
    assert!((1000.0..5000.0).contains(&idle["after_ms"].as_f64().unwrap()), "{found}");
    assert!(found["follows"].to_string().contains("nobody has asked for"), "{found}");
}

#[test]
fn a_thrift_server_that_throws_at_an_empty_list_is_no_subscriber() {
    for dialect in Dialect::ALL {
        let (looks, reason) = stranger(&stock_server(dialect, THROWS, 2));
        assert!(looks == "failing-subscriber" && reason.contains("an empty list"), "{reason}");
    }
    let address = stock_server(Dialect::USUAL, THROWS, 2);
    run(["check", &address], b"").refused(1, &["is no subscriber", "not\\nan empty list", "has to return 0"]);
}

#[test]
fn a_broker_is_a_thrift_server_of_another_service() {
    let broker = Broker::start();
    let (looks, reason) = stranger(&format!("127.0.0.1:{}", broker.port()));
    assert!(looks == "other-thrift" && reason.contains("without consumeMessages"), "{reason}");
}

#[test]
fn what_is_no_thrift_server_is_named() {
    let broker = Broker::start();
    let http = format!("127.0.0.1:{}", broker.http_port());
    let nobody = format!("127.0.0.1:{}", free_port());
    let (silent, hangs_up) = (NeverReads::listen(), HangsUp::listen());
    for (address, looks, says) in [
        (http, "http", "looks like HTTP"),
        (nobody, "unreachable", "connection refused"),
        (silent.address(), "silent", "is silent"),
        (hangs_up.address(), "closes", "at once"),
    ] {
        let (found, reason) = stranger(&address);
        assert!(found == looks && reason.contains(says), "{looks}: {found}: {reason}");
    }
}

//! Requests that are no good: sizes, nesting, types. The connection is closed, the peer is told why if it can be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use hqueue_protocol::server::ServerOptions;
use server_support::{TestServer, call, exception, framed, oneway, reply};

/// The head of a list of structs in field 1.
const LIST: [u8; 4] = [0x0f, 0, 1, 0x0c];

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

fn size(size: i32) -> [u8; 4] {
    size.to_be_bytes()
}

/// So many structs in one another, in an unknown field.
fn deep(levels: usize) -> Vec<u8> {
    let mut args = vec![0x0c, 0, 0x63];
    args.extend([0x0c, 0, 1].repeat(levels));
    args.extend(vec![0; levels + 2]);
    args
}

/// What the server answers before it closes, over each transport.
fn answers(server: &TestServer, message: &[u8]) -> [Vec<u8>; 2] {
    let mut buffered = server.connect();
    buffered.send(message);
    let mut in_frame = server.connect();
    in_frame.send(&framed(message));
    [buffered.until_closed(), in_frame.until_closed()]
}

fn refused(server: &TestServer, method: &str, args: &[u8], why: &str) {
    let told = exception(method, 9, 7, why);
    assert_eq!(answers(server, &call(method, 9, args)), [told.clone(), framed(&told)], "{why}");
    assert!(server.is_serving());
}

#[test]
fn frames_of_impossible_length_are_closed_at_once() {
    let server = TestServer::start(ServerOptions::default());
    for head in ["ffffffff", "80000000", "7fffffff", "00000000", "000000084e495f50494e4700"] {
        let mut peers: Vec<_> = (0..50).map(|_| server.connect()).collect();
        peers.iter_mut().for_each(|peer| peer.send(&hex(head)));
        // Their side stays open meanwhile.
        peers.iter_mut().for_each(|peer| assert_eq!(peer.until_closed(), b"", "{head}"));
    }
    assert!(server.is_serving());
}

#[test]
fn sizes_are_checked_against_what_is_there() {
    let server = TestServer::start(ServerOptions::default());
    let value = [&LIST[..], &size(1), &[0x0b, 0, 4]].concat();
    refused(&server, "echo", &[&value[..], &size(-1)].concat(), "a length or count of -1 is negative");
    refused(&server, "echo", &[&LIST[..], &size(-1)].concat(), "a length or count of -1 is negative");
    for announced in [[&value[..], &size(i32::MAX), b"abc"].concat(), [&LIST[..], &size(i32::MAX)].concat()] {
        for answer in answers(&server, &call("echo", 9, &announced)) {
            let text = String::from_utf8_lossy(&answer).into_owned();
            assert!(text.contains("bytes or more is too large, the limit is 16777216 bytes"), "{text}");
        }
    }
    // What is within the limit may still come, unless a frame says that all of it is there.
    let mut in_frame = server.connect();
    in_frame.send(&framed(&call("echo", 9, &[&LIST[..], &size(1000)].concat())));
    let told = exception("echo", 9, 7, "the message is longer than its frame of 24 bytes");
    assert_eq!(in_frame.until_closed(), framed(&told));
    assert!(server.is_serving());
}

#[test]
fn nesting_is_limited_wherever_it_stands() {
    let server = TestServer::start(ServerOptions::default());
    for method in ["echo", "nonsense"] {
        let mut peer = server.connect();
        peer.send(&call(method, 9, &deep(60)));
        let answer = peer.reply();
        if method == "echo" {
            assert_eq!(answer, reply("echo", 9, &deep(60)));
        } else {
            assert_eq!(answer, exception("nonsense", 9, 1, "there is no method nonsense"));
        }
        for levels in [200, 100_000] {
            refused(&server, method, &deep(levels), "nested deeper than 64 levels");
        }
    }
}

#[test]
fn nesting_is_limited_in_the_compact_protocol() {
    let server = TestServer::start(ServerOptions::default());
    let levels = 10_000;
    let message = [&[0x82, 0x21, 9, 4][..], b"echo", &[0x1c].repeat(levels), &vec![0; levels + 1]].concat();
    let told = [&[0x82, 0x61, 9, 4][..], b"echo", &[0x18, 28], b"nested deeper than 64 levels", &[0x15, 14, 0]].concat();
    assert_eq!(answers(&server, &message), [told.clone(), framed(&told)]);
}

#[test]
fn other_nonsense_is_answered_where_there_is_a_head() {
    let server = TestServer::start(ServerOptions::default());
    refused(&server, "echo", &[0x11, 0, 1, 0, 0], "17 is no Thrift type");
    let [buffered, in_frame] = answers(&server, &reply("echo", 9, &[0]));
    let told = exception("echo", 9, 7, "a reply came where a call was due");
    assert_eq!((buffered, in_frame), (told.clone(), framed(&told)));
    assert_eq!(answers(&server, &hex("800200010000000465")), [b"", b""]);
    assert_eq!(answers(&server, &oneway("echo", 9, &[0x11, 0, 1, 0, 0])), [b"", b""]);

    let mut peer = server.connect();
    peer.send(&framed(&[call("echo", 9, &[0]), vec![0; 3]].concat()));
    let told = exception("echo", 9, 7, "a frame of 20 bytes holds a message of 17 bytes");
    assert_eq!(peer.until_closed(), framed(&told));
    assert!(server.is_serving());
}

#[test]
fn a_refusal_comes_behind_the_replies_of_earlier_calls() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&[call("hold", 1, &[0]), call("echo", 2, &[0]), call("echo", 3, &[0x11])].concat());
    server.service.release.add_permits(1);
    let told = exception("echo", 3, 7, "17 is no Thrift type");
    assert_eq!(peer.until_closed(), [reply("hold", 1, &[0]), reply("echo", 2, &[0]), told].concat());
}

#[test]
fn random_bytes_and_damaged_calls_harm_nobody() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let server = TestServer::start(ServerOptions::default());
    for round in 0..300 {
        let good = call("echo", 1, &[deep(random.usize(..70)), vec![0x0b, 0, 1, 0, 0, 0, 2, b'a', b'b', 0]].concat());
        let mut bytes = if round % 2 == 0 { framed(&good) } else { good };
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(1..=bytes.len()));
        let mut peer = server.connect();
        peer.send(&bytes);
        peer.stream.shutdown(std::net::Shutdown::Write).unwrap();
        peer.until_closed();
    }
    assert!(server.is_serving());
}

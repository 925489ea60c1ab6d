//! Several calls of one connection under way together: what begins when, and in what order replies come.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::io::Write;

use hqueue_protocol::server::ServerOptions;
use server_support::{TestServer, bytes_struct, call, eventually, exception, pattern, reply};

fn begun(server: &TestServer) -> Vec<String> {
    server.service.begun.lock().unwrap().clone()
}

#[test]
fn replies_come_in_the_order_of_the_calls() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    let args = |i: i32| bytes_struct(&i.to_be_bytes());
    let methods = ["hold", "echo", "echo", "hold", "echo"];
    peer.send(&methods.iter().zip(1..).flat_map(|(method, i)| call(method, i, &args(i))).collect::<Vec<_>>());
    eventually("all have begun", || begun(&server) == methods);
    server.service.release.add_permits(2);
    for (method, i) in methods.iter().zip(1..) {
        assert_eq!(peer.reply(), reply(method, i, &args(i)));
    }
}

#[test]
fn a_method_that_does_not_overlap_is_alone() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    let methods = ["hold", "hold", "alone", "alone", "hold", "echo"];
    peer.send(&methods.iter().zip(1..).flat_map(|(method, i)| call(method, i, &[0])).collect::<Vec<_>>());
    eventually("the first two have begun", || begun(&server) == methods[..2]);
    server.service.release.add_permits(1);
    assert_eq!(peer.reply(), reply("hold", 1, &[0]));
    assert_eq!(begun(&server), methods[..2]);
    server.service.release.add_permits(1);
    for (method, i) in methods.iter().zip(1..).skip(1).take(3) {
        assert_eq!(peer.reply(), reply(method, i, &[0]));
    }
    eventually("the rest has begun", || begun(&server) == methods);
    server.service.release.add_permits(1);
    assert_eq!(peer.reply(), reply("hold", 5, &[0]));
    assert_eq!(peer.reply(), reply("echo", 6, &[0]));
}

#[test]
fn a_full_pipeline_is_not_read_further() {
    let server = TestServer::start(ServerOptions { pipeline: 8, ..ServerOptions::default() });
    let mut peer = server.connect();
    let args = bytes_struct(&pattern(20_000));
    // More than the buffers of a connection hold: the server's end has to fill up.
    let all: Vec<u8> = (1..=1000).flat_map(|i| call("hold", i, &args)).collect();
    let mut writer = peer.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || writer.write_all(&all).unwrap());
    eventually("the pipeline is full", || begun(&server).len() == 8);
    let stalled = server.counters.bytes_in();
    server.service.release.add_permits(1);
    eventually("one more has begun", || begun(&server).len() == 9);
    assert!(server.counters.bytes_in() < 2_000_000, "{stalled} bytes were read, then {}", server.counters.bytes_in());
    server.service.release.add_permits(999);
    for i in 1..=1000 {
        assert_eq!(peer.exact(reply("hold", i, &args).len()), reply("hold", i, &args));
    }
    sending.join().unwrap();
}

#[test]
fn many_small_calls_are_answered_whatever_the_pieces_they_come_in() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    let all: Vec<u8> = (1..=5000).flat_map(|i| call("echo", i, &bytes_struct(&i.to_be_bytes()))).collect();
    let mut writer = peer.stream.try_clone().unwrap();
    std::thread::spawn(move || all.chunks(1013).for_each(|chunk| writer.write_all(chunk).unwrap()));
    for i in 1..=5000 {
        let expected = reply("echo", i, &bytes_struct(&i.to_be_bytes()));
        assert_eq!(peer.exact(expected.len()), expected);
    }
    assert_eq!(server.counters.requests(), 5000);
}

#[test]
fn a_failure_is_an_exception_and_the_connection_goes_on() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&[call("fail", 1, &[0]), call("nonsense", 2, &[0]), call("echo", 3, &[0])].concat());
    assert_eq!(peer.reply(), exception("fail", 1, 6, "it failed"));
    assert_eq!(peer.reply(), exception("nonsense", 2, 1, "there is no method nonsense"));
    assert_eq!(peer.reply(), reply("echo", 3, &[0]));
}

#[test]
fn a_panic_ends_its_own_connection_only() {
    let server = TestServer::start(ServerOptions::default());
    let mut healthy = server.connect();
    healthy.send(&call("hold", 1, &[0]));
    let mut peer = server.connect();
    peer.send(&call("panic", 1, &[0]));
    assert_eq!(peer.until_closed(), b"");
    server.service.release.add_permits(1);
    assert_eq!(healthy.reply(), reply("hold", 1, &[0]));
    eventually("its slot is free", || server.counters.open_connections() == 1);
}

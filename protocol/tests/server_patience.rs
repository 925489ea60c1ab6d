//! Calls that wait for something to happen hold up nobody, and do not outlive their peer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::net::Shutdown;

use hqueue_protocol::server::{ServerOptions, Stopped};
use server_support::{TestServer, bytes_struct, call, eventually, reply};

/// What `wait` answers when it was told to hurry.
const HURRIED: &[u8] = &[0];

fn args(i: i32) -> Vec<u8> {
    bytes_struct(&i.to_be_bytes())
}

fn waiting(server: &TestServer, calls: usize) {
    eventually("they wait", || server.service.begun.lock().unwrap().iter().filter(|m| *m == "wait").count() == calls);
}

#[test]
fn it_waits_while_nobody_needs_its_reply() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&[call("wait", 1, &args(1)), call("wait", 2, &args(2))].concat());
    waiting(&server, 2);
    // Another connection is no reason to hurry.
    let mut other = server.connect();
    other.send(&call("echo", 1, &args(1)));
    assert_eq!(other.reply(), reply("echo", 1, &args(1)));
    server.service.release.add_permits(2);
    for i in 1..=2 {
        assert_eq!(peer.reply(), reply("wait", i, &args(i)));
    }
}

#[test]
fn a_later_reply_that_is_ready_is_not_held_up() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(
        &[call("wait", 1, &args(1)), call("wait", 2, &args(2)), call("echo", 3, &args(3)), call("wait", 4, &args(4))].concat(),
    );
    for (method, i) in [("wait", 1), ("wait", 2)] {
        assert_eq!(peer.reply(), reply(method, i, HURRIED));
    }
    assert_eq!(peer.reply(), reply("echo", 3, &args(3)));
    // What stands behind it waits on.
    waiting(&server, 3);
    server.service.release.add_permits(1);
    assert_eq!(peer.reply(), reply("wait", 4, &args(4)));
}

#[test]
fn a_call_that_cannot_begin_is_not_held_up() {
    let server = TestServer::start(ServerOptions { pipeline: 2, ..ServerOptions::default() });
    let mut peer = server.connect();
    peer.send(&call("wait", 1, &args(1)));
    waiting(&server, 1);
    peer.send(&call("alone", 2, &args(2)));
    assert_eq!(peer.reply(), reply("wait", 1, HURRIED));
    assert_eq!(peer.reply(), reply("alone", 2, &args(2)));
    // More than may be under way at once.
    peer.send(&(3..=6).flat_map(|i| call("wait", i, &args(i))).collect::<Vec<_>>());
    assert_eq!(peer.reply(), reply("wait", 3, HURRIED));
    assert_eq!(peer.reply(), reply("wait", 4, HURRIED));
    waiting(&server, 5);
    server.service.release.add_permits(2);
    assert_eq!(peer.reply(), reply("wait", 5, &args(5)));
    assert_eq!(peer.reply(), reply("wait", 6, &args(6)));
}

#[test]
fn it_ends_with_its_peer() {
    let server = TestServer::start(ServerOptions::default());
    let mut half = server.connect();
    half.send(&call("wait", 1, &args(1)));
    waiting(&server, 1);
    half.stream.shutdown(Shutdown::Write).unwrap();
    // Who only has sent everything still gets its reply.
    assert_eq!(half.until_closed(), reply("wait", 1, HURRIED));
    let mut gone = server.connect();
    gone.send(&(2..=9).flat_map(|i| call("wait", i, &args(i))).collect::<Vec<_>>());
    waiting(&server, 9);
    drop(gone);
    eventually("nothing is left of it", || server.counters.open_connections() == 0);
}

#[test]
fn it_does_not_hold_up_a_stop() {
    let mut server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&call("wait", 1, &args(1)));
    waiting(&server, 1);
    assert_eq!(server.stop(), Stopped { cut_off: 0 });
    assert_eq!(peer.until_closed(), reply("wait", 1, HURRIED));
}

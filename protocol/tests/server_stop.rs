//! A stop lets calls in hand end, closes everything, and takes no longer than it may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hqueue_protocol::server::{ServerOptions, Stopped};
use server_support::{TestServer, bytes_struct, call, eventually, reply};

#[test]
fn calls_in_hand_end_and_no_others_begin() {
    let mut server = TestServer::start(ServerOptions::default());
    let (mut busy, mut idle, mut half) = (server.connect(), server.connect(), server.connect());
    busy.send(&[call("hold", 1, &[0]), call("alone", 2, &[0])].concat());
    idle.send(&call("echo", 1, &[0]));
    assert_eq!(idle.reply(), reply("echo", 1, &[0]));
    half.send(&call("echo", 1, &[0])[..7]);
    eventually("all are there", || server.counters.open_connections() == 3 && server.counters.requests() == 2);
    let stopped = server.begin_stop().unwrap();
    assert_eq!(idle.until_closed(), b"");
    assert_eq!(half.until_closed(), b"");
    eventually("nobody listens any more", || TcpStream::connect(server.address).is_err());
    assert!(!stopped.is_finished());
    server.service.release.add_permits(1);
    assert_eq!(busy.until_closed(), reply("hold", 1, &[0]));
    assert_eq!(server.runtime.block_on(stopped).unwrap(), Stopped { cut_off: 0 });
    assert_eq!(server.counters.open_connections(), 0);
    assert_eq!(server.service.begun.lock().unwrap().len(), 2);
}

#[test]
fn what_does_not_end_is_cut_off() {
    let mut server = TestServer::start(ServerOptions { stop_grace: Duration::from_millis(200), ..ServerOptions::default() });
    let mut peers: Vec<_> = (0..3).map(|_| server.connect()).collect();
    peers.iter_mut().for_each(|peer| peer.send(&call("hold", 1, &[0])));
    eventually("the calls have begun", || server.counters.requests() == 3);
    let began = Instant::now();
    assert_eq!(server.stop(), Stopped { cut_off: 3 });
    assert!(began.elapsed() >= Duration::from_millis(190) && began.elapsed() < Duration::from_secs(4));
    peers.iter_mut().for_each(|peer| assert_eq!(peer.until_closed(), b""));
}

#[test]
fn a_server_that_is_idle_stops_at_once() {
    let mut server = TestServer::start(ServerOptions::default());
    let mut peers: Vec<_> = (0..50).map(|_| server.connect()).collect();
    eventually("all are there", || server.counters.open_connections() == 50);
    let began = Instant::now();
    assert_eq!(server.stop(), Stopped { cut_off: 0 });
    assert!(began.elapsed() < Duration::from_secs(2));
    peers.iter_mut().for_each(|peer| assert_eq!(peer.until_closed(), b""));
}

#[test]
fn a_peer_that_goes_on_sending_still_gets_the_last_replies() {
    let mut server = TestServer::start(ServerOptions { pipeline: 1, ..ServerOptions::default() });
    let mut peer = server.connect();
    // More than the server takes while the first call is under way: its socket has unread bytes when it stops.
    peer.send(&call("hold", 1, &[0]));
    eventually("the call has begun", || server.counters.requests() == 1);
    for sequence in 2..200 {
        peer.send(&call("echo", sequence, &bytes_struct(&[7; 1000])));
    }
    let stopped = server.begin_stop().unwrap();
    eventually("nobody listens any more", || TcpStream::connect(server.address).is_err());
    server.service.release.add_permits(1);
    assert_eq!(peer.reply(), reply("hold", 1, &[0]));
    let mut rest = [0];
    assert_eq!(peer.stream.read(&mut rest).unwrap(), 0, "closed in order, not by a reset");
    drop(peer);
    assert_eq!(server.runtime.block_on(stopped).unwrap(), Stopped { cut_off: 0 });
}

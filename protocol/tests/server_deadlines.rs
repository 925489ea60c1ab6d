//! Silent, slow and vanished peers lose their place; the others notice nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hqueue_protocol::server::ServerOptions;
use server_support::{Peer, TestServer, bytes_struct, call, eventually, framed, reply};

const MS: Duration = Duration::from_millis(1);

/// No deadline but those that a test shortens.
fn patient() -> ServerOptions {
    let hour = Duration::from_secs(3600);
    ServerOptions {
        request_stall: hour,
        write_stall: hour,
        transfer_time: hour,
        idle_timeout: hour,
        min_rate: 1 << 20,
        ..ServerOptions::default()
    }
}

/// Waits for the close and says how long it took.
fn closed_after(peer: &mut Peer, since: Instant) -> Duration {
    assert_eq!(peer.until_closed(), b"");
    since.elapsed()
}

#[test]
fn a_peer_that_is_silent_from_the_start_is_closed() {
    let server = TestServer::start(ServerOptions { request_stall: 200 * MS, ..patient() });
    let (since, mut peer) = (Instant::now(), server.connect());
    assert!(closed_after(&mut peer, since) >= 190 * MS);
    eventually("it is counted", || server.counters.expired_connections() == 1);
}

#[test]
fn a_peer_that_stops_inside_a_request_is_closed() {
    let server = TestServer::start(ServerOptions { request_stall: 200 * MS, ..patient() });
    let whole = framed(&call("echo", 1, &[0]));
    for part in [&whole[..3], &whole[..4], &whole[..5], &whole[..whole.len() - 1]] {
        let since = Instant::now();
        let mut peer = server.connect();
        peer.send(part);
        assert!(closed_after(&mut peer, since) >= 190 * MS);
    }
    // Also behind a call that was answered, and while one is under way.
    let mut peer = server.connect();
    peer.send(&[&call("echo", 1, &[0])[..], &call("hold", 2, &[0]), &call("echo", 3, &[0])[..9]].concat());
    assert_eq!(peer.reply(), reply("echo", 1, &[0]));
    assert_eq!(peer.until_closed(), b"");
}

#[test]
fn a_byte_now_and_then_does_not_keep_a_request_alive() {
    let server = TestServer::start(ServerOptions { transfer_time: 300 * MS, request_stall: 200 * MS, ..patient() });
    let mut peer = server.connect();
    let since = Instant::now();
    let whole = call("echo", 1, &bytes_struct(&[7; 1000]));
    let sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut writer = peer.stream.try_clone().unwrap();
        let (sent, whole) = (&sent, &whole);
        scope.spawn(move || {
            for byte in whole {
                if sent.load(Ordering::SeqCst) || std::io::Write::write_all(&mut writer, &[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(50 * MS);
            }
        });
        let took = closed_after(&mut peer, since);
        sent.store(true, Ordering::SeqCst);
        assert!(took >= 290 * MS && took < 5000 * MS, "{took:?}");
    });
}

#[test]
fn a_connection_without_calls_is_closed_and_calls_keep_it() {
    let server = TestServer::start(ServerOptions { idle_timeout: 900 * MS, ..patient() });
    let mut peer = server.connect();
    let began = Instant::now();
    for i in 0..10 {
        peer.send(&call("echo", i, &[0]));
        assert_eq!(peer.reply(), reply("echo", i, &[0]));
        std::thread::sleep(100 * MS);
    }
    assert!(began.elapsed() > 950 * MS);
    assert!(closed_after(&mut peer, began) >= 1790 * MS);
}

#[test]
fn a_call_under_way_is_no_idleness() {
    let server = TestServer::start(ServerOptions { idle_timeout: 100 * MS, request_stall: 100 * MS, ..patient() });
    let mut peer = server.connect();
    peer.send(&call("hold", 1, &[0]));
    std::thread::sleep(400 * MS);
    server.service.release.add_permits(1);
    assert_eq!(peer.reply(), reply("hold", 1, &[0]));
    assert_eq!(peer.until_closed(), b"");
}

#[test]
fn a_peer_that_does_not_read_its_replies_is_closed() {
    let server = TestServer::with_big(ServerOptions { write_stall: 200 * MS, ..patient() }, 8 << 20);
    let mut peer = server.connect();
    peer.send(&call("big", 1, &[0]));
    eventually("it is closed", || server.counters.expired_connections() == 1 && server.counters.open_connections() == 0);
    assert!(peer.until_closed().len() < 8 << 20);
}

#[test]
fn a_slow_reader_is_closed_however_steady() {
    let server = TestServer::with_big(ServerOptions { transfer_time: 300 * MS, ..patient() }, 32 << 20);
    let mut peer = server.connect();
    peer.send(&call("big", 1, &[0]));
    while server.counters.expired_connections() == 0 {
        peer.exact(5000);
        std::thread::sleep(10 * MS);
    }
}

#[test]
fn slots_come_back_and_a_healthy_client_notices_nothing() {
    let options = ServerOptions {
        max_connections: 201,
        request_stall: 500 * MS,
        idle_timeout: 500 * MS,
        transfer_time: 1000 * MS,
        ..patient()
    };
    let server = TestServer::start(options);
    let mut healthy = server.connect();
    let mut bad: Vec<Peer> = (0..200).map(|_| server.connect()).collect();
    for (i, peer) in bad.iter_mut().enumerate() {
        match i % 4 {
            0 => {}
            1 => peer.send(&[0, 0, 0]),
            2 => peer.send(&0x1000_u32.to_be_bytes()),
            _ => peer.send(&call("echo", 1, &[0])),
        }
    }
    let mut sequence = 0;
    let mut slowest = Duration::ZERO;
    eventually("all others are closed", || {
        sequence += 1;
        let since = Instant::now();
        healthy.send(&call("echo", sequence, &[0]));
        assert_eq!(healthy.reply(), reply("echo", sequence, &[0]));
        slowest = slowest.max(since.elapsed());
        server.counters.open_connections() == 1
    });
    assert!(slowest < 2000 * MS, "{slowest:?}");
    assert_eq!(server.counters.refused_connections(), 0);
    let mut again: Vec<Peer> = (0..200).map(|_| server.connect()).collect();
    again.iter_mut().for_each(|peer| peer.send(&call("echo", 7, &[0])));
    again.iter_mut().for_each(|peer| assert_eq!(peer.reply(), reply("echo", 7, &[0])));
}

//! Peers that speak no Thrift, and peers that only look in.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use hqueue_protocol::server::ServerOptions;
use server_support::{Peer, TestServer, call, eventually, logs, reply};
use tracing::Level;

const HTTP: &[u8] = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n{test}";
const TLS: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

/// Sends, and waits until the server has closed. Returns the sender's address.
fn send_and_see_it_closed(server: &TestServer, bytes: &[u8]) -> SocketAddr {
    let mut peer = server.connect();
    let address = peer.stream.local_addr().unwrap();
    peer.send(bytes);
    assert_eq!(peer.until_closed(), b"");
    address
}

#[test]
fn each_is_closed_and_told_by_what_it_looks_like() {
    let _turn = logs::collect();
    let server = TestServer::start(ServerOptions::default());
    let kinds: [(&[u8], &str); 6] = [
        (HTTP, "looks like HTTP"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", "looks like HTTP"),
        (TLS, "looks like TLS"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "looks like SSH"),
        (b"Hello\n", "looks like text"),
        (b"\x00\x00\x00\x08NI_PING\x00", "not Thrift"),
    ];
    for (bytes, looks_like) in kinds {
        let peer = send_and_see_it_closed(&server, bytes);
        if bytes.starts_with(b"GET") {
            continue; // The second of its kind within a second: only counted.
        }
        let peer = format!("peer={peer}");
        eventually("the line is there", || !logs::lines(Level::WARN, &peer).is_empty());
        let lines = logs::lines(Level::WARN, &peer);
        assert!(lines.len() == 1 && lines[0].contains(looks_like), "{lines:?}");
    }
    eventually("all are counted", || server.counters.foreign_peers() == 6);
    assert!(server.is_serving());
}

#[test]
fn a_flood_of_them_disturbs_nobody_and_is_one_line_a_second() {
    let _turn = logs::collect();
    let server = TestServer::start(ServerOptions::default());
    let done = AtomicBool::new(false);
    let mut peers = Vec::new();
    std::thread::scope(|scope| {
        let healthy = scope.spawn(|| {
            let mut peer = server.connect();
            for sequence in 1.. {
                peer.send(&call("echo", sequence, &[0]));
                assert_eq!(peer.reply(), reply("echo", sequence, &[0]));
                if done.load(Ordering::SeqCst) && sequence > 200 {
                    return;
                }
            }
        });
        for _ in 0..100 {
            peers.extend([HTTP, TLS, b"SSH-2.0-x\r\n", b"Hello\n"].map(|bytes| send_and_see_it_closed(&server, bytes)));
        }
        done.store(true, Ordering::SeqCst);
        healthy.join().unwrap();
    });
    eventually("all are counted", || server.counters.foreign_peers() == 400);
    let of_these = |line: &String| peers.iter().any(|peer| line.contains(&format!("peer={peer} ")));
    let lines = logs::lines(Level::INFO, "not Thrift").into_iter().filter(of_these).count();
    assert!((4..=40).contains(&lines), "{lines} lines");
}

#[test]
fn probes_leave_no_trace() {
    let _turn = logs::collect();
    let server = TestServer::start(ServerOptions::default());
    let mut probes = Vec::new();
    let mut note = |stream: &TcpStream| probes.push(format!("peer={} ", stream.local_addr().unwrap()));
    for _ in 0..300 {
        let stream = TcpStream::connect(server.address).unwrap();
        note(&stream);
    }
    for _ in 0..300 {
        let stream = server.runtime.block_on(tokio::net::TcpStream::connect(server.address)).unwrap();
        // Closing with a zero linger time sends a reset.
        stream.set_zero_linger().unwrap();
        note(&stream.into_std().unwrap());
    }
    let mut half_closed: Vec<_> = (0..100).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for stream in &mut half_closed {
        note(stream);
        stream.shutdown(Shutdown::Write).unwrap();
        stream.set_read_timeout(Some(server_support::PATIENCE)).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the server closes its side too");
    }
    eventually("all have ended", || server.counters.accepted_connections() == 700 && server.counters.open_connections() == 0);
    assert!(server.is_serving());
    assert_eq!(probes.iter().flat_map(|probe| logs::lines(Level::INFO, probe)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn who_sends_all_and_closes_that_side_gets_all_replies() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&[call("hold", 1, &[0]), call("echo", 2, &[0])].concat());
    peer.stream.shutdown(Shutdown::Write).unwrap();
    server.service.release.add_permits(1);
    assert_eq!(peer.until_closed(), [reply("hold", 1, &[0]), reply("echo", 2, &[0])].concat());
}

#[test]
fn file_descriptors_come_back() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let server = TestServer::start(ServerOptions::default());
    assert!(server.is_serving());
    // Other tests of this file run in the same process and have files open too.
    for _ in 0..200 {
        let mut peer = Peer::new(TcpStream::connect(server.address).unwrap());
        peer.send(&call("echo", 1, &[0])[..10]);
    }
    eventually("all have ended", || server.counters.accepted_connections() == 201 && server.counters.open_connections() == 0);
    eventually("and their files are closed", || open() < 200);
}

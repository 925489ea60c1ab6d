//! Limits of a request, of memory, of connections and of file descriptors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use hqueue_protocol::server::{FREE_BYTES, ServerOptions};
use server_support::{Peer, TestServer, bytes_struct, call, eventually, exception, framed, logs, pattern, reply};
use tracing::Level;

const MIB: usize = 1 << 20;

/// A call of `echo` that has so many bytes.
fn call_of(size: usize) -> Vec<u8> {
    let around = call("echo", 1, &bytes_struct(&[])).len();
    call("echo", 1, &bytes_struct(&pattern(size - around)))
}

fn send_in_background(peer: &Peer, bytes: Vec<u8>) {
    let mut writer = peer.stream.try_clone().unwrap();
    std::thread::spawn(move || drop(writer.write_all(&bytes)));
}

#[test]
fn a_request_of_16_mib_is_taken_and_one_more_byte_is_not() {
    let server = TestServer::start(ServerOptions::default());
    let largest = call_of(16 * MIB);
    let answer = [&[0x80, 1, 0, 2][..], &largest[4..]].concat();
    let (mut buffered, mut in_frame) = (server.connect(), server.connect());
    send_in_background(&buffered, largest.clone());
    assert!(buffered.exact(answer.len()) == answer);
    send_in_background(&in_frame, framed(&largest));
    assert!(in_frame.exact(answer.len() + 4) == framed(&answer));

    let over = call_of(16 * MIB + 1);
    for (mut peer, in_frame) in [(buffered, false), (in_frame, true), (server.connect(), false), (server.connect(), true)] {
        send_in_background(&peer, if in_frame { framed(&over) } else { over.clone() });
        let text = String::from_utf8_lossy(&peer.until_closed()).into_owned();
        assert!(text.contains("16777217 bytes or more is too large, the limit is 16777216 bytes"), "{text}");
    }
    assert!(server.is_serving());
}

#[test]
fn a_frame_that_is_only_too_large_is_told_so_also_when_its_head_comes_late() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&(20 * MIB as u32).to_be_bytes());
    peer.send(&call("echo", 3, &[]));
    let told = exception("echo", 3, 7, "a message of 20971520 bytes or more is too large, the limit is 16777216 bytes");
    assert_eq!(peer.until_closed_half(), framed(&told));
}

#[test]
fn announced_bytes_take_no_memory() {
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let server = TestServer::start(ServerOptions::default());
    let before = resident();
    let mut peers: Vec<_> = (0..200).map(|_| server.connect()).collect();
    let head = call("echo", 1, &[0x0b, 0, 1, 0, 0xf0, 0, 0]);
    let frame = [&(16 * MIB as u32).to_be_bytes()[..], &head].concat();
    for (i, peer) in peers.iter_mut().enumerate() {
        peer.send(if i % 2 == 0 { &head } else { &frame });
    }
    eventually("all has arrived", || server.counters.bytes_in() == 100 * (head.len() + frame.len()) as u64);
    assert_eq!(server.counters.open_connections(), 200);
    // Other tests of this file run in the same process: 3 GiB were announced, they need far less.
    assert!(resident() < before + 512 * MIB);
}

#[test]
fn memory_for_unfinished_requests_is_bounded_and_small_calls_go_on() {
    let options = ServerOptions { max_buffered_bytes: 4 * MIB, max_request_bytes: 4 * MIB, ..ServerOptions::default() };
    let server = TestServer::start(options);
    let part = |size: usize| call_of(3 * MIB)[..size].to_vec();
    let mut first = server.connect();
    first.send(&part(2 * MIB));
    eventually("the first part is there", || server.counters.bytes_in() == 2 * MIB as u64);
    let mut second = server.connect();
    send_in_background(&second, part(3 * MIB - 1));
    let text = String::from_utf8_lossy(&second.until_closed_half()).into_owned();
    assert!(text.contains("the limit is 4194304"), "{text}");

    let mut small = server.connect();
    small.send(&part(FREE_BYTES)[..FREE_BYTES / 2]);
    assert!(server.is_serving());
    // What is complete is given back.
    first.send(&call_of(3 * MIB)[2 * MIB..]);
    assert!(first.exact(3 * MIB).len() == 3 * MIB);
    let mut third = server.connect();
    send_in_background(&third, call_of(4 * MIB));
    assert!(third.exact(4 * MIB).len() == 4 * MIB);
}

#[test]
fn memory_for_unread_replies_is_bounded() {
    let options = ServerOptions { max_buffered_bytes: 40 * MIB, ..ServerOptions::default() };
    let server = TestServer::with_big(options, 10 * MIB);
    let mut peers: Vec<_> = (0..8).map(|_| server.connect()).collect();
    peers.iter_mut().for_each(|peer| peer.send(&call("big", 1, &[0])));
    eventually("some are cut off", || server.counters.requests() == 8 && server.counters.open_connections() <= 5);
    assert!(server.is_serving());
}

#[test]
fn a_large_reply_in_many_pieces_arrives_whole_through_small_buffers() {
    let server = TestServer::with_big(ServerOptions::default(), 3 * MIB);
    let mut peer = server.connect();
    peer.send(&[framed(&call("big", 1, &[0])), framed(&call("big", 2, &[0])), framed(&call("echo", 3, &[0]))].concat());
    for sequence in [1, 2] {
        let expected = framed(&reply("big", sequence, &bytes_struct(&pattern(3 * MIB))));
        assert!(peer.exact(expected.len()) == expected);
    }
    assert_eq!(peer.exact(21), framed(&reply("echo", 3, &[0])));
}

#[test]
fn one_connection_too_many_is_closed_at_once_and_logged() {
    let _turn = logs::collect();
    let server = TestServer::start(ServerOptions { max_connections: 3, ..ServerOptions::default() });
    let mut peers: Vec<_> = (0..3).map(|_| server.connect()).collect();
    eventually("all are there", || server.counters.open_connections() == 3);
    let refused: Vec<_> = (0..20).map(|_| server.connect()).collect();
    let first = format!("peer={} ", refused[0].stream.local_addr().unwrap());
    refused.into_iter().for_each(|mut peer| assert_eq!(peer.until_closed(), b""));
    assert_eq!(server.counters.refused_connections(), 20);
    let lines: Vec<_> = logs::lines(Level::WARN, &first).into_iter().filter(|line| line.contains("refused")).collect();
    assert!(lines.len() == 1 && lines[0].contains("limit=3 "), "{lines:?}");
    for (peer, sequence) in peers.iter_mut().zip(1..) {
        peer.send(&call("echo", sequence, &[0]));
        assert_eq!(peer.reply(), reply("echo", sequence, &[0]));
    }
    drop(peers);
    eventually("a place is free", || server.counters.open_connections() == 0);
    assert!(server.is_serving());
}

/// Runs itself in a process that may have few files open.
#[test]
fn without_file_descriptors_the_server_waits_and_goes_on_afterwards() {
    if std::env::var_os("FEW_FILES").is_some() {
        return with_few_files();
    }
    let this = std::env::current_exe().unwrap();
    let command = format!(
        "ulimit -n 60; FEW_FILES=1 exec {} --exact --nocapture without_file_descriptors_the_server_waits_and_goes_on_afterwards",
        this.display()
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn with_few_files() {
    let _turn = logs::collect();
    let server = TestServer::start(ServerOptions::default());
    let mut first = server.connect();
    let stat = File::open("/proc/self/stat").unwrap();
    eventually("the first is there", || server.counters.open_connections() == 1);
    // The kernel completes connections that the server cannot accept; both ends are in this process.
    let mut peers = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect(server.address) {
        peers.push(stream);
    }
    assert!(peers.len() > 10, "{}", peers.len());
    eventually("the server has noticed", || !logs::lines(Level::ERROR, "no connection can be accepted").is_empty());
    let (began, used) = (Instant::now(), processor_time(&stat));
    while began.elapsed() < Duration::from_millis(1500) {
        first.send(&call("echo", 1, &[0]));
        assert_eq!(first.reply(), reply("echo", 1, &[0]));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(processor_time(&stat) - used < Duration::from_millis(400));
    let lines = logs::lines(Level::ERROR, "no connection can be accepted");
    assert!(lines.len() <= 4, "{lines:?}");
    drop(peers);
    eventually("it accepts again", || server.counters.open_connections() == 1);
    assert!(server.is_serving());
}

/// `file` is this process's, opened while a file could be.
fn processor_time(mut file: &File) -> Duration {
    let mut stat = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut stat).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks = |i: usize| fields[i].parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

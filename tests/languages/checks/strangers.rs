//! Peers that are no brokers, at the port of a consumer: afterwards it lives and is served.

use std::io::Write;
use std::net::TcpStream;
use std::net::{Ipv4Addr, Shutdown};
use std::time::Duration;

use hqueue_tests::matrix::Case;
use hqueue_tests::{Broker, PATIENCE, wait};

use super::QUICK;
use crate::harness::{Language, Scripted, Server};

const PROBES: usize = 300;

pub(crate) fn strangers(language: &Language) {
    language.dialects().for_each(|server| strangers_at(language, server));
}

fn strangers_at(language: &Language, server: Server) {
    let cell = language.cell(server, Case::Strangers);
    let broker = Broker::start();
    broker.create("q", 1);
    let mut consumer = Scripted::start(language, server, "");
    let before = consumer.descriptors();
    probe(consumer.port());
    talk(consumer.port());
    broker.subscribe("q", "s", &consumer.address(), &QUICK);
    broker.put("q", 0, &["a"]);
    consumer.wait_for(1, PATIENCE);
    broker.wait_for_no_lag("q", "s");
    assert_eq!(consumer.accepted().len(), 1);
    // One is the broker's. Some close a connection with the next one, or when they collect their garbage.
    wait("their descriptors come back", PATIENCE, || consumer.descriptors() <= before + 8);
    cell.passed();
}

/// Connects and leaves, by a reset every other time, or half.
fn probe(port: u16) {
    for number in 0..PROBES {
        let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
        match number % 3 {
            0 => rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option of sockets"),
            1 => drop(stream.shutdown(Shutdown::Write)),
            _ => {}
        }
    }
}

/// Other protocols, lies about sizes, nesting.
fn talk(port: u16) {
    let nested = hqueue_tests::raw::binary_call("consumeMessages", &hqueue_tests::raw::nested(200));
    let messages: [&[u8]; 7] = [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n{test}",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\x80\x01\x00\x01\x00\x00\x00\x0fconsumeMessages\x00\x00\x00\x01\x0f\x00\x01\x0c\x7f\xff\xff\xff",
        &nested,
    ];
    for message in messages {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
        // It may close before it has read everything.
        let _ = stream.write_all(message);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = std::io::Read::read(&mut stream, &mut [0; 64]);
    }
}

//! Peers that speak no Thrift, or bad Thrift, in raw bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// A call in the binary protocol, without a frame.
#[must_use]
pub fn binary_call(method: &str, arguments: &[u8]) -> Vec<u8> {
    let name = method.as_bytes();
    let length = u32::try_from(name.len()).expect("a short name").to_be_bytes();
    [&[0x80, 1, 0, 1][..], &length, name, &[0, 0, 0, 1], arguments].concat()
}

/// The same bytes as a frame.
#[must_use]
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
    [&length[..], message].concat()
}

/// Arguments whose unknown field 99 holds structs nested to this depth.
#[must_use]
pub fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = vec![0x0c, 0, 99];
    bytes.extend([0x0c, 0, 1].repeat(depth));
    bytes.extend(vec![0; depth + 1]);
    bytes.push(0);
    bytes
}

/// A connection to a port of this machine that gives up reading after `limit`.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn connect(port: u16, limit: Duration) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the port is open");
    stream.set_read_timeout(Some(limit)).expect("a timeout can be set");
    stream
}

/// How a peer took some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It closed the connection, after these bytes.
    Closed(Vec<u8>),
    /// It left it open, after these bytes.
    Open(Vec<u8>),
}

/// Sends bytes and reads until the peer closes, for at most `limit`.
#[must_use]
pub fn send(port: u16, bytes: &[u8], limit: Duration) -> Reaction {
    let mut stream = connect(port, limit);
    // It may close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let deadline = Instant::now() + limit;
    let mut buffer = [0; 4096];
    while Instant::now() < deadline {
        match stream.read(&mut buffer) {
            Ok(0) => return Reaction::Closed(answer),
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => break,
            Err(_) => return Reaction::Closed(answer),
        }
    }
    Reaction::Open(answer)
}

//! What is said to a server without the client crate: how a session begins and ends on the wire, and whether a node is there.
//!
//! ```text
//! connect request   length 4 | protocol 4 | last zxid 8 | timeout 4 (ms) | session 8 | password 4 + 16 | read-only 1
//! connect response  length 4 | protocol 4 | timeout 4 (ms) | session 8 | password 4 + 16 | read-only 1 (old servers: none)
//! close session     length 4 | xid 4 | operation 4 (-11)
//! exists            length 4 | xid 4 | operation 4 (3) | path 4 + n | watch 1
//! any answer        length 4 | xid 4 (-1: the watch) | zxid 8 | error 4 | what was asked for
//! ```
//! All numbers are big-endian. At most one request is under way.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PASSWORD_BYTES: i32 = 16;

/// A response has 37 bytes, or 36 from a server before 3.4. Whoever sends another length talks something else.
const RESPONSE_BYTES: std::ops::RangeInclusive<i32> = 36..=64;

/// An answer to `exists`, or an event, has the header, a path or the node's figures. More than this is not waited for.
const ANSWER_BYTES: std::ops::RangeInclusive<i32> = 16..=8192;

const NO_NODE: i32 = -101;

/// `xid` 1, operation -11.
const CLOSE_SESSION: [u8; 12] = [0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5];

/// Begins a session and returns the timeout that the server grants.
pub(super) async fn open_session(stream: &mut TcpStream, asked: Duration) -> Result<Duration, Error> {
    stream.write_all(&connect_request(asked)).await?;
    let Ok(length) = stream.read_i32().await else {
        return Err(Error::new(
            ErrorKind::UnexpectedEof,
            "it closes the connection without an answer: it serves nobody yet, or has too many connections from here (maxClientCnxns)",
        ));
    };
    if !RESPONSE_BYTES.contains(&length) {
        return Err(Error::new(ErrorKind::InvalidData, "it does not talk ZooKeeper's protocol"));
    }
    let body = read_body(stream, length).await?;
    match number_at(&body, 4) {
        Some(granted @ 1..) => Ok(Duration::from_millis(u64::from(granted.unsigned_abs()))),
        _ => Err(Error::new(ErrorKind::ConnectionRefused, "it refuses a session")),
    }
}

/// Ends the session of this connection and waits until the server has done so.
pub(super) async fn close_session(mut stream: TcpStream) -> Result<(), Error> {
    stream.write_all(&CLOSE_SESSION).await?;
    let mut rest = [0; 256];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Waits until a node is not there.
pub(super) async fn until_gone(stream: &mut TcpStream, full: &str) -> Result<(), Error> {
    stream.write_all(&exists_request(full)).await?;
    loop {
        let length = stream.read_i32().await?;
        if !ANSWER_BYTES.contains(&length) {
            return Err(Error::new(ErrorKind::InvalidData, "an answer of another length than ZooKeeper's"));
        }
        let body = read_body(stream, length).await?;
        match (number_at(&body, 0), number_at(&body, 12)) {
            // It was there, and the watch is set.
            (Some(1..), Some(0)) => {}
            // The watch: an ephemeral node is deleted, or it is written. Look again.
            (Some(-1), _) => stream.write_all(&exists_request(full)).await?,
            (Some(1..), Some(NO_NODE)) => return Ok(()),
            other => return Err(Error::other(format!("an unexpected answer: {other:?}"))),
        }
    }
}

async fn read_body(stream: &mut TcpStream, length: i32) -> Result<Vec<u8>, Error> {
    let mut body = vec![0; usize::try_from(length).unwrap_or_default()];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

fn number_at(body: &[u8], at: usize) -> Option<i32> {
    body.get(at..at + 4)?.try_into().ok().map(i32::from_be_bytes)
}

fn exists_request(full: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(full.len() + 17);
    body.extend(2_i32.to_be_bytes());
    body.extend(3_i32.to_be_bytes());
    body.extend(i32::try_from(full.len()).unwrap_or_default().to_be_bytes());
    body.extend(full.as_bytes());
    body.push(1);
    with_length(&body)
}

fn with_length(body: &[u8]) -> Vec<u8> {
    [&i32::try_from(body.len()).unwrap_or_default().to_be_bytes(), body].concat()
}

fn connect_request(asked: Duration) -> Vec<u8> {
    let timeout = i32::try_from(asked.as_millis()).unwrap_or(i32::MAX);
    let mut body = Vec::with_capacity(64);
    body.extend(0_i32.to_be_bytes());
    body.extend(0_i64.to_be_bytes());
    body.extend(timeout.to_be_bytes());
    body.extend(0_i64.to_be_bytes());
    body.extend(PASSWORD_BYTES.to_be_bytes());
    body.extend([0; PASSWORD_BYTES as usize]);
    body.push(0);
    with_length(&body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_request_is_as_drawn() {
        let request = connect_request(Duration::from_secs(10));
        assert_eq!(request.len(), 4 + 45);
        assert_eq!(request[..4], 45_i32.to_be_bytes());
        assert_eq!(request[16..20], 10_000_i32.to_be_bytes());
    }

    #[test]
    fn an_exists_request_is_as_drawn() {
        assert_eq!(exists_request("/a"), [0, 0, 0, 15, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, b'/', b'a', 1]);
    }
}

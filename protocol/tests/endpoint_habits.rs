//! Consumers with the habits of single libraries, which the memory of an endpoint learns.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod endpoint_support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use endpoint_support::{Fake, answer_all, batch, hang, options, plain_caller, read_call, reply};
use hqueue_protocol::endpoint::{CallError, EndpointCaller, EndpointMemory};

/// The server leaves a connection that is idle for so long.
const LEAVES_AFTER: Duration = Duration::from_millis(200);
/// So long a call is waited for: enough for those that are answered at once, also on a machine with other work.
const WAITS: Duration = Duration::from_millis(1500);
/// More than the half second after which a connection counts as idle.
const IDLE: Duration = Duration::from_millis(550);

/// PHP's: answers, leaves the connection when it was idle and does not close it.
fn leaves(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(LEAVES_AFTER)).unwrap();
    while let Some((sequence, _)) = read_call(stream) {
        stream.write_all(&reply(sequence, 0)).unwrap();
    }
    hang(stream);
}

#[tokio::test]
async fn a_server_that_leaves_idle_connections_open_is_waited_for_once() {
    let fake = Fake::start(|_, mut stream| leaves(&mut stream));
    let mut caller = plain_caller(fake.address, WAITS);
    assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
    tokio::time::sleep(IDLE).await;
    let error = caller.consume(&batch(2, 1000)).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    for connections in 3..6 {
        assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
        assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0), "a connection in use is kept");
        assert_eq!(fake.accepted(), connections - 1);
        tokio::time::sleep(IDLE).await;
    }
}

/// Listens for one connection; returns its first bytes, and is away.
fn one_life(address: SocketAddr) -> Vec<u8> {
    let listener = TcpListener::bind(address).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    drop(listener);
    let mut first = [0; 4];
    stream.read_exact(&mut first).unwrap();
    first.to_vec()
}

/// PHP's, of the compact protocol: ends at bytes of the binary one, and is started again by somebody.
#[tokio::test]
async fn a_server_that_ends_at_another_protocol_is_asked_in_its_own_in_the_end() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut caller = EndpointCaller::new(options(address), Arc::new(EndpointMemory::default()));
    let mut asked = Vec::new();
    for _ in 0..3 {
        let life = tokio::task::spawn_blocking(move || one_life(address));
        let began = Instant::now();
        // Until it listens nothing is tried, and until it has ended another connection may be made to it.
        while !life.is_finished() {
            assert!(began.elapsed() < endpoint_support::PATIENCE);
            let error = caller.consume(&[]).await.unwrap_err();
            assert!(error.is_connect(), "{error}");
        }
        asked.push(life.await.unwrap());
    }
    assert_eq!(asked[0], [0x80, 1, 0, 1], "buffered binary");
    assert_eq!(asked[1][..2], [0, 0], "framed binary");
    assert_eq!(asked[2][..2], [0x82, 0x21], "buffered compact");
    let fake = Fake::on(TcpListener::bind(address).unwrap(), |_, mut stream| answer_all(&mut stream, 0));
    assert_eq!(caller.consume(&batch(1, 10)).await, Ok(0), "all others are tried still");
    assert!(fake.accepted() >= 2);
}

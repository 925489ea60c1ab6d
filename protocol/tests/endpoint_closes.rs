//! Consumers that close connections: idle ones for nothing, others for a reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod endpoint_support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use endpoint_support::{Fake, batch, plain_caller, read_call, reply};
use hqueue_protocol::endpoint::CallError;

const LONG: Duration = Duration::from_secs(8);
/// More than the half second after which a connection counts as idle.
const IDLE: Duration = Duration::from_millis(550);

/// Answers one call and closes at the first byte of the next: the caller cannot know before it has sent.
fn one_call(stream: &mut TcpStream) {
    let Some((sequence, _)) = read_call(stream) else { return };
    stream.write_all(&reply(sequence, 0)).unwrap();
    let _ = stream.read(&mut [0]);
}

#[tokio::test]
async fn an_idle_connection_that_ends_is_replaced_and_the_call_sent_again() {
    let fake = Fake::start(|_, mut stream| one_call(&mut stream));
    let mut caller = plain_caller(fake.address, LONG);
    for calls in 1..=3 {
        assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
        assert_eq!(fake.accepted(), calls);
        tokio::time::sleep(IDLE).await;
    }
}

#[tokio::test]
async fn a_connection_in_use_that_ends_is_a_failure() {
    let fake = Fake::start(|_, mut stream| one_call(&mut stream));
    let mut caller = plain_caller(fake.address, LONG);
    assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
    let error = caller.consume(&batch(2, 1000)).await.unwrap_err();
    assert!(matches!(error, CallError::Closed { .. }) && !error.is_connect() && !error.is_answer(), "{error}");
    assert_eq!(fake.accepted(), 1);
    assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
}

#[tokio::test]
async fn a_connection_is_replaced_once() {
    let fake = Fake::start(|number, mut stream| if number == 0 { one_call(&mut stream) } else { _ = read_call(&mut stream) });
    let mut caller = plain_caller(fake.address, LONG);
    assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
    tokio::time::sleep(IDLE).await;
    let error = caller.consume(&batch(2, 1000)).await.unwrap_err();
    assert!(matches!(error, CallError::Closed { .. }), "{error}");
    assert_eq!(fake.accepted(), 2);
}

#[tokio::test]
async fn a_connection_that_has_ended_before_the_call_costs_nothing() {
    let fake = Fake::start(|_, mut stream| {
        if let Some((sequence, _)) = read_call(&mut stream) {
            stream.write_all(&reply(sequence, 0)).unwrap();
        }
    });
    let mut caller = plain_caller(fake.address, LONG);
    for _ in 0..3 {
        assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
        fake.wait_until_closed();
        // The runtime looks at its sockets when it has nothing else to do.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn an_idle_connection_that_cannot_be_replaced_is_no_mere_failure_to_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        drop(listener);
        one_call(&mut stream);
    });
    let mut caller = plain_caller(address, LONG);
    assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
    tokio::time::sleep(IDLE).await;
    let error = caller.consume(&batch(2, 1000)).await.unwrap_err();
    assert!(matches!(error, CallError::Lost { .. }) && !error.is_connect(), "{error}");
    assert!(error.to_string().contains("connection refused"), "{error}");
    server.join().unwrap();
    assert!(caller.consume(&batch(2, 1000)).await.unwrap_err().is_connect());
}

#[tokio::test]
async fn an_idle_connection_that_ends_inside_a_reply_is_a_failure() {
    let fake = Fake::start(|_, mut stream| {
        let (sequence, _) = read_call(&mut stream).unwrap();
        stream.write_all(&reply(sequence, 0)).unwrap();
        let (sequence, _) = read_call(&mut stream).unwrap();
        stream.write_all(&reply(sequence, 0)[..10]).unwrap();
    });
    let mut caller = plain_caller(fake.address, LONG);
    assert_eq!(caller.consume(&batch(2, 1000)).await, Ok(0));
    tokio::time::sleep(IDLE).await;
    let error = caller.consume(&batch(2, 1000)).await.unwrap_err();
    assert!(matches!(error, CallError::Closed { .. }), "{error}");
    assert_eq!(fake.accepted(), 1);
}

#[tokio::test]
async fn a_reset_of_a_large_call_may_be_due_to_its_size() {
    let taken = Arc::new(AtomicUsize::new(0));
    let seen = taken.clone();
    let fake = Fake::start(move |_, mut stream| {
        // What a stock server does with a call over its limit: it reads a little and closes with the rest unread.
        let mut head = [0; 1000];
        stream.read_exact(&mut head).unwrap();
        seen.fetch_add(1, Ordering::SeqCst);
    });
    let mut caller = plain_caller(fake.address, LONG);
    let error = caller.consume(&batch(8, 1 << 20)).await.unwrap_err();
    assert!(error.may_be_too_large() && !error.is_answer(), "{error}");
    assert!(error.to_string().contains("perhaps the call is too large for it"), "{error}");
    let error = caller.consume(&batch(2, 1000)).await.unwrap_err();
    assert!(!error.may_be_too_large(), "{error}");
    assert_eq!(taken.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn large_calls_arrive_whole() {
    let fake = Fake::start(|_, mut stream| {
        while let Some((sequence, size)) = read_call(&mut stream) {
            stream.write_all(&reply(sequence, size as i32)).unwrap();
        }
    });
    let mut caller = plain_caller(fake.address, LONG);
    let many = batch(2000, 100).iter().flat_map(|all| all.runs(|m| m.id.sequence % 5 != 0).unwrap()).collect::<Vec<_>>();
    assert_eq!(many.len(), 400);
    for slices in [many, batch(8, 1 << 20), batch(1, 0)] {
        let messages: usize = slices.iter().map(|slice| slice.bytes.len()).sum();
        assert_eq!(caller.consume(&slices).await, Ok(messages as i32 + 27 + 8 + 1));
    }
}

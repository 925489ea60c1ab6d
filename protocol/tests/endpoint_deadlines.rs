//! Consumers that hang, and connections that cannot be made.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod endpoint_support;

use std::future::Future;
use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use endpoint_support::{Fake, answer_all, batch, hang, options, plain_caller, read_call, reply};
use hqueue_protocol::endpoint::{CallError, EndpointCaller};
use tokio::net::{TcpSocket, TcpStream};

const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_secs(8);

/// The error of a call and whether it came about when it had to.
async fn fails_after<T: std::fmt::Debug>(at_least: Duration, call: impl Future<Output = Result<T, CallError>>) -> CallError {
    let began = Instant::now();
    let error = call.await.unwrap_err();
    let took = began.elapsed();
    assert!(took >= at_least && took < at_least + Duration::from_secs(4), "{took:?}: {error}");
    error
}

#[tokio::test]
async fn a_consumer_that_never_answers_is_given_up_and_called_anew() {
    let fake = Fake::start(|number, mut stream| if number == 0 { hang(&stream) } else { answer_all(&mut stream, 0) });
    let mut caller = plain_caller(fake.address, SHORT);
    let error = fails_after(SHORT, caller.consume(&batch(3, 10))).await;
    assert!(error.is_timeout() && !error.is_connect() && !error.is_answer(), "{error}");
    assert!(error.to_string().contains("within 150ms (timeout)"), "{error}");
    assert_eq!(caller.consume(&batch(3, 10)).await, Ok(0));
    assert_eq!(fake.accepted(), 2);
}

#[tokio::test]
async fn a_consumer_that_never_reads_a_large_call_is_given_up() {
    let listener = {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(16).unwrap().into_std().unwrap();
        listener.set_nonblocking(false).unwrap();
        listener
    };
    let fake = Fake::on(listener, |_, stream| hang(&stream));
    let mut caller = plain_caller(fake.address, SHORT);
    let error = fails_after(SHORT, caller.consume(&batch(8, 1 << 20))).await;
    assert!(error.is_timeout(), "{error}");
}

#[tokio::test]
async fn a_reply_that_trickles_is_given_up() {
    let fake = Fake::start(|_, mut stream| {
        let Some((sequence, _)) = read_call(&mut stream) else { return };
        for byte in reply(sequence, 0) {
            std::thread::sleep(Duration::from_millis(20));
            if stream.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    let error = fails_after(SHORT, plain_caller(fake.address, SHORT).consume(&batch(1, 1))).await;
    assert!(error.is_timeout(), "{error}");
}

#[tokio::test]
async fn a_reply_that_comes_too_late_does_not_answer_the_next_call() {
    let (late, go) = mpsc::channel::<()>();
    let go = std::sync::Mutex::new(go);
    let fake = Fake::start(move |number, mut stream| {
        if number > 0 {
            return answer_all(&mut stream, 0);
        }
        let (sequence, _) = read_call(&mut stream).unwrap();
        go.lock().unwrap().recv().unwrap();
        let _ = stream.write_all(&[reply(sequence, -3), reply(sequence + 1, -3)].concat());
        hang(&stream);
    });
    // Long enough for the calls that are answered at once, also on a machine with other work.
    let mut caller = plain_caller(fake.address, SHORT * 10);
    assert!(caller.consume(&batch(1, 1)).await.unwrap_err().is_timeout());
    late.send(()).unwrap();
    for _ in 0..3 {
        assert_eq!(caller.consume(&batch(1, 1)).await, Ok(0));
    }
    assert_eq!(fake.accepted(), 2);
}

#[tokio::test]
async fn a_call_that_is_dropped_half_way_does_not_answer_the_next() {
    let fake = Fake::start(|number, mut stream| {
        if number == 0 {
            let (sequence, _) = read_call(&mut stream).unwrap();
            std::thread::sleep(SHORT * 2);
            let _ = stream.write_all(&[reply(sequence, -3), reply(sequence + 1, -3)].concat());
        } else {
            answer_all(&mut stream, 0);
        }
    });
    let mut caller = plain_caller(fake.address, LONG);
    assert!(tokio::time::timeout(SHORT, caller.consume(&batch(1, 1))).await.is_err());
    assert_eq!(caller.consume(&batch(1, 1)).await, Ok(0));
}

#[tokio::test]
async fn nobody_there_is_no_attempt() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = fails_after(Duration::ZERO, plain_caller(address, LONG).consume(&batch(1, 1))).await;
    assert!(error.is_connect() && !error.is_answer(), "{error}");
    assert_eq!(error.to_string(), format!("cannot connect to {address}: connection refused"));
}

#[tokio::test]
async fn a_name_that_means_nothing_is_told() {
    for name in ["no-such-host.invalid:9090", "127.0.0.1", "127.0.0.1:port", ""] {
        let mut options = options("127.0.0.1:1".parse().unwrap());
        options.address = name.to_owned();
        let error = EndpointCaller::new(options, std::sync::Arc::default()).consume(&[]).await.unwrap_err();
        assert!(error.is_connect() && error.to_string().contains("cannot resolve the name"), "{error}");
    }
}

#[tokio::test]
async fn a_black_hole_has_a_deadline_of_its_own() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Connections that nobody accepts fill the backlog; further ones are not answered at all.
    let mut fill = Vec::new();
    while let Ok(connected) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        fill.push(connected.unwrap());
    }
    let mut options = options(address);
    options.connect_timeout = SHORT;
    let error = fails_after(SHORT, EndpointCaller::new(options, std::sync::Arc::default()).consume(&batch(1, 1))).await;
    assert!(error.is_connect() && !error.is_timeout(), "{error}");
    assert!(error.to_string().ends_with("no connection within 150ms (timeout)"), "{error}");
}

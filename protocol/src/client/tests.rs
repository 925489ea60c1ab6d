//! The client against a server that is written by hand, byte for byte.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::*;
use crate::generated::{HQueueError, TErrorCode};
use crate::rpc::{GetQueueLocations, GetQueueLocationsArgs, Method, Renew, RenewArgs};
use crate::wire::Protocol;

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn client(addresses: &[&str]) -> RpcClient {
    let mut options = ClientOptions::new(addresses.iter().map(|a| (*a).to_owned()).collect());
    options.call_timeout = Duration::from_secs(10);
    RpcClient::new(options)
}

/// One side of a connection that reads calls of `renew` and answers them.
struct Server(TcpStream);

impl Server {
    async fn accept(listener: &TcpListener) -> Self {
        Self(listener.accept().await.unwrap().0)
    }

    /// Sequence number and argument.
    async fn read_renew(&mut self) -> (i32, i64) {
        let length = self.0.read_u32().await.unwrap();
        let mut frame = vec![0; length as usize];
        self.0.read_exact(&mut frame).await.unwrap();
        assert_eq!(&frame[..13], b"\x80\x01\0\x01\0\0\0\x05renew");
        let args = Renew::decode_args(Protocol::Binary, &frame[17..]).unwrap();
        (i32::from_be_bytes(*frame[13..].first_chunk().unwrap()), args.registration_id)
    }

    async fn answer(&mut self, sequence: i32, kind: u8, body: &[u8]) {
        let mut frame = vec![0x80, 1, 0, kind, 0, 0, 0, 5];
        frame.extend(b"renew");
        frame.extend(sequence.to_be_bytes());
        frame.extend(body);
        self.0.write_u32(frame.len().try_into().unwrap()).await.unwrap();
        self.0.write_all(&frame).await.unwrap();
    }
}

fn renew(id: i64) -> RenewArgs {
    RenewArgs { registration_id: id }
}

fn refusal(text: &str) -> Vec<u8> {
    Renew::encode_result(Protocol::Binary, &Err(HQueueError::new(2, text.to_owned())))
}

#[tokio::test]
async fn calls_are_outstanding_together_and_answered_in_order() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let server = async {
        let mut server = Server::accept(&listener).await;
        let mut calls = Vec::new();
        for _ in 0..3 {
            calls.push(server.read_renew().await);
        }
        for (sequence, id) in calls {
            server.answer(sequence, 2, &refusal(&id.to_string())).await;
        }
    };
    let (a, b, c) = (renew(10), renew(11), renew(12));
    let calls = async { tokio::join!(client.call::<Renew>(&a), client.call::<Renew>(&b), client.call::<Renew>(&c)) };
    let ((), (a, b, c)) = tokio::join!(server, calls);
    for (result, id) in [(a, "10"), (b, "11"), (c, "12")] {
        assert_eq!(result, Err(ClientError::Refused { code: TErrorCode::NOT_FOUND, message: id.to_owned() }));
    }
}

/// A broker that takes connections and does not get on is left, in turn with the others.
#[tokio::test]
async fn a_broker_that_is_left_is_the_last_to_be_asked_again() {
    let (listeners, addresses): (Vec<_>, Vec<_>) = [listen().await, listen().await, listen().await].into_iter().unzip();
    let client = client(&addresses.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(client.addresses(), 3);
    for turn in [0, 1, 2, 0] {
        let call = async { client.call::<Renew>(&renew(turn)).await };
        let server = async {
            let mut server = Server::accept(&listeners[usize::try_from(turn).unwrap()]).await;
            let (sequence, id) = server.read_renew().await;
            server.answer(sequence, 2, &refusal(&id.to_string())).await;
        };
        let (refused, ()) = tokio::join!(call, server);
        assert_eq!(refused, Err(ClientError::Refused { code: TErrorCode::NOT_FOUND, message: turn.to_string() }));
        client.leave_broker().await;
    }
}

#[tokio::test]
async fn no_more_than_the_limit_is_outstanding() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let calls: Vec<_> = (0..=MAX_OUTSTANDING)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.call::<Renew>(&renew(n.try_into().unwrap())).await })
        })
        .collect();
    let mut server = Server::accept(&listener).await;
    let mut sequences = Vec::new();
    for _ in 0..MAX_OUTSTANDING {
        sequences.push(server.read_renew().await.0);
    }
    let another = tokio::time::timeout(Duration::from_millis(50), server.0.peek(&mut [0])).await;
    assert!(another.is_err(), "the 65th call waits");
    server.answer(sequences.remove(0), 2, &[0]).await;
    sequences.push(server.read_renew().await.0);
    for sequence in sequences {
        server.answer(sequence, 2, &[0]).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn a_broken_connection_fails_what_was_sent_and_the_next_call_connects_again() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let (a, b) = (renew(1), renew(2));
    let calls = async { tokio::join!(client.call::<Renew>(&a), client.call::<Renew>(&b)) };
    let server = async {
        let mut server = Server::accept(&listener).await;
        server.read_renew().await;
        server.read_renew().await;
    };
    let ((a, b), ()) = tokio::join!(calls, server);
    for error in [a.unwrap_err(), b.unwrap_err()] {
        assert!(matches!(error, ClientError::Lost { sent: true, .. }), "{error:?}");
        assert!(error.may_have_been_carried_out() && error.is_retryable());
    }
    let server = async {
        let mut server = Server::accept(&listener).await;
        let (sequence, id) = server.read_renew().await;
        server.answer(sequence, 2, &[0]).await;
        id
    };
    let c = renew(3);
    assert_eq!(tokio::join!(client.call::<Renew>(&c), server), (Ok(()), 3));
}

#[tokio::test]
async fn no_broker_is_an_error_at_once_and_nothing_was_sent() {
    let (listener, address) = listen().await;
    drop(listener);
    let error = client(&[&address]).call::<Renew>(&renew(1)).await.unwrap_err();
    assert!(matches!(&error, ClientError::Connect { address: a, .. } if *a == address), "{error:?}");
    assert!(!error.may_have_been_carried_out() && error.is_retryable());
}

#[tokio::test]
async fn the_next_address_is_tried() {
    let (closed, nobody) = listen().await;
    drop(closed);
    let (listener, address) = listen().await;
    let client = client(&[&nobody, &address]);
    let server = async {
        let mut server = Server::accept(&listener).await;
        let (sequence, _) = server.read_renew().await;
        server.answer(sequence, 2, &[0]).await;
    };
    let a = renew(1);
    assert_eq!(tokio::join!(client.call::<Renew>(&a), server).0, Ok(()));
}

/// Answers one call.
async fn answer_one(server: &mut Server) {
    let (sequence, _) = server.read_renew().await;
    server.answer(sequence, 2, &[0]).await;
}

#[tokio::test]
async fn addresses_that_change_are_followed() {
    let ((one, first), (two, second)) = (listen().await, listen().await);
    let list = watch::Sender::new(Vec::new());
    let following = ChangingAddresses { list: list.subscribe(), source: "the list".to_owned(), follower: Arc::new(()) };
    let client = RpcClient::following(following, &ClientOptions::new(Vec::new()));
    let call = renew(1);
    // It waits for the first address.
    let appears = async { list.send_replace(vec![first.clone()]) };
    let serve = async {
        let mut server = Server::accept(&one).await;
        answer_one(&mut server).await;
        server
    };
    let (result, _, mut kept) = tokio::join!(client.call::<Renew>(&call), appears, serve);
    assert_eq!(result, Ok(()));
    // One more comes: the connection stays.
    list.send_replace(vec![second.clone(), first.clone()]);
    assert_eq!(tokio::join!(client.call::<Renew>(&call), answer_one(&mut kept)).0, Ok(()));
    // It goes: a call that waits for its reply gets it, the next one goes to the other.
    let waiting = client.start(Renew::NAME, Renew::encode_args(Protocol::Binary, &call).into()).await.unwrap();
    let (sequence, _) = kept.read_renew().await;
    list.send_replace(vec![second.clone()]);
    let serve = async { answer_one(&mut Server::accept(&two).await).await };
    assert_eq!(tokio::join!(client.call::<Renew>(&call), serve).0, Ok(()));
    kept.answer(sequence, 2, &[0]).await;
    waiting.reply().await.unwrap();
}

#[tokio::test]
async fn with_nobody_left_the_last_connection_is_used_and_without_one_the_source_is_named() {
    let (listener, address) = listen().await;
    let list = watch::Sender::new(vec![address]);
    let following = ChangingAddresses { list: list.subscribe(), source: "the list".to_owned(), follower: Arc::new(()) };
    let options = ClientOptions { connect_timeout: Duration::from_millis(50), ..ClientOptions::new(Vec::new()) };
    let client = RpcClient::following(following, &options);
    let call = renew(1);
    let serve = async {
        let mut server = Server::accept(&listener).await;
        answer_one(&mut server).await;
        server
    };
    let (result, mut server) = tokio::join!(client.call::<Renew>(&call), serve);
    assert_eq!(result, Ok(()));
    list.send_replace(Vec::new());
    assert_eq!(tokio::join!(client.call::<Renew>(&call), answer_one(&mut server)).0, Ok(()));
    drop(server);
    // Until it is seen that the connection has ended.
    let error = loop {
        match client.call::<Renew>(&call).await.unwrap_err() {
            ClientError::Lost { .. } => {}
            other => break other,
        }
    };
    assert_eq!(error.to_string(), "cannot connect to the list: there is no address");
}

#[tokio::test]
async fn a_late_reply_answers_no_other_call() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let hasty = client.with_call_timeout(Duration::from_millis(100));
    let a = renew(1);
    let (result, mut first) = tokio::join!(hasty.call::<Renew>(&a), Server::accept(&listener));
    let error = result.unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }) && error.may_have_been_carried_out(), "{error:?}");
    let (sequence, _) = first.read_renew().await;
    let server = async {
        let mut second = Server::accept(&listener).await;
        let (sequence, id) = second.read_renew().await;
        second.answer(sequence, 2, &refusal(&id.to_string())).await;
        id
    };
    // The first connection is closed; if it is open for a moment more, what it gets must not matter.
    let _ = first.0.write_all(&sequence.to_be_bytes()).await;
    let b = renew(2);
    let (result, _) = tokio::join!(client.call::<Renew>(&b), server);
    assert_eq!(result.unwrap_err().to_string(), "2");
}

#[tokio::test]
async fn what_is_no_reply_ends_the_connection() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let a = renew(1);
    // A reply to another call, one that is cut, one that is too long, one of another protocol.
    for (bytes, says) in [
        (&b"\0\0\0\x12\x80\x01\0\x02\0\0\0\x05renew\0\0\0\x63\0"[..], "to call 99"),
        (b"\0\0\0\x11\x80\x01\0\x02\0\0\0\x05renew\0\0\0\x01", "end in the middle"),
        (b"\x7f\xff\xff\xff", "2147483647"),
        (b"HTTP/1.1 400 Bad Request", "\"HTTP\""),
        (b"\0\0\0\x04SSH-", "no reply"),
    ] {
        let server = async {
            let mut server = Server::accept(&listener).await;
            server.read_renew().await;
            server.0.write_all(bytes).await.unwrap();
            // It is the client that closes.
            while server.0.read(&mut [0; 16]).await.is_ok_and(|n| n > 0) {}
        };
        let error = tokio::join!(client.call::<Renew>(&a), server).0.unwrap_err();
        assert!(matches!(error, ClientError::Lost { sent: true, .. }) && error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn exceptions_and_wrong_results_are_told_apart_and_the_connection_lives_on() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let server = async {
        let mut server = Server::accept(&listener).await;
        let (sequence, _) = server.read_renew().await;
        server.answer(sequence, 3, b"\x08\0\x02\0\0\0\x01\0").await;
        let length = server.0.read_u32().await.unwrap();
        server.0.read_exact(&mut vec![0; length as usize]).await.unwrap();
        server.answer(2, 2, &[0]).await;
    };
    let calls = async {
        let exception = client.call::<Renew>(&renew(1)).await.unwrap_err();
        let locations = client.call::<GetQueueLocations>(&GetQueueLocationsArgs { queue_name: b"q".to_vec() }).await;
        (exception, locations.unwrap_err())
    };
    let ((), (exception, locations)) = tokio::join!(server, calls);
    assert!(matches!(&exception, ClientError::Exception { reason, .. } if reason == "unknown method"), "{exception:?}");
    assert!(matches!(locations, ClientError::BadReply { .. }), "{locations:?}");
}

#[tokio::test]
async fn large_calls_and_replies_arrive_whole() {
    let (listener, address) = listen().await;
    let client = client(&[&address]);
    let long = "x".repeat(3_000_000);
    let server = async {
        let mut server = Server::accept(&listener).await;
        let length = server.0.read_u32().await.unwrap() as usize;
        let mut frame = vec![0; length];
        server.0.read_exact(&mut frame).await.unwrap();
        let name = GetQueueLocations::decode_args(Protocol::Binary, &frame[29..]).unwrap().queue_name;
        server.answer(1, 2, &GetQueueLocations::encode_result(Protocol::Binary, &Ok(vec![name]))).await;
    };
    let args = GetQueueLocationsArgs { queue_name: long.clone().into_bytes() };
    let (result, ()) = tokio::join!(client.call::<GetQueueLocations>(&args), server);
    assert_eq!(result.unwrap(), [long.into_bytes()]);
}

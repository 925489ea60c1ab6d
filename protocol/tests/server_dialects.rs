//! The stock library's clients are answered in the dialect they speak.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod server_support;

use std::net::TcpStream;

use hqueue_protocol::generated::{HQueueSubscriberServiceSyncClient, THQueueSubscriberServiceSyncClient, TMessage, TMessageID};
use hqueue_protocol::server::ServerOptions;
use server_support::{TestServer, call, framed, oneway, reply};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol, TOutputProtocol,
};
use thrift::transport::{TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport};

fn messages(count: i64) -> Vec<TMessage> {
    let message = |i| TMessage::new(TMessageID::new(i, 7), 3, b"topic".to_vec(), vec![i as u8; 1000], None);
    (0..count).map(message).collect()
}

fn call_stock(input: impl TInputProtocol, output: impl TOutputProtocol) {
    let mut client = HQueueSubscriberServiceSyncClient::new(input, output);
    for count in [0, 1, 3, 2000] {
        assert_eq!(client.consume_messages(messages(count)).unwrap(), count as i32);
    }
}

fn streams(server: &TestServer) -> (TcpStream, TcpStream) {
    let stream = server.connect().stream;
    (stream.try_clone().unwrap(), stream)
}

#[test]
fn stock_clients_of_all_four_dialects_are_served_at_once() {
    let server = TestServer::start(ServerOptions::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (r, w) = streams(&server);
            let (r, w) = (TBufferedReadTransport::new(r), TBufferedWriteTransport::new(w));
            call_stock(TBinaryInputProtocol::new(r, true), TBinaryOutputProtocol::new(w, true));
        });
        scope.spawn(|| {
            let (r, w) = streams(&server);
            let (r, w) = (TFramedReadTransport::new(r), TFramedWriteTransport::new(w));
            call_stock(TBinaryInputProtocol::new(r, true), TBinaryOutputProtocol::new(w, true));
        });
        scope.spawn(|| {
            let (r, w) = streams(&server);
            let (r, w) = (TBufferedReadTransport::new(r), TBufferedWriteTransport::new(w));
            call_stock(TCompactInputProtocol::new(r), TCompactOutputProtocol::new(w));
        });
        scope.spawn(|| {
            let (r, w) = streams(&server);
            let (r, w) = (TFramedReadTransport::new(r), TFramedWriteTransport::new(w));
            call_stock(TCompactInputProtocol::new(r), TCompactOutputProtocol::new(w));
        });
        scope.spawn(|| {
            let (r, w) = streams(&server);
            call_stock(TBinaryInputProtocol::new(r, false), TBinaryOutputProtocol::new(w, false));
        });
    });
    assert_eq!(server.counters.requests(), 20);
    assert_eq!(server.counters.accepted_connections(), 5);
    server_support::eventually("all are gone", || server.counters.open_connections() == 0);
    assert!(server.counters.bytes_in() > 5 * 2_000_000);
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let server = TestServer::start(ServerOptions::default());
    for message in [call("echo", 77, &[2, 0, 1, 1, 0]), framed(&call("echo", 77, &[2, 0, 1, 1, 0]))] {
        let mut peer = server.connect();
        message.iter().for_each(|byte| peer.send(&[*byte]));
        let expected = reply("echo", 77, &[2, 0, 1, 1, 0]);
        let expected = if message[0] == 0 { framed(&expected) } else { expected };
        assert_eq!(peer.exact(expected.len()), expected);
    }
}

#[test]
fn a_oneway_call_is_made_and_not_answered() {
    let server = TestServer::start(ServerOptions::default());
    let mut peer = server.connect();
    peer.send(&[oneway("fail", 1, &[0]), oneway("echo", 2, &[0]), oneway("nonsense", 3, &[0]), call("echo", 4, &[0])].concat());
    assert_eq!(peer.reply(), reply("echo", 4, &[0]));
    assert_eq!(*server.service.begun.lock().unwrap(), ["fail", "echo", "nonsense", "echo"]);
}

//! Stock consumers of every dialect are found, called and remembered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

mod endpoint_support;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use endpoint_support::{Consumer, DIALECTS, Handler, PATIENCE, Stock, batch, options};
use hqueue_protocol::endpoint::{CallError, EndpointCaller, EndpointMemory};
use hqueue_protocol::generated::HQueueSubscriberServiceSyncProcessor;
use hqueue_protocol::wire::{Dialect, Protocol, Transport};
use thrift::protocol::{
    TBinaryInputProtocolFactory, TBinaryOutputProtocolFactory, TCompactInputProtocolFactory, TCompactOutputProtocolFactory,
    TInputProtocolFactory, TOutputProtocolFactory,
};
use thrift::server::TServer;
use thrift::transport::{
    TBufferedReadTransportFactory, TBufferedWriteTransportFactory, TFramedReadTransportFactory, TFramedWriteTransportFactory,
    TReadTransportFactory, TWriteTransportFactory,
};

/// The library's own threaded server.
fn start_tserver(dialect: Dialect, consumer: Arc<Consumer>) -> SocketAddr {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::thread::spawn(move || {
        let (i, o): (Box<dyn TInputProtocolFactory + Send>, Box<dyn TOutputProtocolFactory + Send>) = match dialect.protocol {
            Protocol::Binary => (Box::new(TBinaryInputProtocolFactory::new()), Box::new(TBinaryOutputProtocolFactory::new())),
            Protocol::Compact => (Box::new(TCompactInputProtocolFactory::new()), Box::new(TCompactOutputProtocolFactory::new())),
        };
        let (r, w): (Box<dyn TReadTransportFactory + Send>, Box<dyn TWriteTransportFactory + Send>) = match dialect.transport {
            Transport::Buffered => {
                (Box::new(TBufferedReadTransportFactory::new()), Box::new(TBufferedWriteTransportFactory::new()))
            }
            Transport::Framed => (Box::new(TFramedReadTransportFactory::new()), Box::new(TFramedWriteTransportFactory::new())),
        };
        let processor = HQueueSubscriberServiceSyncProcessor::new(Handler(consumer));
        let _ = TServer::new(r, i, w, o, processor, 4).listen(address);
    });
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    address
}

#[tokio::test]
async fn the_stock_server_of_each_dialect_gets_the_messages_as_they_are_stored() {
    for dialect in DIALECTS {
        let consumer = Arc::new(Consumer::default());
        let address = start_tserver(dialect, consumer.clone());
        let memory = Arc::new(EndpointMemory::default());
        let mut caller = EndpointCaller::new(options(address), memory.clone());
        consumer.returns.store(3, Ordering::SeqCst);
        assert_eq!(caller.consume(&batch(5, 1000)).await, Ok(3), "{dialect:?}");
        assert_eq!(memory.dialect(), Some(dialect));
        consumer.returns.store(-2, Ordering::SeqCst);
        assert_eq!(caller.consume(&[batch(3, 0), batch(900, 1000)].concat()).await, Ok(-2));
        *consumer.throws.lock().unwrap() = Some("no more".to_owned());
        let thrown = caller.consume(&batch(1, 10)).await.unwrap_err();
        assert!(thrown.is_answer() && thrown.to_string().contains("no more"), "{thrown}");

        let calls = consumer.calls.lock().unwrap();
        let counts: Vec<_> = calls.iter().map(Vec::len).filter(|count| *count > 0).collect();
        assert_eq!(counts, [5, 903, 1], "{dialect:?}");
        let message = &calls.iter().find(|call| call.len() == 903).unwrap()[3 + 300];
        let id = message.id.as_ref().unwrap();
        assert_eq!((id.timestamp, id.sequence_i_d), (Some(1_700_000_000_000), Some(301)));
        assert_eq!(message.partition_i_d, Some(7));
        assert_eq!(message.topic.as_deref(), Some(&b"topic-300"[..]));
        assert_eq!(message.value.as_deref(), Some(&[44; 1000][..]));
        assert_eq!(message.headers.as_ref().unwrap()["kind"], b"test");
    }
}

#[tokio::test]
async fn what_one_caller_has_found_another_need_not_find() {
    for (dialect, connections) in DIALECTS.into_iter().zip(1..) {
        let stock = Stock::start(dialect);
        let memory = Arc::new(EndpointMemory::default());
        let mut one = EndpointCaller::new(options(stock.address), memory.clone());
        assert_eq!(one.consume(&[]).await, Ok(0));
        assert_eq!(stock.fake.accepted(), connections, "{dialect:?} is the number {connections} in the order");
        assert_eq!(one.consume(&[]).await, Ok(0));
        assert_eq!(EndpointCaller::new(options(stock.address), memory).consume(&[]).await, Ok(0));
        assert_eq!(stock.fake.accepted(), connections + 1);
        // The detection's answer is the answer to the first empty call.
        assert_eq!(stock.consumer.calls.lock().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn what_the_options_say_is_not_asked() {
    for dialect in DIALECTS {
        let stock = Stock::start(dialect);
        let mut given = options(stock.address);
        given.transport = Some(dialect.transport);
        given.protocol = Some(dialect.protocol);
        let mut caller = EndpointCaller::new(given, Arc::default());
        assert_eq!(caller.consume(&batch(2, 10)).await, Ok(0));
        assert_eq!((stock.fake.accepted(), stock.consumer.calls.lock().unwrap().len()), (1, 1));

        let mut half = options(stock.address);
        half.protocol = Some(dialect.protocol);
        let mut caller = EndpointCaller::new(half, Arc::default());
        assert_eq!(caller.consume(&batch(2, 10)).await, Ok(0));
        let tried = if dialect.transport == Transport::Framed { 2 } else { 1 };
        assert_eq!(stock.fake.accepted(), 1 + tried);
    }
}

#[tokio::test]
async fn an_exception_is_an_answer_to_the_detection() {
    let stock = Stock::start(DIALECTS[1]);
    *stock.consumer.throws.lock().unwrap() = Some("empty lists are not welcome".to_owned());
    let memory = Arc::new(EndpointMemory::default());
    let mut caller = EndpointCaller::new(options(stock.address), memory.clone());
    let answer = caller.consume(&[]).await.unwrap_err();
    assert!(answer.is_answer(), "{answer}");
    assert_eq!(memory.dialect(), Some(DIALECTS[1]));
    *stock.consumer.throws.lock().unwrap() = None;
    assert_eq!(caller.consume(&batch(1, 1)).await, Ok(0));
}

#[tokio::test]
async fn another_dialect_under_the_same_address_is_found_anew() {
    let stock = Stock::start(DIALECTS[0]);
    let memory = Arc::new(EndpointMemory::default());
    let mut caller = EndpointCaller::new(options(stock.address), memory.clone());
    for dialect in [0, 3, 2, 1, 0].map(|i| DIALECTS[i]) {
        *stock.dialect.lock().unwrap() = dialect;
        stock.fake.close_all();
        let began = Instant::now();
        // Calls end without an answer until an empty one has found the new dialect.
        while caller.consume(&[]).await.is_err() {
            assert!(began.elapsed() < PATIENCE, "{dialect:?}");
        }
        assert_eq!(memory.dialect(), Some(dialect));
        assert_eq!(caller.consume(&batch(2, 10)).await, Ok(0));
    }
}

#[tokio::test]
async fn a_server_of_no_dialect_is_told_apart_from_one_that_is_away() {
    let silent = endpoint_support::Fake::start(|number, stream| {
        if number % 2 == 0 {
            endpoint_support::hang(&stream)
        }
    });
    let mut options = options(silent.address);
    options.detect_timeout = Duration::from_millis(100);
    let error = EndpointCaller::new(options, Arc::default()).consume(&batch(1, 1)).await.unwrap_err();
    let CallError::Undetected { tried, .. } = &error else { panic!("{error}") };
    let parts: Vec<_> = tried.split("; ").collect();
    assert_eq!(parts.len(), 4, "{tried}");
    assert_eq!(parts[0], "buffered binary: no answer within 100ms");
    assert!(!error.is_connect() && !error.is_answer());
}

//! Consumers to be called: on the stock library, and scripted ones.
#![allow(dead_code, unreachable_pub, missing_debug_implementations, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hqueue_protocol::endpoint::{EndpointCaller, EndpointMemory, EndpointOptions};
use hqueue_protocol::generated::{HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TMessage};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredSlice};
use hqueue_protocol::wire::{Delimiter, Dialect, MessageHeader, MessageType, Progress, Protocol, Transport, header};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol, TOutputProtocol,
};
use thrift::server::TProcessor;
use thrift::transport::{
    TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport, TReadTransport, TWriteTransport,
};

/// Longer than anything a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub const DIALECTS: [Dialect; 4] = [
    Dialect { transport: Transport::Buffered, protocol: Protocol::Binary },
    Dialect { transport: Transport::Framed, protocol: Protocol::Binary },
    Dialect { transport: Transport::Buffered, protocol: Protocol::Compact },
    Dialect { transport: Transport::Framed, protocol: Protocol::Compact },
];

/// Notes what it is given and returns what it is told to.
#[derive(Default)]
pub struct Consumer {
    pub calls: Mutex<Vec<Vec<TMessage>>>,
    pub returns: AtomicI32,
    /// Answers with an exception.
    pub throws: Mutex<Option<String>>,
}

pub struct Handler(pub Arc<Consumer>);

impl HQueueSubscriberServiceSyncHandler for Handler {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        self.0.calls.lock().unwrap().push(messages);
        match self.0.throws.lock().unwrap().clone() {
            Some(text) => Err(text.into()),
            None => Ok(self.0.returns.load(Ordering::SeqCst)),
        }
    }
}

/// A consumer on the stock library whose dialect can change.
pub struct Stock {
    pub address: SocketAddr,
    pub consumer: Arc<Consumer>,
    pub dialect: Arc<Mutex<Dialect>>,
    pub fake: Fake,
}

impl Stock {
    pub fn start(dialect: Dialect) -> Self {
        let consumer = Arc::new(Consumer::default());
        let dialect = Arc::new(Mutex::new(dialect));
        let (spoken, called) = (dialect.clone(), consumer.clone());
        let fake = Fake::start(move |_, stream| {
            let spoken = *spoken.lock().unwrap();
            serve_stock(spoken, stream, called.clone());
        });
        Self { address: fake.address, consumer, dialect, fake }
    }
}

fn serve_stock(dialect: Dialect, stream: TcpStream, consumer: Arc<Consumer>) {
    let (r, w) = (stream.try_clone().unwrap(), stream);
    let (r, w): (Box<dyn TReadTransport>, Box<dyn TWriteTransport>) = match dialect.transport {
        Transport::Buffered => (Box::new(TBufferedReadTransport::new(r)), Box::new(TBufferedWriteTransport::new(w))),
        Transport::Framed => (Box::new(TFramedReadTransport::new(r)), Box::new(TFramedWriteTransport::new(w))),
    };
    let (mut i, mut o): (Box<dyn TInputProtocol>, Box<dyn TOutputProtocol>) = match dialect.protocol {
        Protocol::Binary => (Box::new(TBinaryInputProtocol::new(r, true)), Box::new(TBinaryOutputProtocol::new(w, true))),
        Protocol::Compact => (Box::new(TCompactInputProtocol::new(r)), Box::new(TCompactOutputProtocol::new(w))),
    };
    let processor = HQueueSubscriberServiceSyncProcessor::new(Handler(consumer));
    while processor.process(&mut *i, &mut *o).is_ok() {}
}

/// A server whose connections are scripted; each has a thread.
pub struct Fake {
    pub address: SocketAddr,
    pub accepted: Arc<AtomicUsize>,
    open: Arc<Mutex<HashMap<usize, TcpStream>>>,
}

impl Fake {
    /// `script` is given the connection's number, from 0, and closes the connection when it returns.
    pub fn start(script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    pub fn on(listener: TcpListener, script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().unwrap();
        let (accepted, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(HashMap::new())));
        let script = Arc::new(script);
        let (counter, streams) = (accepted.clone(), open.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                stream.set_nodelay(true).unwrap();
                let number = counter.fetch_add(1, Ordering::SeqCst);
                streams.lock().unwrap().insert(number, stream.try_clone().unwrap());
                let (script, streams) = (script.clone(), streams.clone());
                std::thread::spawn(move || {
                    script(number, stream);
                    streams.lock().unwrap().remove(&number);
                });
            }
        });
        Self { address, accepted, open }
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Waits until every script has ended.
    pub fn wait_until_closed(&self) {
        let began = Instant::now();
        while !self.open.lock().unwrap().is_empty() {
            assert!(began.elapsed() < PATIENCE, "a script goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes every connection there is.
    pub fn close_all(&self) {
        for stream in self.open.lock().unwrap().values() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Reads a call in buffered binary; `None` when the caller has closed. Returns its sequence id and how many bytes it had.
pub fn read_call(stream: &mut TcpStream) -> Option<(i32, usize)> {
    let mut bytes = Vec::new();
    let mut delimiter = Delimiter::new(Protocol::Binary, 1 << 30);
    let mut chunk = vec![0; 1 << 16];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
        }
        if let Progress::Complete(size) = delimiter.advance(&bytes).ok()? {
            let (header, _) = header::read(Protocol::Binary, &bytes).ok()?;
            return Some((header.sequence, size));
        }
    }
}

/// A reply in buffered binary.
pub fn reply(sequence: i32, value: i32) -> Vec<u8> {
    let result = [&[0x08, 0, 0][..], &value.to_be_bytes(), &[0]].concat();
    message(MessageType::Reply, sequence, &result)
}

pub fn message(message_type: MessageType, sequence: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header::write(&mut out, Protocol::Binary, &MessageHeader { method: b"consumeMessages", message_type, sequence });
    out.extend_from_slice(body);
    out
}

/// Answers every call with `value` until the caller leaves.
pub fn answer_all(stream: &mut TcpStream, value: i32) {
    while let Some((sequence, _)) = read_call(stream) {
        if stream.write_all(&reply(sequence, value)).is_err() {
            return;
        }
    }
}

/// Keeps a connection open without reading it until the other side has closed.
pub fn hang(stream: &TcpStream) {
    let began = Instant::now();
    stream.set_nonblocking(true).unwrap();
    let mut byte = [0];
    while began.elapsed() < PATIENCE && !matches!(stream.peek(&mut byte), Ok(0)) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `count` messages with values of `size` bytes, with headers in every third.
pub fn batch(count: usize, size: usize) -> Vec<StoredSlice> {
    let mut put = PutBatch::default();
    for i in 0..count {
        let headers: &[(&str, &[u8])] = if i % 3 == 0 { &[("kind", b"test")] } else { &[] };
        put.push(format!("topic-{i}").as_bytes(), &vec![i as u8; size], headers);
    }
    let mut id = MessageId::new(1_700_000_000_000, 0);
    let next = || {
        id = id.successor();
        id
    };
    put.seal(7, next).into_iter().collect()
}

pub fn options(address: SocketAddr) -> EndpointOptions {
    EndpointOptions::new(address.to_string())
}

/// A caller that need not find out the dialect of a scripted server.
pub fn plain_caller(address: SocketAddr, call_timeout: Duration) -> EndpointCaller {
    let mut options = options(address);
    options.transport = Some(Transport::Buffered);
    options.protocol = Some(Protocol::Binary);
    options.call_timeout = call_timeout;
    EndpointCaller::new(options, Arc::new(EndpointMemory::default()))
}

//! A server with a small service, and peers that speak to it in raw bytes.
#![allow(dead_code, unreachable_pub, missing_debug_implementations, reason = "each test uses a part of it")]

pub mod logs;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hqueue_protocol::generated::{HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TMessage};
use hqueue_protocol::server::{Call, Reply, ReplyFuture, Server, ServerCounters, ServerOptions, Service, Stopped};
use hqueue_protocol::wire::{MessageHeader, MessageType, Protocol, header};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol, TInputProtocol, TOutputProtocol,
};
use thrift::server::TProcessor;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// Longer than anything a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// `echo` and `alone` answer with their arguments, `hold` does so when the test lets it, `big` with as many bytes as the test has set,
/// `consumeMessages` with the number of messages. `alone` does not overlap. `wait` is a `hold` that answers with an empty struct when it
/// is told to hurry.
#[derive(Debug)]
pub struct TestService {
    /// One permit for each `hold` that may end.
    pub release: Semaphore,
    /// Methods in the order in which their calls began.
    pub begun: Mutex<Vec<String>>,
    pub big: Bytes,
}

#[derive(Debug)]
struct Shared(Arc<TestService>);

impl Service for Shared {
    fn overlaps(&self, method: &[u8]) -> bool {
        method != b"alone"
    }

    fn waits(&self, method: &[u8]) -> bool {
        method == b"wait"
    }

    fn call(&self, call: Call) -> ReplyFuture {
        let service = self.0.clone();
        service.begun.lock().unwrap().push(String::from_utf8(call.method.to_vec()).unwrap());
        Box::pin(async move {
            match &call.method[..] {
                b"echo" | b"alone" => Reply::Result(vec![call.args]),
                b"hold" => {
                    service.release.acquire().await.unwrap().forget();
                    Reply::Result(vec![call.args])
                }
                b"wait" => tokio::select! {
                    biased;
                    permit = service.release.acquire() => {
                        permit.unwrap().forget();
                        Reply::Result(vec![call.args])
                    }
                    () = call.hurry.told() => Reply::Result(vec![Bytes::from_static(&[0])]),
                },
                b"big" => Reply::Result(big_result(&service.big)),
                b"fail" => Reply::Failed("it failed".to_owned()),
                b"panic" => panic!("as the test wants it"),
                b"consumeMessages" => stock_reply(&call),
                _ => Reply::UnknownMethod,
            }
        })
    }
}

/// A struct with a binary field 1, in pieces.
fn big_result(body: &Bytes) -> Vec<Bytes> {
    let size = body.len();
    let mut pieces = vec![Bytes::from([&[0x0b, 0, 1][..], &(size as u32).to_be_bytes()].concat())];
    pieces.extend((0..size).step_by(1000).map(|at| body.slice(at..size.min(at + 1000))));
    pieces.push(Bytes::from_static(&[0]));
    pieces
}

pub fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

struct Counting;

impl HQueueSubscriberServiceSyncHandler for Counting {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        Ok(messages.len() as i32)
    }
}

/// Lets the stock generated code answer.
fn stock_reply(call: &Call) -> Reply {
    let mut request = Vec::new();
    let head = MessageHeader { method: &call.method, message_type: MessageType::Call, sequence: 1 };
    header::write(&mut request, call.protocol, &head);
    request.extend_from_slice(&call.args);
    let mut reply = Vec::new();
    {
        let (mut input, mut output): (Box<dyn TInputProtocol>, Box<dyn TOutputProtocol>) = match call.protocol {
            Protocol::Binary => {
                (Box::new(TBinaryInputProtocol::new(&request[..], true)), Box::new(TBinaryOutputProtocol::new(&mut reply, true)))
            }
            Protocol::Compact => {
                (Box::new(TCompactInputProtocol::new(&request[..])), Box::new(TCompactOutputProtocol::new(&mut reply)))
            }
        };
        let done = HQueueSubscriberServiceSyncProcessor::new(Counting).process(&mut *input, &mut *output);
        if let Err(error) = done {
            return Reply::BadArguments(error.to_string());
        }
    }
    let (_, end) = header::read(call.protocol, &reply).unwrap();
    Reply::Result(vec![Bytes::from(reply).slice(end..)])
}

/// A server on a port of its own, stopped when it is dropped.
pub struct TestServer {
    pub address: SocketAddr,
    pub service: Arc<TestService>,
    pub counters: Arc<ServerCounters>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<Stopped>>,
    pub runtime: Runtime,
}

impl TestServer {
    pub fn start(options: ServerOptions) -> Self {
        Self::with_big(options, 0)
    }

    /// `big` answers with so many bytes, through a small send buffer.
    pub fn with_big(options: ServerOptions, big: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let service = Arc::new(TestService { release: Semaphore::new(0), begun: Mutex::default(), big: pattern(big).into() });
        let server = Server::new(options, Arc::new(Shared(service.clone()))).unwrap();
        let counters = server.counters();
        let listener: TcpListener = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            if big > 0 {
                socket.set_send_buffer_size(4096).unwrap();
            }
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            socket.listen(1024).unwrap()
        });
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = runtime.spawn(server.run(listener, async { stopped.await.unwrap_or(()) }));
        Self { address, service, counters, stop: Some(stop), running: Some(running), runtime }
    }

    pub fn connect(&self) -> Peer {
        Peer::new(TcpStream::connect(self.address).unwrap())
    }

    /// Tells it to stop; `None` once that was done.
    pub fn begin_stop(&mut self) -> Option<JoinHandle<Stopped>> {
        drop(self.stop.take());
        self.running.take()
    }

    pub fn stop(&mut self) -> Stopped {
        let running = self.begin_stop().unwrap();
        self.runtime.block_on(running).unwrap()
    }

    pub fn is_serving(&self) -> bool {
        let mut peer = self.connect();
        peer.send(&call("echo", 5, &[0]));
        peer.reply() == reply("echo", 5, &[0])
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.begin_stop()
            && !std::thread::panicking()
        {
            self.runtime.block_on(running).unwrap();
        }
    }
}

/// A peer in raw bytes.
pub struct Peer {
    pub stream: TcpStream,
}

impl Peer {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next whole message of the buffered binary dialect.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        let mut delimiter = hqueue_protocol::wire::Delimiter::new(Protocol::Binary, 1 << 30);
        loop {
            let mut byte = [0];
            assert_eq!(self.stream.read(&mut byte).unwrap(), 1, "closed in the middle of a reply");
            message.push(byte[0]);
            if let hqueue_protocol::wire::Progress::Complete(_) = delimiter.advance(&message).unwrap() {
                return message;
            }
        }
    }

    pub fn exact(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Everything up to the close of the other side, which this side answers by its own: a peer that reads a refusal.
    pub fn until_closed_half(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        self.stream.read_to_end(&mut all).unwrap();
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
        all
    }

    /// Everything up to the close, however that comes about.
    pub fn until_closed(&mut self) -> Vec<u8> {
        let began = Instant::now();
        let mut all = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return all,
                Ok(n) => all.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
                Err(error) => panic!("not closed within {:?}: {error}", began.elapsed()),
            }
        }
    }
}

fn message(method: &str, message_type: MessageType, sequence: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let head = MessageHeader { method: method.as_bytes(), message_type, sequence };
    header::write(&mut out, Protocol::Binary, &head);
    out.extend_from_slice(body);
    out
}

/// A call in buffered binary; `args` is an encoded struct.
pub fn call(method: &str, sequence: i32, args: &[u8]) -> Vec<u8> {
    message(method, MessageType::Call, sequence, args)
}

pub fn oneway(method: &str, sequence: i32, args: &[u8]) -> Vec<u8> {
    message(method, MessageType::Oneway, sequence, args)
}

pub fn reply(method: &str, sequence: i32, result: &[u8]) -> Vec<u8> {
    message(method, MessageType::Reply, sequence, result)
}

/// A `TApplicationException` in buffered binary.
pub fn exception(method: &str, sequence: i32, kind: i32, text: &str) -> Vec<u8> {
    let mut body = vec![0x0b, 0, 1];
    body.extend_from_slice(&(text.len() as u32).to_be_bytes());
    body.extend_from_slice(text.as_bytes());
    body.extend_from_slice(&[0x08, 0, 2]);
    body.extend_from_slice(&kind.to_be_bytes());
    body.push(0);
    message(method, MessageType::Exception, sequence, &body)
}

pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

/// A struct with a binary field 1.
pub fn bytes_struct(bytes: &[u8]) -> Vec<u8> {
    [&[0x0b, 0, 1][..], &(bytes.len() as u32).to_be_bytes(), bytes, &[0]].concat()
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

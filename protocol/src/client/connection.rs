//! One connection: a task that owns the socket, writes calls in order and hands each reply to its call.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::frame::{self, Arrived};
use super::{ClientError, MAX_OUTSTANDING};

/// Arguments up to this size are copied next to their header so that several calls leave in one write; larger ones are not copied.
const COPIED_ARGS: usize = 16 * 1024;
/// With less room than this for what arrives next, more is made: [`READ_ROOM`] or what a frame needs.
const READ_ROOM_LOW: usize = 4 * 1024;
const READ_ROOM: usize = 32 * 1024;
/// Room is made for at most so many bytes of a frame before they have arrived.
const READ_ROOM_MAX: usize = 1024 * 1024;

type ReplySender = oneshot::Sender<Result<Bytes, ClientError>>;
pub(super) type ReplyReceiver = oneshot::Receiver<Result<Bytes, ClientError>>;

/// A call on its way to the socket.
struct Request {
    method: &'static str,
    args: Bytes,
    reply: ReplySender,
    permit: OwnedSemaphorePermit,
}

/// A call that was written, or is being written.
struct Outstanding {
    sequence: i32,
    reply: ReplySender,
    /// Given back when the reply is there, also if nobody waits for it any more.
    _permit: OwnedSemaphorePermit,
}

/// A connection that works until something goes wrong with it, and then never again.
#[derive(Debug)]
pub(super) struct Connection {
    address: String,
    local: SocketAddr,
    requests: mpsc::Sender<Request>,
    permits: Arc<Semaphore>,
    given_up: Arc<Notify>,
    is_given_up: AtomicBool,
    task: JoinHandle<()>,
}

impl Connection {
    pub(super) async fn open(address: &str, max_reply: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        let (requests, receiver) = mpsc::channel(MAX_OUTSTANDING);
        let given_up = Arc::new(Notify::new());
        let task = Task { address: address.to_owned(), max_reply, outstanding: Mutex::default() };
        let task = tokio::spawn(task.run(stream, receiver, Arc::clone(&given_up)));
        let permits = Arc::new(Semaphore::new(MAX_OUTSTANDING));
        Ok(Self { address: address.to_owned(), local, requests, permits, given_up, is_given_up: AtomicBool::new(false), task })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Our end of it.
    pub(super) const fn local(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn is_broken(&self) -> bool {
        self.requests.is_closed() || self.is_given_up.load(Ordering::Relaxed)
    }

    /// Ends the connection, because a call had no reply in time: every call that waits on it fails. Returns that call's error.
    pub(super) fn timed_out(&self, after: Duration) -> ClientError {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.given_up.notify_one();
        ClientError::Timeout { address: self.address.clone(), after }
    }

    /// Queues a call behind those that were started before. Calls leave in the order in which this returned.
    pub(super) async fn start(&self, method: &'static str, args: Bytes) -> Result<ReplyReceiver, ClientError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| self.unsent())?;
        let (reply, receiver) = oneshot::channel();
        self.requests.send(Request { method, args, reply, permit }).await.map_err(|_| self.unsent())?;
        Ok(receiver)
    }

    fn unsent(&self) -> ClientError {
        ClientError::Lost { address: self.address.clone(), reason: "it was closed".to_owned(), sent: false }
    }

    /// Waits for a reply. A dropped future leaves the connection whole: the reply is read and forgotten.
    pub(super) async fn reply(&self, receiver: ReplyReceiver) -> Result<Bytes, ClientError> {
        receiver.await.unwrap_or_else(|_| {
            // Only when the task was torn down with its runtime.
            Err(ClientError::Lost { address: self.address.clone(), reason: "the client ended".to_owned(), sent: true })
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Task {
    address: String,
    max_reply: usize,
    /// In the order in which they were written, which is the order of the replies. Never locked across an await.
    outstanding: Mutex<VecDeque<Outstanding>>,
}

/// What ended a connection.
enum End {
    Io(io::Error),
    Closed,
    Bad(String),
}

impl Task {
    async fn run(self, mut stream: TcpStream, mut requests: mpsc::Receiver<Request>, given_up: Arc<Notify>) {
        let (reader, writer) = stream.split();
        let end = tokio::select! {
            biased;
            () = given_up.notified() => End::Bad("it was given up after another call had timed out".to_owned()),
            end = self.read_replies(reader) => end,
            end = self.write_requests(writer, &mut requests) => end,
        };
        let reason = match end {
            End::Io(error) => error.to_string(),
            End::Closed => "the broker closed it".to_owned(),
            End::Bad(reason) => reason,
        };
        let lost = |sent| ClientError::Lost { address: self.address.clone(), reason: reason.clone(), sent };
        for call in self.lock().drain(..) {
            let _ = call.reply.send(Err(lost(true)));
        }
        requests.close();
        while let Some(request) = requests.recv().await {
            let _ = request.reply.send(Err(lost(false)));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Outstanding>> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_requests(&self, mut writer: WriteHalf<'_>, requests: &mut mpsc::Receiver<Request>) -> End {
        let (mut out, mut sequence) = (BytesMut::new(), 0i32);
        while let Some(first) = requests.recv().await {
            let mut next = Some(first);
            while let Some(Request { method, args, reply, permit }) = next {
                sequence = sequence.wrapping_add(1);
                self.lock().push_back(Outstanding { sequence, reply, _permit: permit });
                frame::put_call_header(&mut out, method, sequence, args.len());
                if args.len() <= COPIED_ARGS {
                    out.extend_from_slice(&args);
                } else {
                    let mut both = bytes::Buf::chain(&mut out, args);
                    if let Err(error) = writer.write_all_buf(&mut both).await {
                        return End::Io(error);
                    }
                    out.clear();
                }
                next = if out.len() < COPIED_ARGS { requests.try_recv().ok() } else { None };
            }
            if let Err(error) = writer.write_all_buf(&mut out).await {
                return End::Io(error);
            }
            out.clear();
        }
        End::Closed
    }

    async fn read_replies(&self, mut reader: ReadHalf<'_>) -> End {
        let mut arrived = BytesMut::new();
        loop {
            match frame::take_frame(&mut arrived, self.max_reply) {
                Arrived::Frame(frame) => {
                    if let Err(reason) = self.hand_over(&frame) {
                        return End::Bad(reason);
                    }
                }
                Arrived::TooLong(length) => return End::Bad(self.too_long(length, &arrived)),
                Arrived::Needs(more) => {
                    // A length that was announced takes no memory before the bytes are there.
                    if arrived.capacity() - arrived.len() < more.clamp(READ_ROOM_LOW, READ_ROOM_MAX) {
                        arrived.reserve(more.clamp(READ_ROOM, READ_ROOM_MAX));
                    }
                    match reader.read_buf(&mut arrived).await {
                        Ok(0) => return End::Closed,
                        Ok(_) => {}
                        Err(error) => return End::Io(error),
                    }
                }
            }
        }
    }

    /// Text where a length belongs is somebody else's protocol.
    fn too_long(&self, length: usize, begin: &[u8]) -> String {
        match begin.get(..4).and_then(|b| std::str::from_utf8(b).ok()).filter(|t| t.bytes().all(|b| b.is_ascii_graphic())) {
            Some(text) => format!("what came begins with {text:?}, this is no broker"),
            None => format!("a reply of {length} bytes is above the limit of {}", self.max_reply),
        }
    }

    /// Gives a reply to the call that has waited longest. An error ends the connection.
    fn hand_over(&self, frame: &Bytes) -> Result<(), String> {
        let reply = frame::read_reply(frame).map_err(|e| format!("what came is no reply: {e}"))?;
        let call = self.lock().pop_front().ok_or("a reply came that no call waits for")?;
        if call.sequence != reply.sequence {
            let reason = format!("the reply to call {} came in place of that to {}", reply.sequence, call.sequence);
            self.lock().push_front(call);
            return Err(reason);
        }
        let result = if reply.is_exception {
            let reason = frame::exception_text(&reply.body).map_err(|e| format!("an exception cannot be read: {e}"))?;
            Err(ClientError::Exception { address: self.address.clone(), reason })
        } else {
            Ok(reply.body)
        };
        // Nobody may wait any more: then the reply is dropped.
        let _ = call.reply.send(result);
        Ok(())
    }
}

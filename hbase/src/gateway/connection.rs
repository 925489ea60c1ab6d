//! One connection to a gateway, for one call at a time.
//!
//! The transport is Thrift's buffered one, which is what a gateway speaks unless it is told otherwise: only the structure of an answer
//! says where it ends. With the framed one (`-f`), HBase 2.6 takes the whole frame for each split key and attribute of a table that it
//! is to make: lists and maps of bytes are read as views of the frame, and it uses what they are views of.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hqueue_protocol::wire::binary::{self, Binary};
use hqueue_protocol::wire::header::{self, MessageHeader, MessageType};
use hqueue_protocol::wire::{Delimiter, Encoding, Kind, Progress, Protocol, WireError, skip};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Room that is made for what arrives, at least and at most ahead of what has arrived.
const ROOM: usize = 64 << 10;
const ROOM_MAX: usize = 1 << 20;

/// Why a call has no answer on this connection, which is not to be used again, but after an exception.
#[derive(Debug)]
pub(super) enum CallError {
    /// The connection ended, or the answer is none.
    Broken(String),
    /// A `TApplicationException`: the method is unknown, or failed by a fault of the gateway.
    Exception(String),
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    sequence: i32,
    max_reply_bytes: usize,
}

impl Connection {
    pub(super) async fn open(address: &str, patience: Duration, max_reply_bytes: usize) -> io::Result<Self> {
        let connected = timeout(patience, TcpStream::connect(address)).await;
        let stream =
            connected.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {patience:?}")))??;
        stream.set_nodelay(true)?;
        Ok(Self { stream, sequence: 0, max_reply_bytes })
    }

    /// It was idle: has the gateway closed it meanwhile? Whatever has come unasked is as bad.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Not safe to drop: the connection is of no use then.
    pub(super) async fn call(&mut self, method: &str, args: &[u8]) -> Result<Bytes, CallError> {
        let broken = |error: io::Error| CallError::Broken(error.to_string());
        self.sequence = self.sequence.wrapping_add(1);
        let mut head = Vec::with_capacity(64);
        let call = MessageHeader { method: method.as_bytes(), message_type: MessageType::Call, sequence: self.sequence };
        header::write(&mut head, Protocol::Binary, &call);
        let mut both = bytes::Buf::chain(&head[..], args);
        self.stream.write_all_buf(&mut both).await.map_err(broken)?;
        let reply = self.reply().await?;
        let (found, at) = header::read(Protocol::Binary, &reply).map_err(|error| CallError::Broken(error.to_string()))?;
        if found.sequence != self.sequence {
            return Err(CallError::Broken(format!("the answer to call {} came in place of {}", found.sequence, self.sequence)));
        }
        match found.message_type {
            MessageType::Reply => Ok(reply.slice(at..)),
            _ => Err(CallError::Exception(exception(&reply, at).unwrap_or_else(|error| error.to_string()))),
        }
    }

    async fn reply(&mut self) -> Result<Bytes, CallError> {
        let mut arrived = BytesMut::with_capacity(ROOM);
        let mut delimiter = Delimiter::new(Protocol::Binary, self.max_reply_bytes);
        loop {
            let read = self.stream.read_buf(&mut arrived).await.map_err(|error| CallError::Broken(error.to_string()))?;
            if read == 0 {
                return Err(CallError::Broken("the gateway closed the connection".to_owned()));
            }
            match delimiter.advance(&arrived).map_err(|error| CallError::Broken(format!("what came is no answer: {error}")))? {
                Progress::Complete(length) if length == arrived.len() => return Ok(arrived.freeze()),
                Progress::Complete(length) => {
                    return Err(CallError::Broken(format!("{} bytes stand behind the answer", arrived.len() - length)));
                }
                // A length that was announced takes no memory before the bytes are there.
                Progress::NeedMore { at_least } => {
                    let missing = at_least.saturating_sub(arrived.len());
                    if arrived.capacity() - arrived.len() < missing.clamp(1, ROOM) {
                        arrived.reserve(missing.clamp(arrived.len().clamp(ROOM, ROOM_MAX), ROOM_MAX));
                    }
                }
            }
        }
    }
}

/// The text of a `TApplicationException` that begins at `at`.
fn exception(reply: &[u8], mut at: usize) -> Result<String, WireError> {
    let mut text = String::new();
    while let Some(field) = Binary::field(reply, &mut at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::String) => text = String::from_utf8_lossy(binary::read_bytes(reply, &mut at)?).into_owned(),
            (_, kind) => skip::<Binary>(reply, &mut at, kind, 1)?,
        }
    }
    Ok(text)
}

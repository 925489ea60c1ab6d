//! Cuts what a peer has sent into requests.

use bytes::{Bytes, BytesMut};

use crate::wire::{
    Delimiter, Detection, Dialect, Foreign, MessageType, Progress, Protocol, Transport, WireError, detect, frame, header,
};

/// What the reply repeats of its request.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Copied, so that it does not keep the request's bytes in memory.
    pub(super) method: Bytes,
    pub(super) sequence: i32,
    /// Wants no reply.
    pub(super) oneway: bool,
}

/// A request, whole and well-formed.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: Head,
    pub(super) args: Bytes,
}

/// What stands at the beginning of the bytes that arrived.
#[derive(Debug)]
pub(super) enum Cut {
    Request(Request),
    /// Nothing whole yet.
    NeedMore,
    /// No Thrift.
    Foreign(Foreign),
    /// Thrift that is not taken, as the reply says if it can be addressed. Nothing behind it makes sense.
    Refused {
        head: Option<Head>,
        reason: String,
    },
}

/// Bytes of a peer that were not handed on yet.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) buffer: BytesMut,
    dialect: Option<Dialect>,
    /// How far the message at the beginning of the buffer was stepped over.
    delimiter: Option<Delimiter>,
    /// Bytes that the buffer holds at least when the next request is whole.
    at_least: usize,
    /// Size of the last request: the next one is likely to need the room.
    usual: usize,
    max_bytes: usize,
}

/// Room for one read, in bytes, while nothing larger has arrived.
const READ_BYTES: usize = 8 << 10;
/// At most so much room for what the last request makes expect.
const USUAL_BYTES: usize = 256 << 10;
/// A frame so many times over the limit is taken for no frame at all; a smaller one is refused by a reply.
const ABSURD: usize = 8;

impl Input {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { buffer: BytesMut::new(), dialect: None, delimiter: None, at_least: 1, usual: 0, max_bytes }
    }

    /// `None` until the first bytes have told.
    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// How many bytes to make room for: no more than have arrived, whatever was announced.
    pub(super) fn room(&self) -> usize {
        let arrived = self.buffer.len().max(self.usual).max(READ_BYTES);
        self.at_least.saturating_sub(self.buffer.len()).clamp(READ_BYTES, arrived)
    }

    /// Gives the memory back while nothing is in it.
    pub(super) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// Forgets what has arrived: it makes no sense any more.
    pub(super) fn discard(&mut self) {
        self.buffer = BytesMut::new();
    }

    /// Takes the next request from the front.
    pub(super) fn cut(&mut self) -> Cut {
        if self.buffer.is_empty() {
            self.at_least = 1;
            return Cut::NeedMore;
        }
        let dialect = match self.dialect {
            Some(dialect) => dialect,
            None => match detect(&self.buffer, self.max_bytes.saturating_mul(ABSURD)) {
                Detection::Dialect(dialect) => *self.dialect.insert(dialect),
                Detection::NeedMore => return Cut::NeedMore,
                Detection::Foreign(foreign) => return Cut::Foreign(foreign),
            },
        };
        match dialect.transport {
            Transport::Buffered => self.cut_buffered(dialect.protocol),
            Transport::Framed => self.cut_framed(dialect.protocol),
        }
    }

    fn cut_buffered(&mut self, protocol: Protocol) -> Cut {
        match self.step(protocol, 0, usize::MAX) {
            Ok(Progress::Complete(size)) => self.take(protocol, 0, size),
            Ok(Progress::NeedMore { at_least }) => {
                self.at_least = at_least;
                Cut::NeedMore
            }
            Err(error) => refuse(protocol, &self.buffer, &error),
        }
    }

    fn cut_framed(&mut self, protocol: Protocol) -> Cut {
        let size = match frame::read_length(&self.buffer, self.max_bytes) {
            Ok(Some(size)) => size,
            Ok(None) => return Cut::NeedMore,
            Err(error) => return self.refuse_frame(protocol, &error),
        };
        let body = frame::LENGTH_BYTES;
        let arrived = self.buffer.len() - body;
        match self.step(protocol, body, size) {
            Ok(Progress::Complete(end)) if end == size => self.take(protocol, body, size),
            Ok(Progress::Complete(end)) => {
                self.refuse(protocol, format!("a frame of {size} bytes holds a message of {end} bytes"))
            }
            Ok(Progress::NeedMore { at_least }) if arrived >= size || at_least > size => {
                self.refuse(protocol, format!("the message is longer than its frame of {size} bytes"))
            }
            Ok(Progress::NeedMore { .. }) => {
                self.at_least = body + size;
                Cut::NeedMore
            }
            Err(error) => self.refuse(protocol, error.to_string()),
        }
    }

    /// Steps on over the message that begins at `from` and has at most `size` bytes.
    fn step(&mut self, protocol: Protocol, from: usize, size: usize) -> Result<Progress, WireError> {
        let delimiter = self.delimiter.get_or_insert_with(|| Delimiter::new(protocol, self.max_bytes));
        let end = from.saturating_add(size).min(self.buffer.len());
        delimiter.advance(self.buffer.get(from..end).unwrap_or_default())
    }

    fn take(&mut self, protocol: Protocol, from: usize, size: usize) -> Cut {
        self.delimiter = None;
        self.at_least = 1;
        self.usual = (from + size).min(USUAL_BYTES);
        let message = self.buffer.split_to(from + size).freeze().slice(from..);
        let (header, end) = match header::read(protocol, &message) {
            Ok(read) => read,
            Err(error) => return refuse(protocol, &message, &error),
        };
        if !matches!(header.message_type, MessageType::Call | MessageType::Oneway) {
            let reason = "a reply came where a call was due".to_owned();
            return Cut::Refused { head: head_of(protocol, &message), reason };
        }
        let head = Head {
            method: Bytes::copy_from_slice(header.method),
            sequence: header.sequence,
            oneway: header.message_type == MessageType::Oneway,
        };
        Cut::Request(Request { head, args: message.slice(end..) })
    }

    /// A frame of a size that is not taken. Its header comes first if it is only too large: the peer shall read why.
    fn refuse_frame(&self, protocol: Protocol, error: &WireError) -> Cut {
        let message = self.buffer.get(frame::LENGTH_BYTES..).unwrap_or_default();
        let header_may_come = matches!(error, WireError::TooLarge { size, limit } if size / ABSURD <= *limit);
        match header::read(protocol, message) {
            Err(WireError::Truncated) if header_may_come => Cut::NeedMore,
            _ => refuse(protocol, message, error),
        }
    }

    fn refuse(&self, protocol: Protocol, reason: String) -> Cut {
        let message = self.buffer.get(frame::LENGTH_BYTES..).unwrap_or_default();
        Cut::Refused { head: head_of(protocol, message), reason }
    }

    /// Whom a refusal goes to that has nothing to do with the bytes themselves.
    pub(super) fn head(&self) -> Option<Head> {
        let dialect = self.dialect?;
        let from = if dialect.transport == Transport::Framed { frame::LENGTH_BYTES } else { 0 };
        head_of(dialect.protocol, self.buffer.get(from..)?)
    }
}

fn refuse(protocol: Protocol, message: &[u8], error: &WireError) -> Cut {
    Cut::Refused { head: head_of(protocol, message), reason: error.to_string() }
}

fn head_of(protocol: Protocol, message: &[u8]) -> Option<Head> {
    let (header, _) = header::read(protocol, message).ok()?;
    let oneway = header.message_type == MessageType::Oneway;
    Some(Head { method: Bytes::copy_from_slice(header.method), sequence: header.sequence, oneway })
}

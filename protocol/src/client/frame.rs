//! The bytes around arguments and results.
//!
//! ```text
//! bytes        what
//! 4            length of the frame behind these four
//! 80 01 00 k   version 1; kind 1: call, 2: reply, 3: exception
//! 4 + name     the method
//! 4            sequence number
//! ...          the struct of the arguments, the result or the exception
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::wire::{WireError, binary};

const VERSION: u32 = 0x8001_0000;
const CALL: u32 = 1;
const STRUCT: u8 = 12;

/// Writes everything that stands before the arguments.
pub(super) fn put_call_header(out: &mut BytesMut, method: &str, sequence: i32, args_len: usize) {
    let header_len = 12 + method.len();
    out.put_u32(u32::try_from(header_len + args_len).unwrap_or(u32::MAX));
    out.put_u32(VERSION | CALL);
    out.put_u32(u32::try_from(method.len()).unwrap_or(u32::MAX));
    out.put_slice(method.as_bytes());
    out.put_i32(sequence);
}

/// What stands at the front of the bytes that have arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// So many more bytes are needed before there is more to say.
    Needs(usize),
    Frame(Bytes),
    /// Longer than the limit; the length.
    TooLong(usize),
}

/// Takes a whole frame off the front.
pub(super) fn take_frame(arrived: &mut BytesMut, max: usize) -> Arrived {
    let Some(length) = arrived.first_chunk::<4>().map(|b| u32::from_be_bytes(*b)) else {
        return Arrived::Needs(4 - arrived.len());
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > max {
        return Arrived::TooLong(length);
    }
    if arrived.len() < 4 + length {
        return Arrived::Needs(4 + length - arrived.len());
    }
    arrived.advance(4);
    Arrived::Frame(arrived.split_to(length).freeze())
}

/// A reply that was taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplyFrame {
    pub sequence: i32,
    pub is_exception: bool,
    /// The struct, complete, of allowed depth and nothing behind it.
    pub body: Bytes,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("it begins with {0:08x}, which is no reply in Thrift's binary protocol")]
    NoReply(u32),
    #[error("{0} bytes stand behind the end of the reply")]
    Behind(usize),
}

pub(super) fn read_reply(frame: &Bytes) -> Result<ReplyFrame, FrameError> {
    let mut at = 0;
    let begin = binary::read_i32(frame, &mut at)?.cast_unsigned();
    let is_exception = match begin {
        b if b == VERSION | 2 => false,
        b if b == VERSION | 3 => true,
        other => return Err(FrameError::NoReply(other)),
    };
    binary::read_bytes(frame, &mut at)?;
    let sequence = binary::read_i32(frame, &mut at)?;
    let body = frame.slice(at..);
    let mut end = 0;
    binary::skip(&body, &mut end, STRUCT, 1)?;
    if end < body.len() {
        return Err(FrameError::Behind(body.len() - end));
    }
    Ok(ReplyFrame { sequence, is_exception, body })
}

/// The text of a `TApplicationException`.
pub(super) fn exception_text(body: &[u8]) -> Result<String, WireError> {
    let (mut at, mut text, mut kind) = (0, String::new(), 0);
    loop {
        match binary::read_u8(body, &mut at)? {
            0 => break,
            ttype => match (ttype, binary::read_i16(body, &mut at)?) {
                (11, 1) => text = String::from_utf8_lossy(binary::read_bytes(body, &mut at)?).into_owned(),
                (8, 2) => kind = binary::read_i32(body, &mut at)?,
                _ => binary::skip(body, &mut at, ttype, 1)?,
            },
        }
    }
    Ok(match (kind, text.is_empty()) {
        (1, true) => "unknown method".to_owned(),
        (kind, true) => format!("kind {kind}, without a text"),
        (_, false) => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(kind: u8, body: &[u8]) -> Bytes {
        [&[0x80, 1, 0, kind, 0, 0, 0, 1, b'm', 0, 0, 0, 9], body].concat().into()
    }

    #[test]
    fn a_call_is_framed() {
        let mut out = BytesMut::new();
        put_call_header(&mut out, "renew", 7, 1);
        assert_eq!(out.as_ref(), b"\0\0\0\x12\x80\x01\0\x01\0\0\0\x05renew\0\0\0\x07");
    }

    #[test]
    fn frames_come_in_pieces_and_several_at_once() {
        let mut arrived = BytesMut::from(&b"\0\0"[..]);
        assert_eq!(take_frame(&mut arrived, 10), Arrived::Needs(2));
        arrived.extend_from_slice(b"\0\x03ab");
        assert_eq!(take_frame(&mut arrived, 10), Arrived::Needs(1));
        arrived.extend_from_slice(b"c\0\0\0\0\0\0\0\x0b");
        assert_eq!(take_frame(&mut arrived, 10), Arrived::Frame("abc".into()));
        assert_eq!(take_frame(&mut arrived, 10), Arrived::Frame("".into()));
        assert_eq!(take_frame(&mut arrived, 10), Arrived::TooLong(11));
    }

    #[test]
    fn replies_are_checked_to_their_end() {
        assert_eq!(read_reply(&reply(2, &[0])), Ok(ReplyFrame { sequence: 9, is_exception: false, body: vec![0].into() }));
        assert!(read_reply(&reply(3, &[0])).is_ok_and(|r| r.is_exception));
        assert_eq!(read_reply(&reply(2, &[0, 0])), Err(FrameError::Behind(1)));
        assert_eq!(read_reply(&reply(2, &[])), Err(FrameError::Wire(WireError::Truncated)));
        assert_eq!(read_reply(&"HTTP/1.1 400".into()), Err(FrameError::NoReply(0x4854_5450)));
        let mut deep = [12, 0, 1].repeat(70);
        deep.extend([0; 71]);
        assert_eq!(read_reply(&reply(2, &deep)), Err(FrameError::Wire(WireError::TooDeep)));
    }

    #[test]
    fn exceptions_have_a_text() {
        assert_eq!(exception_text(b"\x0b\0\x01\0\0\0\x02no\x08\0\x02\0\0\0\x01\0"), Ok("no".to_owned()));
        assert_eq!(exception_text(b"\x08\0\x02\0\0\0\x01\0"), Ok("unknown method".to_owned()));
        assert_eq!(exception_text(b"\x0b"), Err(WireError::Truncated));
    }
}

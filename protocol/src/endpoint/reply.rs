//! Reads replies of `consumeMessages`. Whoever sends them is not trusted.

use crate::wire::binary::Binary;
use crate::wire::compact::Compact;
use crate::wire::{
    Delimiter, Dialect, Encoding, Kind, MessageType, Progress, Protocol, Transport, WireError, frame, header, skip,
};

/// A longer reply is refused. Bytes; an exception's text is the only long thing in one.
pub(super) const MAX_REPLY_BYTES: usize = 64 << 10;
/// So much of an exception's text is kept, in characters.
const MAX_TEXT: usize = 400;

/// What an endpoint answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Value(i32),
    /// Anything but a value, in words.
    Exception(String),
}

/// Waits for one reply to be whole.
#[derive(Debug)]
pub(super) struct ReplyReader {
    dialect: Dialect,
    sequence: i32,
    delimiter: Delimiter,
}

impl ReplyReader {
    /// For the reply to the call of this sequence id.
    pub(super) fn new(dialect: Dialect, sequence: i32) -> Self {
        Self { dialect, sequence, delimiter: Delimiter::new(dialect.protocol, MAX_REPLY_BYTES) }
    }

    /// Looks at everything that has come since the call was sent. The answer once it is whole, with the number of its bytes; the error
    /// says why these bytes are none.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<Option<(Answer, usize)>, String> {
        let whole = match self.dialect.transport {
            Transport::Buffered => self.buffered(bytes),
            Transport::Framed => framed(bytes),
        };
        match whole.map_err(|error| error.to_string())? {
            None => Ok(None),
            Some((message, size)) => self.read(message).map(|answer| Some((answer, size))),
        }
    }

    fn buffered<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<(&'a [u8], usize)>, WireError> {
        match self.delimiter.advance(bytes)? {
            Progress::Complete(size) => Ok(bytes.get(..size).map(|message| (message, size))),
            Progress::NeedMore { .. } => Ok(None),
        }
    }

    fn read(&self, message: &[u8]) -> Result<Answer, String> {
        let (header, end) = header::read(self.dialect.protocol, message).map_err(|error| error.to_string())?;
        if header.sequence != self.sequence {
            return Err(format!("the sequence id is {} in place of {}", header.sequence, self.sequence));
        }
        let body = message.get(end..).unwrap_or_default();
        let fields = match self.dialect.protocol {
            Protocol::Binary => Fields::read::<Binary>(body),
            Protocol::Compact => Fields::read::<Compact>(body),
        };
        let fields = fields.map_err(|error| error.to_string())?;
        match header.message_type {
            MessageType::Reply => Ok(fields.into_result()),
            MessageType::Exception => Ok(Answer::Exception(fields.into_exception())),
            MessageType::Call | MessageType::Oneway => Err("it is a call".to_owned()),
        }
    }
}

fn framed(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, WireError> {
    let Some(size) = frame::read_length(bytes, MAX_REPLY_BYTES)? else { return Ok(None) };
    let end = frame::LENGTH_BYTES + size;
    Ok(bytes.get(frame::LENGTH_BYTES..end).map(|message| (message, end)))
}

/// What matters of a reply's struct: a result has its value in field 0, a `TApplicationException` is `{ 1: string message, 2: i32 type }`.
#[derive(Default)]
struct Fields {
    value: Option<i32>,
    text: Option<String>,
    kind: Option<i32>,
    /// The first field that is none of these.
    other: Option<i16>,
}

impl Fields {
    fn read<E: Encoding>(bytes: &[u8]) -> Result<Self, WireError> {
        let mut fields = Self::default();
        let (mut at, mut last) = (0, 0);
        while let Some(field) = E::field(bytes, &mut at, last)? {
            last = field.id;
            match (field.id, field.kind) {
                (0, Kind::I32) => fields.value = Some(read_i32::<E>(bytes, &mut at)?),
                (1, Kind::String) => fields.text = Some(shorten(E::string(bytes, &mut at)?)),
                (2, Kind::I32) => fields.kind = Some(read_i32::<E>(bytes, &mut at)?),
                (id, kind) => {
                    fields.other.get_or_insert(id);
                    if field.inline.is_none() {
                        skip::<E>(bytes, &mut at, kind, 1)?;
                    }
                }
            }
        }
        Ok(fields)
    }

    fn into_result(self) -> Answer {
        match (self.value, self.other) {
            (Some(value), _) => Answer::Value(value),
            (None, Some(field)) => Answer::Exception(format!("the result has no number, but a field {field}")),
            (None, None) => Answer::Exception("the result has no number".to_owned()),
        }
    }

    fn into_exception(self) -> String {
        let kind = match self.kind {
            Some(1) => "unknown method",
            Some(2) => "invalid message type",
            Some(3) => "wrong method name",
            Some(4) => "bad sequence id",
            Some(5) => "missing result",
            Some(6) => "internal error",
            Some(7) => "protocol error",
            _ => "unknown",
        };
        match self.text {
            Some(text) if !text.is_empty() => format!("{text} ({kind})"),
            _ => kind.to_owned(),
        }
    }
}

fn read_i32<E: Encoding>(bytes: &[u8], at: &mut usize) -> Result<i32, WireError> {
    E::number(bytes, at, Kind::I32).and_then(|number| i32::try_from(number).map_err(|_| WireError::LongNumber))
}

fn shorten(text: &[u8]) -> String {
    // A character has at most four bytes; the rest need not be looked at.
    let text = String::from_utf8_lossy(text.get(..MAX_TEXT * 4).unwrap_or(text));
    let mut short: String = text.chars().take(MAX_TEXT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

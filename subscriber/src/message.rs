//! Messages as a program gets them.

use bytes::Bytes;
use hqueue_protocol::generated::TMessage;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::wire::binary::{self, Binary};
use hqueue_protocol::wire::{Encoding, Kind, WireError, skip};

/// A message of a queue.
///
/// Topic, value and header values are views into the bytes that came over the connection: cloning copies nothing, and a message that
/// is kept keeps the batch alive that it came in (up to some MiB). Copy the value out of those that are kept for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub partition: i16,
    pub id: MessageId,
    pub topic: Bytes,
    pub value: Bytes,
    /// What the producer has added, in its order.
    pub headers: Vec<(String, Bytes)>,
}

/// The containers in which a field of a message stands: arguments or result, list, message.
const FIELD_DEPTH: usize = 3;

impl Message {
    fn blank() -> Self {
        Self { partition: 0, id: MessageId::MIN, topic: Bytes::new(), value: Bytes::new(), headers: Vec::new() }
    }

    /// Reads the `TMessage` at `*at`, in the binary protocol, and moves `at` behind it.
    fn read(bytes: &Bytes, at: &mut usize) -> Result<Self, WireError> {
        let mut message = Self::blank();
        while let Some(field) = Binary::field(bytes, at, 0)? {
            match (field.id, field.kind) {
                (1, Kind::Struct) => message.id = read_id(bytes, at)?,
                (2, Kind::I16) => message.partition = binary::read_i16(bytes, at)?,
                (3, Kind::String) => message.topic = read_bytes(bytes, at)?,
                (4, Kind::String) => message.value = read_bytes(bytes, at)?,
                (5, Kind::Map) => message.headers = read_headers(bytes, at)?,
                (_, kind) => skip::<Binary>(bytes, at, kind, FIELD_DEPTH)?,
            }
        }
        Ok(message)
    }

    /// Reads the messages of a list field, its header taken.
    pub(crate) fn read_list(bytes: &Bytes, at: &mut usize) -> Result<Vec<Self>, WireError> {
        let (kind, count) = Binary::list(bytes, at)?;
        if count > 0 && kind != Kind::Struct {
            return Err(WireError::BadType(kind.binary_code()));
        }
        // As many as can be there, whatever is announced.
        let room = (bytes.len() - *at) / Binary::MIN_MESSAGE_BYTES;
        let mut messages = Vec::with_capacity(room.min(count as usize));
        for _ in 0..count {
            messages.push(Self::read(bytes, at)?);
        }
        Ok(messages)
    }
}

/// From the generated struct: the way of the compact protocol, which copies.
impl From<TMessage> for Message {
    fn from(message: TMessage) -> Self {
        let id = message
            .id
            .map_or(MessageId::MIN, |id| MessageId::new(id.timestamp.unwrap_or_default(), id.sequence_i_d.unwrap_or_default()));
        Self {
            partition: message.partition_i_d.unwrap_or_default(),
            id,
            topic: message.topic.unwrap_or_default().into(),
            value: message.value.unwrap_or_default().into(),
            headers: message.headers.unwrap_or_default().into_iter().map(|(name, value)| (name, value.into())).collect(),
        }
    }
}

/// A view of the string at `*at`.
fn read_bytes(bytes: &Bytes, at: &mut usize) -> Result<Bytes, WireError> {
    let length = Binary::string(bytes, at)?.len();
    Ok(bytes.slice(*at - length..*at))
}

fn read_headers(bytes: &Bytes, at: &mut usize) -> Result<Vec<(String, Bytes)>, WireError> {
    let (key, value, count) = Binary::map(bytes, at)?;
    let strings = (key, value) == (Kind::String, Kind::String);
    if count > 0 && !strings {
        return Err(WireError::BadType(key.binary_code()));
    }
    let mut headers = Vec::new();
    for _ in 0..count {
        let name = String::from_utf8_lossy(Binary::string(bytes, at)?).into_owned();
        headers.push((name, read_bytes(bytes, at)?));
    }
    Ok(headers)
}

/// Reads a `TMessageID`.
pub(crate) fn read_id(bytes: &[u8], at: &mut usize) -> Result<MessageId, WireError> {
    let mut id = MessageId::MIN;
    while let Some(field) = Binary::field(bytes, at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::I64) => id.timestamp = binary::read_i64(bytes, at)?,
            (2, Kind::I16) => id.sequence = binary::read_i16(bytes, at)?,
            (_, kind) => skip::<Binary>(bytes, at, kind, FIELD_DEPTH + 1)?,
        }
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hqueue_protocol::generated::TMessageID;
    use hqueue_protocol::rpc::{ConsumeMessages, ConsumeMessagesArgs, Method};
    use hqueue_protocol::wire::Protocol;

    use super::*;

    fn encoded(messages: Vec<TMessage>) -> Bytes {
        ConsumeMessages::encode_args(Protocol::Binary, &ConsumeMessagesArgs { messages }).into()
    }

    #[test]
    fn both_ways_give_the_same_message() {
        let headers = BTreeMap::from([("a".to_owned(), vec![1]), ("b".to_owned(), vec![])]);
        let message = TMessage::new(TMessageID::new(7, 8), 9, b"\0t".to_vec(), vec![0xff; 300], headers);
        let bytes = encoded(vec![message.clone(), TMessage::default()]);
        let read = Message::read_list(&bytes, &mut 3).unwrap();
        assert_eq!(read, [Message::from(message), Message::from(TMessage::default())]);
        assert_eq!(read[0].headers[0], ("a".to_owned(), Bytes::from_static(&[1])));
    }

    #[test]
    fn values_are_views_of_the_frame() {
        let bytes = encoded(vec![TMessage::new(None, None, b"t".to_vec(), b"value".to_vec(), None)]);
        let read = Message::read_list(&bytes, &mut 3).unwrap();
        let place = read[0].value.as_ptr() as usize - bytes.as_ptr() as usize;
        assert_eq!(&bytes[place..place + 5], b"value");
    }

    #[test]
    fn cut_or_mistyped_bytes_are_errors() {
        let bytes = encoded(vec![TMessage::default()]);
        for end in 3..bytes.len() - 1 {
            assert_eq!(Message::read_list(&bytes.slice(..end), &mut 3), Err(WireError::Truncated), "{end}");
        }
        let numbers = Bytes::from_static(&[0x08, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(Message::read_list(&numbers, &mut 0), Err(WireError::BadType(8)));
    }
}

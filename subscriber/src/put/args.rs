//! The arguments of `putMessagesForIds`, written message by message.
//!
//! ```text
//! 0b 00 01  4 bytes  queue          field 1, a string
//! 06 00 02  2 bytes                 field 2: the partition, -1: any
//! 0f 00 03  0c  4 bytes             field 3, a list of structs: the messages, counted
//!   0b 00 03  4 bytes  topic        each message: field 3
//!   0b 00 04  4 bytes  value        field 4
//!   0d 00 05  0b 0b  4 bytes  ...   field 5, a map of strings, if there are headers
//!   00                              the end of the message
//! 00                                the end of the arguments
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use hqueue_protocol::limits::MAX_REQUEST_BYTES;
use hqueue_protocol::rpc::{Method, PutMessagesForIds};

use super::NewMessage;
use crate::error::Error;

/// A partition of this number lets the broker choose one.
pub(crate) const ANY_PARTITION: i16 = -1;
/// What a message has around topic and value.
const MESSAGE_OVERHEAD: usize = 15;
/// Behind the last message.
const END: usize = 1;

/// Arguments under way.
#[derive(Debug)]
pub(crate) struct PutArgs {
    bytes: BytesMut,
    /// Where the count of messages stands.
    count_at: usize,
    count: u32,
    max_bytes: usize,
}

impl PutArgs {
    pub(crate) const METHOD: &str = PutMessagesForIds::NAME;

    pub(crate) fn new(queue: &str, partition: i16) -> Self {
        let mut bytes = BytesMut::with_capacity(512);
        bytes.put_slice(&[0x0b, 0, 1]);
        put_string(&mut bytes, queue.as_bytes());
        bytes.put_slice(&[0x06, 0, 2]);
        bytes.put_i16(partition);
        bytes.put_slice(&[0x0f, 0, 3, 0x0c]);
        let count_at = bytes.len();
        bytes.put_u32(0);
        // The broker counts the head of the call too: two numbers, the name with its length.
        let max_bytes = MAX_REQUEST_BYTES - (12 + Self::METHOD.len());
        Self { bytes, count_at, count: 0, max_bytes }
    }

    /// Bytes that a message takes.
    pub(crate) fn message_len(message: &NewMessage) -> usize {
        let headers: usize = message.headers.iter().map(|(name, value)| 8 + name.len() + value.len()).sum();
        let head = if message.headers.is_empty() { 0 } else { 9 };
        MESSAGE_OVERHEAD + message.topic.len() + message.value.len() + head + headers
    }

    /// Bytes that one more message may take.
    pub(crate) fn room(&self) -> usize {
        self.max_bytes.saturating_sub(self.bytes.len() + END)
    }

    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a message; refuses one for which there is no room.
    pub(crate) fn push(&mut self, message: &NewMessage) -> Result<(), Error> {
        let length = Self::message_len(message);
        if length > self.room() {
            let size = self.bytes.len() + length + END;
            return Err(Error::Invalid(format!(
                "a put of {size} bytes or more is too large, the limit is {} bytes",
                self.max_bytes
            )));
        }
        let out = &mut self.bytes;
        out.reserve(length + END);
        out.put_slice(&[0x0b, 0, 3]);
        put_string(out, &message.topic);
        out.put_slice(&[0x0b, 0, 4]);
        put_string(out, &message.value);
        if !message.headers.is_empty() {
            out.put_slice(&[0x0d, 0, 5, 0x0b, 0x0b]);
            put_length(out, message.headers.len());
            for (name, value) in &message.headers {
                put_string(out, name.as_bytes());
                put_string(out, value);
            }
        }
        out.put_u8(0);
        self.count += 1;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Bytes {
        if let Some(place) = self.bytes.get_mut(self.count_at..self.count_at + 4) {
            place.copy_from_slice(&self.count.to_be_bytes());
        }
        self.bytes.put_u8(0);
        self.bytes.freeze()
    }
}

/// Everything written here is below [`MAX_REQUEST_BYTES`].
fn put_length(out: &mut BytesMut, length: usize) {
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
}

fn put_string(out: &mut BytesMut, string: &[u8]) {
    put_length(out, string.len());
    out.put_slice(string);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hqueue_protocol::generated::TMessage;
    use hqueue_protocol::rpc::PutMessagesForIdsArgs;
    use hqueue_protocol::wire::Protocol;

    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_generated_code() {
        let plain = NewMessage::new("topic", vec![0, 1, 2]);
        let with_headers = NewMessage::new("t", "").header("a", "1").header("b", "");
        let mut args = PutArgs::new("queue", -1);
        for message in [&plain, &with_headers] {
            let before = args.byte_len();
            args.push(message).unwrap();
            assert_eq!(args.byte_len() - before, PutArgs::message_len(message));
        }
        assert_eq!(args.count(), 2);
        let headers = BTreeMap::from([("a".to_owned(), b"1".to_vec()), ("b".to_owned(), vec![])]);
        let messages = vec![
            TMessage::new(None, None, b"topic".to_vec(), vec![0, 1, 2], None),
            TMessage::new(None, None, b"t".to_vec(), vec![], headers),
        ];
        let theirs = PutMessagesForIdsArgs { queue_name: b"queue".to_vec(), partition: -1, messages };
        assert_eq!(args.finish(), PutMessagesForIds::encode_args(Protocol::Binary, &theirs));
    }

    #[test]
    fn what_a_broker_would_not_take_is_not_sent() {
        let mut args = PutArgs::new("q", 0);
        let room = args.room();
        let fits = NewMessage::new("t", vec![0; room - MESSAGE_OVERHEAD - 1]);
        let error = args.push(&NewMessage::new("tt", fits.value.clone())).unwrap_err().to_string();
        assert!(error.contains(&(MAX_REQUEST_BYTES - 29).to_string()), "{error}");
        args.push(&fits).unwrap();
        assert_eq!(args.room(), 0);
        assert_eq!(args.finish().len(), MAX_REQUEST_BYTES - 29);
    }
}

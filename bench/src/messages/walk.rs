//! Steps over encoded `TMessage` structs, just enough to find each one's value. The receivers of all sides use it.

use std::iter::FusedIterator;

/// The bytes are no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what was pushed is no list of messages")]
pub struct WalkError;

const STOP: u8 = 0;
const I16: u8 = 6;
const I64: u8 = 10;
const STRING: u8 = 11;
const STRUCT: u8 = 12;
const VALUE_FIELD: [u8; 2] = [0, 4];

/// The values of messages that follow one another in the binary protocol.
#[derive(Debug)]
pub struct Values<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Values<'a> {
    /// `bytes` begins with `count` messages.
    #[must_use]
    pub const fn new(bytes: &'a [u8], count: usize) -> Self {
        Self { rest: bytes, left: count }
    }

    /// What stands behind the messages that were stepped over.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WalkError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(WalkError)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, WalkError> {
        let (first, rest) = self.rest.split_first().ok_or(WalkError)?;
        self.rest = rest;
        Ok(*first)
    }

    fn string(&mut self) -> Result<&'a [u8], WalkError> {
        let (length, rest) = self.rest.split_first_chunk().ok_or(WalkError)?;
        self.rest = rest;
        self.take(u32::from_be_bytes(*length) as usize)
    }

    fn message(&mut self) -> Result<&'a [u8], WalkError> {
        let mut value = None;
        // The id is the only struct in a message, and has none in it.
        let mut within_id = false;
        loop {
            let kind = self.byte()?;
            if kind == STOP {
                if within_id {
                    within_id = false;
                    continue;
                }
                return value.ok_or(WalkError);
            }
            let (field, rest) = self.rest.split_first_chunk().ok_or(WalkError)?;
            self.rest = rest;
            match kind {
                I16 => drop(self.take(2)?),
                I64 => drop(self.take(8)?),
                STRING => {
                    let string = self.string()?;
                    if *field == VALUE_FIELD {
                        value = Some(string);
                    }
                }
                STRUCT if !within_id => within_id = true,
                _ => return Err(WalkError),
            }
        }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<&'a [u8], WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let message = self.message();
        if message.is_err() {
            self.left = 0;
        }
        Some(message)
    }
}

impl FusedIterator for Values<'_> {}

#[cfg(test)]
mod tests {
    use hqueue_protocol::generated::{TMessage, TMessageID};
    use thrift::protocol::{TBinaryOutputProtocol, TSerializable};

    use super::*;

    fn encoded(message: &TMessage) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.write_to_out_protocol(&mut TBinaryOutputProtocol::new(&mut bytes, true)).unwrap();
        bytes
    }

    #[test]
    fn the_value_is_found_in_what_generated_code_writes() {
        let full = TMessage::new(TMessageID::new(5, 6), 7, b"topic".to_vec(), b"value".to_vec(), None);
        let bare = TMessage::new(None, None, b"t".to_vec(), Vec::new(), None);
        let bytes = [encoded(&full), encoded(&bare), vec![42]].concat();
        let mut values = Values::new(&bytes, 2);
        assert_eq!(values.next(), Some(Ok(b"value".as_slice())));
        assert_eq!(values.next(), Some(Ok(b"".as_slice())));
        assert_eq!(values.next(), None);
        assert_eq!(values.rest(), [42]);
    }

    #[test]
    fn a_cut_message_is_an_error_and_the_end() {
        let bytes = encoded(&TMessage::new(TMessageID::new(5, 6), 7, b"topic".to_vec(), b"value".to_vec(), None));
        for end in 0..bytes.len() {
            let mut values = Values::new(&bytes[..end], 1);
            assert_eq!(values.next(), Some(Err(WalkError)), "cut at {end}");
            assert_eq!(values.next(), None);
        }
    }
}

//! One message in its stored form.

use crate::id::MessageId;
use crate::wire::binary::{self, Binary};
use crate::wire::{Encode, Encoding, Kind, WireError, skip};

/// Bytes of the id and the partition, which stand before everything else.
pub const PREFIX_LEN: usize = 25;

/// The prefix with zeros for id and partition.
pub(super) const BLANK_PREFIX: [u8; PREFIX_LEN] =
    [0x0c, 0, 1, 0x0a, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x06, 0, 2, 0, 0, 0, 0x06, 0, 2, 0, 0];

/// The containers in which a field of a message stands in every call: arguments or result, list, message.
pub(super) const FIELD_DEPTH: usize = 3;

/// A view of one message. Nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredMessage<'a> {
    pub id: MessageId,
    pub partition: i16,
    pub topic: &'a [u8],
    pub value: &'a [u8],
    /// All of it, in stored form.
    pub raw: &'a [u8],
}

/// Writes id and partition into a blank prefix.
#[inline]
pub(super) fn fill_prefix(prefix: &mut [u8; PREFIX_LEN], id: MessageId, partition: i16) {
    prefix[6..14].copy_from_slice(&id.timestamp.to_be_bytes());
    prefix[17..19].copy_from_slice(&id.sequence.to_be_bytes());
    prefix[23..25].copy_from_slice(&partition.to_be_bytes());
}

/// Writes the fields from 3 on, with `more` encoded ones behind them, and the end.
pub(super) fn write_fields(out: &mut Vec<u8>, topic: &[u8], value: &[u8], headers: super::Headers<'_>, more: &[u8]) {
    Binary::write_field(out, Kind::String, 3, 0);
    Binary::write_string(out, topic);
    Binary::write_field(out, Kind::String, 4, 3);
    Binary::write_string(out, value);
    if !headers.is_empty() {
        Binary::write_field(out, Kind::Map, 5, 4);
        Binary::write_map(out, Kind::String, Kind::String, u32::try_from(headers.len()).unwrap_or(u32::MAX));
        for (name, value) in headers {
            Binary::write_string(out, name.as_bytes());
            Binary::write_string(out, value);
        }
    }
    out.extend_from_slice(more);
    Binary::write_end(out);
}

/// Reads the message at the beginning of `bytes`; what follows it is left alone.
pub(super) fn read(bytes: &[u8]) -> Result<StoredMessage<'_>, WireError> {
    let mut at = 0;
    let mut message = StoredMessage { id: MessageId::MIN, partition: 0, topic: &[], value: &[], raw: &[] };
    if let Some((id, partition)) = bytes.first_chunk().and_then(read_prefix) {
        (message.id, message.partition, at) = (id, partition, PREFIX_LEN);
    }
    while let Some(field) = Binary::field(bytes, &mut at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::Struct) => message.id = read_id(bytes, &mut at)?,
            (2, Kind::I16) => message.partition = binary::read_i16(bytes, &mut at)?,
            (3, Kind::String) => message.topic = binary::read_bytes(bytes, &mut at)?,
            (4, Kind::String) => message.value = binary::read_bytes(bytes, &mut at)?,
            (_, kind) => skip::<Binary>(bytes, &mut at, kind, FIELD_DEPTH)?,
        }
    }
    message.raw = bytes.get(..at).ok_or(WireError::Truncated)?;
    Ok(message)
}

/// Id and partition of a prefix; `None` if they stand in another way, as no message does that we have written.
#[inline]
fn read_prefix(prefix: &[u8; PREFIX_LEN]) -> Option<(MessageId, i16)> {
    let mut blank = *prefix;
    fill_prefix(&mut blank, MessageId::MIN, 0);
    if blank != BLANK_PREFIX {
        return None;
    }
    let [_, _, _, _, _, _, timestamp @ .., _, _, _, s0, s1, _, _, _, _, p0, p1] = *prefix;
    Some((MessageId::new(i64::from_be_bytes(timestamp), i16::from_be_bytes([s0, s1])), i16::from_be_bytes([p0, p1])))
}

fn read_id(bytes: &[u8], at: &mut usize) -> Result<MessageId, WireError> {
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

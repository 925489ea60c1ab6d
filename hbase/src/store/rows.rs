//! From stored messages to rows, and back.

use bytes::Bytes;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PREFIX_LEN, PutBatch, StoredMessage, StoredSlice, TopicTable};
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encode, Encoding, Kind, WireError, skip};

use super::pending::Chunk;
use crate::gateway::{Cell, PutCall, Row, Values};
use crate::schema::{ANCHOR, Anchor, HEADERS, INDEX, MESSAGE, parse_row_key, row_key};

/// What a row costs in a call beside its bytes, about.
const ROW_OVERHEAD: usize = 120;

/// Containers around a field of a message.
const FIELD_DEPTH: usize = 1;

/// A call that writes all of these.
pub(super) fn put_call(table: &[u8], chunks: &[Chunk]) -> Result<Bytes, WireError> {
    let size: usize = chunks.iter().map(|chunk| chunk.slice.bytes.len() + chunk.slice.count as usize * ROW_OVERHEAD).sum();
    let mut call = PutCall::new(table, size + 100);
    let mut other_fields = Vec::new();
    for chunk in chunks {
        let mut anchor = chunk.anchor.map(|anchor| anchor.encode());
        for message in chunk.slice.messages() {
            let message = message?;
            fields_from_five(&message, &mut other_fields)?;
            let cell = |family, qualifier, value| Cell { family, qualifier, value };
            let headers = (!other_fields.is_empty()).then_some(cell(HEADERS, message.topic, &other_fields[..]));
            let index = anchor.as_ref().map(|anchor| cell(INDEX, ANCHOR, &anchor[..]));
            let value = cell(MESSAGE, message.topic, message.value);
            let key = row_key(chunk.of.partition, message.id);
            call.row(&key, chunk.of.arrival_ms, [value].into_iter().chain(headers).chain(index));
            anchor = None;
        }
    }
    Ok(call.finish())
}

/// The fields from 5 on as a struct; empty if there are none.
fn fields_from_five(message: &StoredMessage<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    out.clear();
    let bytes = message.raw;
    let mut at = PREFIX_LEN;
    let mut begin = at;
    while let Some(field) = Binary::field(bytes, &mut at, 0)? {
        skip::<Binary>(bytes, &mut at, field.kind, FIELD_DEPTH)?;
        if field.id > 4 {
            out.extend_from_slice(bytes.get(begin..at).ok_or(WireError::Truncated)?);
        }
        begin = at;
    }
    if !out.is_empty() {
        Binary::write_end(out);
    }
    Ok(())
}

/// One message as it lies in HBase.
#[derive(Clone, Debug)]
pub(super) struct MessageRow {
    pub(super) id: MessageId,
    pub(super) arrival_ms: i64,
    pub(super) topic: Bytes,
    /// Empty if it was not asked for.
    pub(super) value: Bytes,
    /// The fields from 5 on and the end.
    other_fields: Option<Bytes>,
    pub(super) anchor: Option<Anchor>,
    /// Bytes of what a row has beside its topic, whether or not it was asked for itself.
    value_len: usize,
    other_len: usize,
}

impl MessageRow {
    /// `None`: it is no row of a message of this partition.
    pub(super) fn read(partition: i16, row: &Row, values: Values) -> Option<Self> {
        let (of, id) = parse_row_key(&row.key)?;
        let message = row.cells.iter().find(|cell| cell.family == MESSAGE)?;
        let headers = row.cells.iter().find(|cell| cell.family == HEADERS && cell.qualifier == message.qualifier);
        let index = row.cells.iter().find(|cell| cell.family == INDEX && cell.qualifier == ANCHOR);
        let whole = |bytes: &Bytes| if values == Values::Whole { bytes.clone() } else { Bytes::new() };
        let length = |bytes: &Bytes| match (values, bytes.first_chunk()) {
            (Values::Lengths, Some(length)) => usize::try_from(u32::from_be_bytes(*length)).unwrap_or(0),
            _ => bytes.len(),
        };
        (of == partition).then(|| Self {
            id,
            arrival_ms: message.timestamp,
            topic: message.qualifier.clone(),
            value: whole(&message.value),
            other_fields: headers.map(|cell| whole(&cell.value)).filter(|fields| is_struct(fields)),
            anchor: index.and_then(|cell| Anchor::decode(&whole(&cell.value))),
            value_len: length(&message.value),
            other_len: headers.map_or(1, |cell| length(&cell.value)),
        })
    }

    /// Bytes in stored form.
    pub(super) fn byte_len(&self) -> usize {
        PREFIX_LEN + 7 + self.topic.len() + 7 + self.value_len + self.other_len
    }
}

/// What somebody else put there may be anything.
fn is_struct(fields: &[u8]) -> bool {
    let mut at = 0;
    skip::<Binary>(fields, &mut at, Kind::Struct, 0).is_ok() && at == fields.len()
}

/// Some messages in stored form, with their topics. `None` if there is none.
pub(super) fn stored<'a>(
    partition: i16,
    rows: impl Iterator<Item = &'a MessageRow> + Clone,
) -> Option<(StoredSlice, TopicTable)> {
    let size = rows.clone().map(MessageRow::byte_len).sum();
    let mut batch = PutBatch::with_capacity(rows.clone().count(), size);
    let mut fields = Vec::new();
    for row in rows.clone() {
        fields.clear();
        Binary::write_field(&mut fields, Kind::String, 3, 0);
        Binary::write_string(&mut fields, &row.topic);
        Binary::write_field(&mut fields, Kind::String, 4, 3);
        Binary::write_string(&mut fields, &row.value);
        match &row.other_fields {
            Some(other) => fields.extend_from_slice(other),
            None => Binary::write_end(&mut fields),
        }
        batch.push_fields(&row.topic, &fields);
    }
    let topics = batch.topics().clone();
    let mut ids = rows.map(|row| row.id);
    let slice = batch.seal(partition, || ids.next().unwrap_or(MessageId::MAX))?;
    Some((slice, topics))
}

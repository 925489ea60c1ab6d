//! The bytes around stored messages in a call or a result.
//!
//! ```text
//! consumeMessages      [length]  header  field 1: list, count   messages   end
//! messageScannerGetList                  field 0: list, count   messages   end
//! messageScannerGet                      field 0: struct        message    end
//! fetch                                  field 0: struct
//!                                          field 1: list, count messages
//!                                          field 2: id          end        end
//! ```
//!
//! Messages are slices of what is stored, or one buffer in the compact protocol. Pieces follow one another on the wire.

use bytes::Bytes;

use super::compact::{first_to_compact, to_compact};
use super::message;
use super::slice::StoredSlice;
use crate::id::MessageId;
use crate::limits::CALL_ENVELOPE_BYTES;
use crate::wire::binary::Binary;
use crate::wire::compact::Compact;
use crate::wire::{Dialect, Encode, Kind, MessageHeader, MessageType, Protocol, Transport, WireError, frame, header};

const END: Bytes = Bytes::from_static(&[0]);

/// A call of `consumeMessages` with the messages of all slices, in pieces; without slices it asks whether somebody is there.
pub fn consume_call(dialect: Dialect, sequence: i32, slices: &[StoredSlice]) -> Result<Vec<Bytes>, WireError> {
    let messages = encoded(dialect.protocol, slices)?;
    let is_framed = dialect.transport == Transport::Framed;
    let mut begin = Vec::with_capacity(CALL_ENVELOPE_BYTES);
    if is_framed {
        begin.extend_from_slice(&frame::length_of(0));
    }
    let header = MessageHeader { method: b"consumeMessages", message_type: MessageType::Call, sequence };
    header::write(&mut begin, dialect.protocol, &header);
    begin_list(&mut begin, dialect.protocol, 1, slices);
    let size = begin.len() + messages.iter().map(Bytes::len).sum::<usize>() + END.len();
    if is_framed && let Some(length) = begin.first_chunk_mut() {
        *length = frame::length_of(size - frame::LENGTH_BYTES);
    }
    Ok(enclosed(begin, messages))
}

/// The result of `messageScannerGetList`, in pieces.
pub fn scanner_list_result(protocol: Protocol, slices: &[StoredSlice]) -> Result<Vec<Bytes>, WireError> {
    let mut begin = Vec::new();
    begin_list(&mut begin, protocol, 0, slices);
    Ok(enclosed(begin, encoded(protocol, slices)?))
}

/// The result of `messageScannerGet`, in pieces: the first message of the slice, or one without an id that says the end is reached.
pub fn scanner_get_result(protocol: Protocol, slice: Option<&StoredSlice>) -> Result<Vec<Bytes>, WireError> {
    let mut begin = Vec::new();
    write_field(&mut begin, protocol, Kind::Struct, 0);
    let message = match (slice, protocol) {
        (None, _) => Bytes::from(empty_message(protocol)),
        (Some(slice), Protocol::Binary) => slice.bytes.slice(..message::read(&slice.bytes)?.raw.len()),
        (Some(slice), Protocol::Compact) => first_to_compact(slice)?,
    };
    Ok(enclosed(begin, vec![message]))
}

/// The result of `fetch`, in pieces: the messages, and where the next one begins.
pub fn fetch_result(protocol: Protocol, slices: &[StoredSlice], next: MessageId) -> Result<Vec<Bytes>, WireError> {
    let mut begin = Vec::new();
    write_field(&mut begin, protocol, Kind::Struct, 0);
    begin_list(&mut begin, protocol, 1, slices);
    let behind = match protocol {
        Protocol::Binary => behind_messages::<Binary>(next),
        Protocol::Compact => behind_messages::<Compact>(next),
    };
    let mut pieces = enclosed(begin, encoded(protocol, slices)?);
    let end = pieces.len() - 1;
    pieces.insert(end, behind.into());
    Ok(pieces)
}

/// What stands behind the list in a `TFetched`: field 2, and the end.
fn behind_messages<E: Encode>(next: MessageId) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    E::write_field(&mut out, Kind::Struct, 2, 1);
    E::write_field(&mut out, Kind::I64, 1, 0);
    E::write_number(&mut out, Kind::I64, next.timestamp);
    E::write_field(&mut out, Kind::I16, 2, 1);
    E::write_number(&mut out, Kind::I16, next.sequence.into());
    E::write_end(&mut out);
    E::write_end(&mut out);
    out
}

/// The messages in the protocol that is wanted.
fn encoded(protocol: Protocol, slices: &[StoredSlice]) -> Result<Vec<Bytes>, WireError> {
    Ok(match protocol {
        Protocol::Binary => slices.iter().map(|slice| slice.bytes.clone()).collect(),
        Protocol::Compact => vec![to_compact(slices)?],
    })
}

/// The head of a field that is a list of all messages.
fn begin_list(out: &mut Vec<u8>, protocol: Protocol, field: i16, slices: &[StoredSlice]) {
    let count = slices.iter().fold(0u32, |count, slice| count.saturating_add(slice.count));
    write_field(out, protocol, Kind::List, field);
    match protocol {
        Protocol::Binary => Binary::write_list(out, Kind::Struct, count),
        Protocol::Compact => Compact::write_list(out, Kind::Struct, count),
    }
}

fn enclosed(begin: Vec<u8>, messages: Vec<Bytes>) -> Vec<Bytes> {
    [Bytes::from(begin)].into_iter().chain(messages).chain([END]).collect()
}

fn write_field(out: &mut Vec<u8>, protocol: Protocol, kind: Kind, id: i16) {
    match protocol {
        Protocol::Binary => Binary::write_field(out, kind, id, 0),
        Protocol::Compact => Compact::write_field(out, kind, id, 0),
    }
}

/// No id, no partition; topic and value are empty rather than absent, for languages in which absent is null.
fn empty_message(protocol: Protocol) -> Vec<u8> {
    fn write<E: Encode>(out: &mut Vec<u8>) {
        E::write_field(out, Kind::String, 3, 0);
        E::write_string(out, &[]);
        E::write_field(out, Kind::String, 4, 3);
        E::write_string(out, &[]);
        E::write_end(out);
    }
    let mut out = Vec::new();
    match protocol {
        Protocol::Binary => write::<Binary>(&mut out),
        Protocol::Compact => write::<Compact>(&mut out),
    }
    out
}

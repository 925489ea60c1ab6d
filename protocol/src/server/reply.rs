//! Puts replies into the bytes of a connection's dialect.

use bytes::Bytes;

use super::request::Head;
use super::service::Reply;
use crate::pieces::Pieces;
use crate::wire::binary::Binary;
use crate::wire::compact::Compact;
use crate::wire::{Dialect, Encode, Kind, MessageHeader, MessageType, Protocol, Transport, frame, header};

/// Kinds of a `TApplicationException`.
const UNKNOWN_METHOD: i32 = 1;
const INTERNAL_ERROR: i32 = 6;
const PROTOCOL_ERROR: i32 = 7;

/// Adds a reply to what is to be written. The result's pieces are not copied.
pub(super) fn encode(out: &mut Pieces, dialect: Dialect, head: &Head, reply: Reply) {
    let (kind, text) = match reply {
        Reply::Result(pieces) => return encode_message(out, dialect, head, MessageType::Reply, pieces),
        Reply::UnknownMethod => (UNKNOWN_METHOD, format!("there is no method {}", String::from_utf8_lossy(&head.method))),
        Reply::BadArguments(text) => (PROTOCOL_ERROR, text),
        Reply::Failed(text) => (INTERNAL_ERROR, text),
    };
    let body = match dialect.protocol {
        Protocol::Binary => exception::<Binary>(kind, &text),
        Protocol::Compact => exception::<Compact>(kind, &text),
    };
    encode_message(out, dialect, head, MessageType::Exception, vec![body.into()]);
}

fn encode_message(out: &mut Pieces, dialect: Dialect, head: &Head, message_type: MessageType, pieces: Vec<Bytes>) {
    let mut first = Vec::with_capacity(head.method.len() + 24);
    if dialect.transport == Transport::Framed {
        first.extend_from_slice(&[0; frame::LENGTH_BYTES]);
    }
    let header = MessageHeader { method: &head.method, message_type, sequence: head.sequence };
    header::write(&mut first, dialect.protocol, &header);
    if dialect.transport == Transport::Framed {
        let size = first.len() - frame::LENGTH_BYTES + pieces.iter().map(Bytes::len).sum::<usize>();
        if let Some(length) = first.first_chunk_mut() {
            *length = frame::length_of(size);
        }
    }
    out.push(first.into());
    pieces.into_iter().for_each(|piece| out.push(piece));
}

/// A `TApplicationException { 1: string message, 2: i32 type }`.
fn exception<E: Encode>(kind: i32, text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    E::write_field(&mut out, Kind::String, 1, 0);
    E::write_string(&mut out, text.as_bytes());
    E::write_field(&mut out, Kind::I32, 2, 1);
    E::write_number(&mut out, Kind::I32, kind.into());
    E::write_end(&mut out);
    out
}

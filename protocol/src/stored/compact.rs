//! Stored messages for peers that speak compact: written anew from the stored bytes, without building a message.

use bytes::Bytes;

use super::message::FIELD_DEPTH;
use super::slice::StoredSlice;
use crate::wire::binary::Binary;
use crate::wire::compact::Compact;
use crate::wire::{Kind, WireError, copy};

/// The containers around a message.
const MESSAGE_DEPTH: usize = FIELD_DEPTH - 1;

/// The messages of all slices in the compact protocol, as they follow the head of a list. Memory is taken once: numbers of the
/// fields that we do not know may grow by a half, everything else shrinks.
pub fn to_compact(slices: &[StoredSlice]) -> Result<Bytes, WireError> {
    let mut out = Vec::with_capacity(slices.iter().map(|slice| slice.bytes.len()).sum());
    for slice in slices {
        let mut at = 0;
        while at < slice.bytes.len() {
            copy_message(&slice.bytes, &mut at, &mut out)?;
        }
    }
    Ok(Bytes::from(out))
}

/// The first message of a slice in the compact protocol.
pub(super) fn first_to_compact(slice: &StoredSlice) -> Result<Bytes, WireError> {
    let mut out = Vec::new();
    copy_message(&slice.bytes, &mut 0, &mut out)?;
    Ok(Bytes::from(out))
}

fn copy_message(bytes: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    copy::<Binary, Compact>(bytes, at, Kind::Struct, MESSAGE_DEPTH, out, usize::MAX)
}

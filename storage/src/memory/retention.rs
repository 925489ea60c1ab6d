//! What goes to make room in a memory store.

use std::collections::BTreeMap;

use hqueue_protocol::id::MessageId;

use super::partition::{Partition, State};
use crate::store::MissingReason;

/// Drops the oldest appends that `may_go` until `put_bytes` fit in the limit. Returns how many messages that were; if they cannot fit,
/// nothing is dropped, and the error is how many bytes there are.
pub(super) fn make_room(
    all: &mut BTreeMap<i16, Partition>,
    put_bytes: u64,
    limit_bytes: u64,
    may_go: &dyn Fn(i16, MessageId) -> bool,
) -> Result<u64, u64> {
    let used_bytes: u64 = all.values().map(Partition::byte_len).sum();
    let mut over = used_bytes.saturating_add(put_bytes).saturating_sub(limit_bytes);
    if over == 0 {
        return Ok(0);
    }
    if put_bytes > limit_bytes {
        return Err(used_bytes);
    }
    let mut oldest: Vec<(u64, i16, MessageId, u64)> = Vec::new();
    for (partition, state) in &*all {
        let here = state.entries.iter().filter_map(|entry| entry.block().map(|block| (entry, block)));
        oldest.extend(here.map(|(entry, block)| (entry.order, *partition, block.last, block.byte_len() as u64)));
    }
    oldest.sort_unstable();
    let mut until = None;
    for (order, partition, last, bytes) in oldest {
        if over == 0 || !may_go(partition, last) {
            break;
        }
        over = over.saturating_sub(bytes);
        until = Some(order);
    }
    if over > 0 {
        return Err(used_bytes);
    }
    let mut dropped = 0;
    for entry in all.values_mut().flat_map(|state| &mut state.entries) {
        if entry.block().is_some() && until.is_some_and(|until| entry.order <= until) {
            entry.state = State::Gone(MissingReason::Dropped);
            dropped += u64::from(entry.count);
        }
    }
    Ok(dropped)
}

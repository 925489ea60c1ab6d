//! The bytes that the tails of all queues may take together.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::{Mutex, PoisonError, Weak};

use super::queue::QueueLog;
use crate::store::Block;

/// What an allocation costs beside its bytes, and a block its entries in lists.
const ALLOCATION: usize = 16;
const LIST_ENTRIES: usize = size_of::<super::partition::TailBlock>() + size_of::<Entry>();

/// Lets go of the oldest blocks of all queues once there are too many bytes.
#[derive(Debug)]
pub(super) struct Tails {
    limit_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they were committed.
    blocks: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    log: Weak<QueueLog>,
    partition: i16,
    number: u64,
    bytes: usize,
}

impl Tails {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, state: Mutex::default() }
    }

    /// Counts blocks that were published, and evicts as many of the oldest as that takes.
    pub(super) fn published<'a>(&self, log: &Weak<QueueLog>, blocks: impl Iterator<Item = &'a Block>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for block in blocks {
            let bytes = memory_of(block);
            state.bytes += bytes;
            state.blocks.push_back(Entry { log: Weak::clone(log), partition: block.partition, number: block.number, bytes });
        }
        let mut evicted = Vec::new();
        while state.bytes > self.limit_bytes
            && let Some(oldest) = state.blocks.pop_front()
        {
            state.bytes -= oldest.bytes;
            evicted.push(oldest);
        }
        drop(state);
        for entry in evicted {
            if let Some(log) = entry.log.upgrade() {
                log.evict(entry.partition, entry.number);
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes as u64
    }
}

/// Memory that a block takes, all in all.
fn memory_of(block: &Block) -> usize {
    let parts = block.parts.len() * (size_of::<hqueue_protocol::stored::StoredSlice>() + 2 * ALLOCATION + 32);
    let topics = match &block.topics {
        hqueue_protocol::stored::TopicTable::Few(known) => {
            known.iter().map(|(topic, _)| topic.len() + size_of::<(Box<[u8]>, u32)>() + ALLOCATION).sum()
        }
        hqueue_protocol::stored::TopicTable::Many => 0,
    };
    block.byte_len() + parts + topics + size_of::<Block>() + 3 * ALLOCATION + LIST_ENTRIES
}

//! The bytes that the tails of all queues of a store may take together.

use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::{Mutex, PoisonError, Weak};

use crate::store::Block;

/// What an allocation costs beside its bytes, and a block its entry in a partition's list.
const ALLOCATION: usize = 16;
const LIST_ENTRY: usize = 48;

/// A queue that keeps the newest blocks of its partitions in memory.
pub trait Tail {
    /// Lets go of a block, if it is still there.
    fn evict(&self, partition: i16, number: u64);
}

/// Lets go of the oldest blocks of all queues once there are too many bytes.
#[derive(Debug)]
pub struct Tails<Q> {
    limit_bytes: usize,
    state: Mutex<State<Q>>,
}

#[derive(Debug)]
struct State<Q> {
    /// In the order in which they became visible.
    blocks: VecDeque<Entry<Q>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<Q> {
    queue: Weak<Q>,
    partition: i16,
    number: u64,
    bytes: usize,
}

impl<Q: Tail> Tails<Q> {
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, state: Mutex::new(State { blocks: VecDeque::new(), bytes: 0 }) }
    }

    /// Counts blocks that became visible, and evicts as many of the oldest as that takes.
    pub fn published<'a>(&self, queue: &Weak<Q>, blocks: impl Iterator<Item = &'a Block>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for block in blocks {
            let bytes = memory_of(block) + size_of::<Entry<Q>>();
            state.bytes += bytes;
            state.blocks.push_back(Entry { queue: Weak::clone(queue), partition: block.partition, number: block.number, bytes });
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
            if let Some(queue) = entry.queue.upgrade() {
                queue.evict(entry.partition, entry.number);
            }
        }
    }

    /// Bytes that all tails take.
    pub fn bytes(&self) -> u64 {
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
    block.byte_len() + parts + topics + size_of::<Block>() + 3 * ALLOCATION + LIST_ENTRY
}

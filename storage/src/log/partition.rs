//! One partition in memory: what is committed, what of it is gone, and its newest blocks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hqueue_protocol::id::MessageId;

use super::format::header::LogPosition;
use super::format::table::{PartitionMark, Trim};
use crate::store::{Block, TailRead};

/// Held under a lock of its own, so that readers of one partition meet nobody else.
#[derive(Debug, Default)]
pub(super) struct Partition {
    pub(super) mark: PartitionMark,
    /// The trim that the log has on the disk.
    pub(super) durable_trim: u64,
    /// The highest id of a message that is not in `tail`.
    below: Option<MessageId>,
    tail: VecDeque<TailBlock>,
    /// Bytes of the messages of all partitions of the queue that are there.
    live_bytes: Arc<AtomicU64>,
    /// Messages at or above are still needed; `None`: nobody has said, all are.
    pub(super) keep_from: Option<MessageId>,
}

/// A block in memory and its place on the disk.
#[derive(Clone, Debug)]
pub(super) struct TailBlock {
    pub(super) block: Arc<Block>,
    pub(super) at: LogPosition,
    /// Bytes of all messages of the partition up to the end of the block.
    pub(super) end_bytes: u64,
}

impl Partition {
    /// As it was found on the disk. `live_bytes` is that of the queue.
    pub(super) fn found(mark: PartitionMark, live_bytes: Arc<AtomicU64>) -> Self {
        live_bytes.fetch_add(mark.live_bytes(), Relaxed);
        let (durable_trim, below) = (mark.trim.number, mark.committed.last);
        Self { mark, durable_trim, below, tail: VecDeque::new(), live_bytes, keep_from: None }
    }

    /// A block is committed: it can be read from now on.
    pub(super) fn publish(&mut self, block: Arc<Block>, at: LogPosition) {
        self.mark.committed.last = Some(block.last);
        self.mark.committed.next_number = block.number + u64::from(block.count);
        self.mark.bytes += block.byte_len() as u64;
        self.live_bytes.fetch_add(block.byte_len() as u64, Relaxed);
        let end_bytes = self.mark.bytes;
        self.tail.push_back(TailBlock { block, at, end_bytes });
    }

    /// Lets go of the oldest block if it is the one of that number or an older one.
    pub(super) fn evict(&mut self, number: u64) {
        if self.tail.front().is_some_and(|front| front.block.number <= number)
            && let Some(front) = self.tail.pop_front()
        {
            self.below = self.below.max(Some(front.block.last));
        }
    }

    /// The front up to `trim` is gone. Returns how many messages that are more than before.
    pub(super) fn trim(&mut self, trim: Trim) -> u64 {
        let more = trim.number.saturating_sub(self.mark.trim.number);
        if more > 0 {
            let live_before = self.mark.live_bytes();
            self.mark.trim = trim;
            self.live_bytes.fetch_sub(live_before.saturating_sub(self.mark.live_bytes()), Relaxed);
            while self.tail.front().is_some_and(|front| front.block.number < trim.number) {
                self.tail.pop_front();
            }
            self.below = self.below.max(trim.last);
        }
        more
    }

    /// A block that begins with `number` has expired: if nothing that is before it is still there, the front of the partition now is
    /// `end`, behind it.
    pub(super) fn expired(&mut self, number: u64, end: Trim) -> u64 {
        if number > self.mark.trim.number { 0 } else { self.trim(end) }
    }

    /// The blocks in memory from the one that holds the first message at or above `from`; `None` if they begin too late.
    pub(super) fn tail_from(&self, from: MessageId) -> Option<impl Iterator<Item = &TailBlock>> {
        if self.below.is_some_and(|below| from <= below) {
            return None;
        }
        Some(self.tail.range(self.tail.partition_point(|entry| entry.block.last < from)..))
    }

    pub(super) fn read_tail(&self, from: MessageId, max_bytes: usize, is_expired: impl Fn(&Block) -> bool) -> TailRead {
        if self.mark.committed.last.is_none_or(|last| from > last) {
            return TailRead::End;
        }
        let Some(tail) = self.tail_from(from) else { return TailRead::Cold };
        let mut blocks = Vec::new();
        let mut bytes = 0usize;
        for entry in tail {
            bytes = bytes.saturating_add(entry.block.byte_len());
            if is_expired(&entry.block) || (!blocks.is_empty() && bytes > max_bytes) {
                break;
            }
            blocks.push(Arc::clone(&entry.block));
        }
        // What has expired is told by the other way of reading.
        if blocks.is_empty() { TailRead::Cold } else { TailRead::Blocks(blocks) }
    }
}

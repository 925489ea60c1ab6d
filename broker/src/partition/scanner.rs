//! Reading a partition from a position on: the messages a reader wants, as slices of stored bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_storage::store::{Block, Cursor, MissingReason, QueueStore, ReadBatch, StoreError, TailRead};

use super::filter::{TopicFilter, Wanted};

/// Reads one partition in order. What it has read and not handed out yet is its hand: bounded by what `fill` is asked for and
/// one block.
#[derive(Debug)]
pub struct MessageScanner {
    store: Arc<dyn QueueStore>,
    partition: i16,
    filter: TopicFilter,
    /// The first id no longer wanted.
    stop: MessageId,
    cursor: Cursor,
    /// The running number of the first message at or above the cursor, if it is known: tells what has gone before it was read.
    expected: Option<u64>,
    hand: VecDeque<StoredSlice>,
    hand_messages: u32,
    hand_bytes: usize,
    missing: MissingCounts,
    /// Missing messages of which a read has told, and that were not met yet as a gap in the running numbers.
    told: u64,
    /// Where messages are missing.
    holes: Vec<Hole>,
}

/// More holes than that are not told one by one.
const MAX_HOLES: usize = 1000;

/// Ids from the first on, up to the second and without it, among which messages are missing and none is there.
pub type Hole = (MessageId, MessageId);

/// Messages that were passed over since the counts were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingCounts {
    pub expired: u64,
    pub damaged: u64,
    /// The running number of the first message behind those that have expired.
    pub expired_to: Option<u64>,
}

/// What came of filling the hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The hand holds what was asked for.
    Enough,
    /// The hand holds everything there is.
    End,
    /// What comes next is not in memory: `read` it and `accept` it.
    Cold,
}

impl MessageScanner {
    /// Reads from `from` on, up to `stop`.
    #[must_use]
    pub fn new(store: Arc<dyn QueueStore>, partition: i16, filter: TopicFilter, from: MessageId, stop: MessageId) -> Self {
        Self {
            store,
            partition,
            filter,
            stop,
            cursor: Cursor::at(from),
            expected: None,
            hand: VecDeque::new(),
            hand_messages: 0,
            hand_bytes: 0,
            missing: MissingCounts::default(),
            told: 0,
            holes: Vec::new(),
        }
    }

    /// Everything wanted below this id is in the hand or was handed out.
    #[must_use]
    pub fn scanned_to(&self) -> MessageId {
        self.cursor.from
    }

    #[must_use]
    pub fn is_hand_empty(&self) -> bool {
        self.hand.is_empty()
    }

    /// What was passed over since the counts were last taken.
    #[must_use]
    pub fn missing(&self) -> MissingCounts {
        self.missing
    }

    pub fn take_missing(&mut self) -> MissingCounts {
        std::mem::take(&mut self.missing)
    }

    /// Where they are missing.
    pub fn take_holes(&mut self) -> Vec<Hole> {
        std::mem::take(&mut self.holes)
    }

    /// The running number of the next message that `take` may hand out, as far as it is known.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        if self.filter.is_all() {
            self.expected.map(|number| number.saturating_sub(self.hand_messages.into()))
        } else {
            self.expected.filter(|_| self.hand.is_empty())
        }
    }

    /// Drops the hand and goes on at `from`, which has this running number, if it is known.
    pub fn reset(&mut self, from: MessageId, number: Option<u64>) {
        self.hand.clear();
        (self.hand_messages, self.hand_bytes) = (0, 0);
        self.cursor = Cursor::at(from);
        self.expected = number;
        self.told = 0;
    }

    /// The same, for these topics.
    pub fn restart(&mut self, filter: TopicFilter, from: MessageId, number: Option<u64>) {
        self.filter = filter;
        self.reset(from, number);
    }

    /// Fills the hand from memory until it holds so many messages or bytes.
    pub fn fill(&mut self, messages: u32, bytes: usize) -> Result<Fill, StoreError> {
        loop {
            if self.hand_messages >= messages || self.hand_bytes >= bytes {
                return Ok(Fill::Enough);
            }
            if self.cursor.from >= self.stop {
                return Ok(Fill::End);
            }
            match self.store.read_tail(self.partition, self.cursor.from, bytes - self.hand_bytes)? {
                TailRead::Blocks(blocks) => {
                    for block in blocks {
                        self.add(&block)?;
                    }
                }
                TailRead::End => return Ok(Fill::End),
                TailRead::Cold => return Ok(Fill::Cold),
            }
        }
    }

    /// Fills the hand, from disk where it must.
    pub async fn fill_cold(&mut self, messages: u32, bytes: usize) -> Result<Fill, StoreError> {
        loop {
            match self.fill(messages, bytes)? {
                Fill::Cold => {
                    let (store, cursor) = self.where_to_read();
                    let read = store.read(self.partition, cursor, bytes).await?;
                    if self.accept(read)? {
                        return Ok(Fill::End);
                    }
                }
                filled => return Ok(filled),
            }
        }
    }

    /// What a read outside of any lock needs.
    #[must_use]
    pub fn where_to_read(&self) -> (Arc<dyn QueueStore>, Cursor) {
        (Arc::clone(&self.store), self.cursor)
    }

    /// Takes what a read from this scanner's cursor found. True: that was the end.
    pub fn accept(&mut self, read: ReadBatch) -> Result<bool, StoreError> {
        let of = |why| read.missing.iter().filter(|m| m.why == why).map(|m| m.messages).sum::<u64>();
        let (expired, damaged, truncated) =
            (of(MissingReason::Expired) + of(MissingReason::Dropped), of(MissingReason::Damaged), of(MissingReason::Truncated));
        self.missing.damaged += damaged;
        self.told += damaged + truncated;
        if self.expected.is_none() {
            self.missing.expired += expired;
            self.told += expired;
            if damaged + truncated + expired > 0 {
                // Without a number before it this is no gap.
                self.note_hole(self.cursor.from, read.blocks.first().map_or(read.next.from, |block| block.first));
            }
        }
        // The numbers tell what has gone, also what nothing is left of; what was not told otherwise has expired.
        for block in &read.blocks {
            self.add(block)?;
        }
        let from = std::mem::replace(&mut self.cursor, read.next).from;
        if read.at_end {
            self.reach_end(from)?;
            self.told = 0;
        }
        Ok(read.at_end)
    }

    fn note_hole(&mut self, from: MessageId, to: MessageId) {
        if from < to && self.holes.len() < MAX_HOLES {
            self.holes.push((from, to));
        }
    }

    /// Nothing is left at or above the cursor: what was still expected has gone.
    fn reach_end(&mut self, from: MessageId) -> Result<(), StoreError> {
        let committed = self.store.committed(self.partition)?;
        // A later commit may have come meanwhile, which is not gone.
        if committed.last.is_none_or(|last| last < self.cursor.from) {
            self.note_gap(committed.next_number, from, self.cursor.from);
            self.expected = Some(committed.next_number);
        }
        Ok(())
    }

    /// The next message at or above `from` is `to`, of this number.
    fn note_gap(&mut self, number: u64, from: MessageId, to: MessageId) {
        let Some(gap) = self.expected.and_then(|expected| number.checked_sub(expected)).filter(|gap| *gap > 0) else { return };
        self.note_hole(from, to);
        let told = gap.min(self.told);
        self.told -= told;
        if gap > told {
            self.missing.expired += gap - told;
            self.missing.expired_to = Some(number);
        }
    }

    fn add(&mut self, block: &Arc<Block>) -> Result<(), StoreError> {
        let from = self.cursor.from;
        let wanted = self.filter.of_table(&block.topics);
        if wanted != Wanted::None {
            for part in &block.parts {
                self.add_part(part, from, wanted)?;
            }
        }
        self.note_gap(block.number, from, block.first);
        self.expected = Some(block.number + u64::from(block.count));
        self.cursor = Cursor::at(block.last.successor().max(from));
        Ok(())
    }

    fn add_part(&mut self, part: &StoredSlice, from: MessageId, wanted: Wanted) -> Result<(), StoreError> {
        if part.last < from || part.first >= self.stop {
            return Ok(());
        }
        if wanted == Wanted::All && part.first >= from && part.last < self.stop {
            self.push(part.clone());
            return Ok(());
        }
        let (filter, stop) = (self.filter.clone(), self.stop);
        let runs = part.runs(|m| m.id >= from && m.id < stop && filter.wants(m)).map_err(|error| StoreError::Damaged {
            path: format!("partition {}", self.partition).into(),
            reason: format!("messages from {} on cannot be read: {error}", part.first),
        })?;
        runs.into_iter().for_each(|run| self.push(run));
        Ok(())
    }

    fn push(&mut self, slice: StoredSlice) {
        self.hand_messages = self.hand_messages.saturating_add(slice.count);
        self.hand_bytes += slice.bytes.len();
        self.hand.push_back(slice);
    }

    /// Hands out the next messages: at most so many, and at most so many bytes unless the first alone is larger.
    pub fn take(&mut self, messages: u32, bytes: usize) -> Result<Vec<StoredSlice>, StoreError> {
        let mut taken = Vec::new();
        let (mut messages_left, mut bytes_left) = (messages, bytes);
        while messages_left > 0 {
            let Some(slice) = self.hand.pop_front() else { break };
            let (count, len) = (slice.count, slice.bytes.len());
            if !taken.is_empty() && (bytes_left == 0 || first_len(&slice) > bytes_left) {
                self.hand.push_front(slice);
                break;
            }
            let (front, rest) = slice.split_front(messages_left, bytes_left).map_err(|error| StoreError::Damaged {
                path: format!("partition {}", self.partition).into(),
                reason: error.to_string(),
            })?;
            self.hand_messages = self.hand_messages.saturating_sub(count);
            self.hand_bytes = self.hand_bytes.saturating_sub(len);
            messages_left -= front.count.min(messages_left);
            bytes_left = bytes_left.saturating_sub(front.bytes.len());
            taken.push(front);
            if let Some(rest) = rest {
                self.put_back_slice(rest);
                break;
            }
        }
        Ok(taken)
    }

    /// Puts messages that were handed out last back to the front.
    pub fn put_back(&mut self, slices: Vec<StoredSlice>) {
        slices.into_iter().rev().for_each(|slice| self.put_back_slice(slice));
    }

    fn put_back_slice(&mut self, slice: StoredSlice) {
        self.hand_messages = self.hand_messages.saturating_add(slice.count);
        self.hand_bytes += slice.bytes.len();
        self.hand.push_front(slice);
    }
}

fn first_len(slice: &StoredSlice) -> usize {
    match slice.messages().next() {
        Some(Ok(message)) => message.raw.len(),
        _ => slice.bytes.len(),
    }
}

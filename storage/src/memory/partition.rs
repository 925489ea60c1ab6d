//! One partition of the memory store: a list of blocks in the order of their ids.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, TopicTable};

use crate::store::{
    Block, Committed, Count, Cursor, IdRun, IdRuns, Missing, MissingReason, PartitionStatistics, ReadBatch, TailRead,
};

/// What is known of one append.
#[derive(Debug)]
pub(super) struct Entry {
    ids: IdRuns,
    first: MessageId,
    last: MessageId,
    pub(super) count: u32,
    pub(super) state: State,
    /// Rises from append to append, over all partitions.
    pub(super) order: u64,
}

/// Whether the messages of an entry are still there.
#[derive(Debug)]
pub(super) enum State {
    Here(Arc<Block>),
    Gone(MissingReason),
}

impl Entry {
    pub(super) fn block(&self) -> Option<&Arc<Block>> {
        match &self.state {
            State::Here(block) => Some(block),
            State::Gone(_) => None,
        }
    }

    /// Messages at or above `from`.
    fn count_from(&self, from: MessageId) -> u64 {
        if from <= self.first { u64::from(self.count) } else { self.ids.iter().filter(|id| *id >= from).count() as u64 }
    }
}

/// The messages of a partition, and what was there once.
#[derive(Debug, Default)]
pub(super) struct Partition {
    /// In the order of their ids. What is gone keeps its place, so that readers can be told what they missed.
    pub(super) entries: Vec<Entry>,
    /// New ids are above it.
    floor: Option<MessageId>,
    last: Option<MessageId>,
    next_number: u64,
    /// No block that is here arrived earlier. Milliseconds.
    pub(super) oldest_arrival_ms: Option<i64>,
}

impl Partition {
    pub(super) fn append(&mut self, partition: i16, batch: PutBatch, now_ms: i64, order: u64) -> IdRuns {
        let topics = batch.topics().clone();
        let mut ids = IdRuns::default();
        let floor = &mut self.floor;
        let sealed = batch.seal(partition, || {
            let id = MessageId::next(*floor, now_ms);
            *floor = Some(id);
            note(&mut ids, id);
            id
        });
        let Some(slice) = sealed else { return ids };
        let (first, last, count) = (slice.first, slice.last, slice.count);
        let number = self.next_number;
        let block = Block { partition, number, arrival_ms: now_ms, first, last, count, topics, parts: vec![slice] };
        self.next_number += u64::from(count);
        self.last = Some(last);
        self.oldest_arrival_ms = Some(self.oldest_arrival_ms.map_or(now_ms, |oldest| oldest.min(now_ms)));
        self.entries.push(Entry { ids: ids.clone(), first, last, count, state: State::Here(Arc::new(block)), order });
        ids
    }

    pub(super) fn committed(&self) -> Committed {
        Committed { last: self.last, next_number: self.next_number }
    }

    pub(super) fn raise_ids(&mut self, floor: MessageId) {
        self.floor = self.floor.max(Some(floor));
    }

    pub(super) fn truncate(&mut self) {
        for entry in &mut self.entries {
            if entry.block().is_some() {
                entry.state = State::Gone(MissingReason::Truncated);
            }
        }
        self.oldest_arrival_ms = None;
    }

    /// The entries from the one on that holds the first id at or above `from`.
    fn from(&self, from: MessageId) -> &[Entry] {
        let begin = self.entries.partition_point(|entry| entry.last < from);
        self.entries.get(begin..).unwrap_or_default()
    }

    pub(super) fn read_tail(&self, from: MessageId, max_bytes: usize, tail_bytes: usize) -> TailRead {
        let entries = self.from(from);
        // What is gone is told by `read`; so is what lies below the bytes that the tail holds.
        let bytes = || entries.iter().filter_map(Entry::block).map(|block| block.byte_len()).sum::<usize>();
        match entries.first() {
            None => TailRead::End,
            Some(first) if first.block().is_none() => TailRead::Cold,
            Some(_) if tail_bytes != super::WHOLE_TAIL && bytes() > tail_bytes => TailRead::Cold,
            Some(_) => {
                let mut room = Room::new(max_bytes);
                let here = entries.iter().map_while(Entry::block).take_while(|block| room.takes(block));
                TailRead::Blocks(here.cloned().collect())
            }
        }
    }

    pub(super) fn read(&self, from: MessageId, max_bytes: usize) -> ReadBatch {
        let mut found = ReadBatch { blocks: Vec::new(), next: Cursor::at(from), at_end: true, missing: Vec::new() };
        let mut room = Room::new(max_bytes);
        for entry in self.from(from) {
            match &entry.state {
                State::Here(block) if room.takes(block) => found.blocks.push(Arc::clone(block)),
                State::Here(_) => {
                    found.at_end = false;
                    break;
                }
                State::Gone(why) => add_missing(&mut found.missing, *why, entry.count_from(from)),
            }
            found.next = Cursor::at(entry.last.successor());
        }
        found
    }

    pub(super) fn count_from(&self, from: MessageId, topics: &[Vec<u8>], look_at_most: u64) -> Count {
        let mut left_to_look = look_at_most;
        let mut sum = Count { messages: 0, exact: true };
        for entry in self.from(from) {
            let Some(block) = entry.block() else { continue };
            let at_or_above = entry.count_from(from);
            let by_table = counted(&block.topics, topics);
            let whole = at_or_above == u64::from(entry.count);
            match by_table {
                _ if topics.is_empty() => sum.messages += at_or_above,
                Some(counted) if whole || counted == 0 => sum.messages += counted,
                _ if u64::from(entry.count) <= left_to_look => {
                    left_to_look -= u64::from(entry.count);
                    sum.messages += looked_at(block, from, topics);
                }
                upper_bound => {
                    sum.messages += upper_bound.unwrap_or(at_or_above).min(at_or_above);
                    sum.exact = false;
                }
            }
        }
        sum
    }

    pub(super) fn statistics(&self) -> PartitionStatistics {
        let mut sum = PartitionStatistics::default();
        for block in self.entries.iter().filter_map(Entry::block) {
            sum.first.get_or_insert(block.first);
            sum.last = Some(block.last);
            sum.messages += u64::from(block.count);
            sum.bytes += block.byte_len() as u64;
        }
        sum
    }

    pub(super) fn byte_len(&self) -> u64 {
        self.statistics().bytes
    }
}

/// Adds an id that follows those noted already.
fn note(runs: &mut IdRuns, id: MessageId) {
    match runs.0.last_mut() {
        Some(run) if run.first.timestamp == id.timestamp => run.count += 1,
        _ => runs.0.push(IdRun { first: id, count: 1 }),
    }
}

/// Bytes that a read may still return; the first block always fits.
struct Room {
    max_bytes: usize,
    taken: usize,
    any: bool,
}

impl Room {
    fn new(max_bytes: usize) -> Self {
        Self { max_bytes, taken: 0, any: false }
    }

    fn takes(&mut self, block: &Block) -> bool {
        let with_it = self.taken.saturating_add(block.byte_len());
        let fits = !self.any || with_it <= self.max_bytes;
        if fits {
            (self.taken, self.any) = (with_it, true);
        }
        fits
    }
}

fn add_missing(missing: &mut Vec<Missing>, why: MissingReason, messages: u64) {
    match missing.last_mut() {
        Some(last) if last.why == why => last.messages += messages,
        _ => missing.push(Missing { why, messages }),
    }
}

/// How many messages have one of `wanted`, if the table knows.
fn counted(table: &TopicTable, wanted: &[Vec<u8>]) -> Option<u64> {
    match table {
        TopicTable::Few(known) => {
            let of_wanted = known.iter().filter(|(topic, _)| is_wanted(topic, wanted));
            Some(of_wanted.map(|(_, count)| u64::from(*count)).sum())
        }
        TopicTable::Many => None,
    }
}

fn looked_at(block: &Block, from: MessageId, wanted: &[Vec<u8>]) -> u64 {
    let messages = block.parts.iter().flat_map(|part| part.messages()).filter_map(Result::ok);
    messages.filter(|message| message.id >= from && is_wanted(message.topic, wanted)).count() as u64
}

fn is_wanted(topic: &[u8], wanted: &[Vec<u8>]) -> bool {
    wanted.iter().any(|one| **one == *topic)
}

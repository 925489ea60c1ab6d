//! Counting messages without reading them, as far as running numbers and the topics that blocks note allow.

use std::io;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{StoredSlice, TopicTable};

use super::format::block::BlockHeader;
use super::format::header::LogPosition;
use super::format::table::PartitionMark;
use super::partition::TailBlock;
use super::queue::QueueLog;
use super::reader::count_from;
use super::walk::{Met, Walk};
use crate::store::{Count, Cursor, MissingReason, PartitionStatistics, StoreError};

/// A count by topic goes through so many bytes of the log at most.
const WALKED: u64 = 256 << 20;

/// Messages that are there.
#[derive(Debug, Default)]
struct Live {
    statistics: PartitionStatistics,
}

impl Live {
    fn add(&mut self, header: &BlockHeader, messages: u64) {
        self.statistics.first.get_or_insert(header.first);
        self.statistics.last = Some(header.last);
        self.statistics.messages += messages;
        self.statistics.bytes += u64::from(header.body_len);
    }
}

impl QueueLog {
    /// The running number of the first message at or above `from`. If it was in a segment that is gone, a lower one: that of an entry
    /// before it, as far as the index still has some, else 0.
    pub(super) fn number_from(&self, number: i16, from: MessageId, mark: &PartitionMark) -> io::Result<u64> {
        if let Some((found, _)) = self.tail_number(number, from) {
            return Ok(found);
        }
        let mut walk = loop {
            let Some(start) = self.locate(number, from, None)?.filter(|start| !start.is_below_oldest) else {
                return Ok(self.index_floor(number, from).map_or(0, |entry| entry.number));
            };
            if let Some(walk) = Walk::begin_at(self, number, from, start, *mark)? {
                break walk;
            }
        };
        loop {
            match walk.next_block()? {
                Met::Block { header, at } if header.last >= from => {
                    return Ok(header.end_number() - walk.count_from(&header, at, from)?);
                }
                Met::Block { .. } | Met::Gap { .. } | Met::SegmentEnd { .. } => {}
                Met::End => return Ok(mark.committed.next_number),
            }
        }
    }

    /// The same from memory, with the place of the block.
    fn tail_number(&self, number: i16, from: MessageId) -> Option<(u64, LogPosition)> {
        let partition = self.partition(number)?;
        let entry = partition.tail_from(from)?.next()?;
        let block = &entry.block;
        Some((block.number + u64::from(block.count) - count_from(block, from), entry.at))
    }

    /// Counts messages at or above `from`. Blocks.
    pub(super) fn count(&self, number: i16, from: MessageId, topics: &[Vec<u8>], look_at_most: u64) -> Result<Count, StoreError> {
        if let Some(count) = self.count_in_tail(number, from, topics, look_at_most) {
            return Ok(count);
        }
        let counted = if topics.is_empty() {
            let live = self.live(number, from);
            live.map(|live| Count { messages: live.statistics.messages, exact: true })
        } else {
            self.count_topics(number, from, topics, look_at_most)
        };
        counted.map_err(|error| self.shared.error("read", &self.dir, &error))
    }

    /// What is there of a partition. Blocks.
    pub(super) fn partition_statistics(&self, number: i16) -> Result<PartitionStatistics, StoreError> {
        let live = self.live(number, MessageId::MIN).map_err(|error| self.shared.error("read", &self.dir, &error))?;
        Ok(live.statistics)
    }

    /// Goes along the blocks at or above `from` until one that has not expired, behind which arrivals rise: all that follows is there,
    /// and need not be looked at.
    fn live(&self, number: i16, from: MessageId) -> io::Result<Live> {
        let now_ms = self.shared.expiry_now_ms();
        let mark = self.partition(number).map(|p| p.mark).unwrap_or_default();
        let mut live = Live::default();
        let from = mark.trim.last.map_or(from, |last| from.max(last.successor()));
        if mark.committed.last.is_none_or(|last| from > last) {
            return Ok(live);
        }
        let last_step = self.last_step();
        let Some(mut walk) = Walk::begin(self, number, Cursor::at(from), mark)? else { return Ok(live) };
        loop {
            match walk.next_block()? {
                Met::Block { header, .. } if header.last < from => {}
                Met::Block { header, .. } if self.is_expired(header.arrival_ms, now_ms) => {
                    self.note_expired(&header);
                }
                Met::Block { header, at } => {
                    let messages = walk.count_from(&header, at, from)?;
                    if at < last_step {
                        live.add(&header, messages);
                        continue;
                    }
                    let behind = mark.committed.next_number.saturating_sub(header.end_number());
                    live.add(&header, messages + behind);
                    live.statistics.last = mark.committed.last;
                    live.statistics.bytes += mark.bytes.saturating_sub(header.bytes_before + u64::from(header.body_len));
                    return Ok(live);
                }
                Met::Gap { .. } | Met::SegmentEnd { .. } => {}
                Met::End => return Ok(live),
            }
        }
    }

    /// A block has expired: the front of its partition may end behind it now.
    pub(super) fn note_expired(&self, header: &BlockHeader) {
        let gone = self
            .partition(header.partition)
            .map_or(0, |mut partition| partition.expired(header.number, header.trim_behind(MissingReason::Expired)));
        self.shared.counters.add(|c| &c.expired_messages, gone);
    }

    fn count_topics(&self, number: i16, from: MessageId, topics: &[Vec<u8>], look_at_most: u64) -> io::Result<Count> {
        let now_ms = self.shared.expiry_now_ms();
        let mark = self.partition(number).map(|p| p.mark).unwrap_or_default();
        let from = mark.trim.last.map_or(from, |last| from.max(last.successor()));
        let mut count = Count { messages: 0, exact: true };
        if mark.committed.last.is_none_or(|last| from > last) {
            return Ok(count);
        }
        let Some(mut walk) = Walk::begin(self, number, Cursor::at(from), mark)? else { return Ok(count) };
        let mut left_to_look = look_at_most;
        loop {
            match walk.next_block()? {
                Met::Block { header, .. } if header.last < from => {}
                Met::Block { header, .. } if self.is_expired(header.arrival_ms, now_ms) => self.note_expired(&header),
                Met::Block { header, at } => {
                    let by_topic = self.count_block(&mut walk, &header, at, from, topics, &mut left_to_look)?;
                    count.messages += by_topic.messages;
                    count.exact &= by_topic.exact;
                    if walk.walked() > WALKED {
                        count.messages += mark.committed.next_number.saturating_sub(header.end_number());
                        count.exact &= mark.committed.next_number <= header.end_number();
                        return Ok(count);
                    }
                }
                Met::Gap { .. } | Met::SegmentEnd { .. } => {}
                Met::End => return Ok(count),
            }
        }
    }

    /// By the topics that the block notes, if all of it counts; else one by one.
    fn count_block(
        &self,
        walk: &mut Walk<'_>,
        header: &BlockHeader,
        at: LogPosition,
        from: MessageId,
        topics: &[Vec<u8>],
        left_to_look: &mut u64,
    ) -> io::Result<Count> {
        match by_table(&header.topics, topics, from <= header.first, header.count, left_to_look) {
            ByTable::Exactly(messages) => Ok(Count { messages, exact: true }),
            ByTable::AtMost(messages) => {
                let at_or_above = walk.count_from(header, at, from)?;
                Ok(Count { messages: messages.min(at_or_above), exact: false })
            }
            ByTable::Look => {
                let Some(bytes) = walk.body(header, at)? else { return Ok(Count { messages: 0, exact: true }) };
                let part = StoredSlice { bytes, count: header.count, first: header.first, last: header.last };
                Ok(Count { messages: looked_at([&part].into_iter(), from, topics), exact: true })
            }
        }
    }

    /// Counts in memory, if all from `from` on is there.
    fn count_in_tail(&self, number: i16, from: MessageId, topics: &[Vec<u8>], look_at_most: u64) -> Option<Count> {
        let now_ms = self.shared.expiry_now_ms();
        let last_step = self.last_step();
        let partition = self.partition(number)?;
        let next_number = partition.mark.committed.next_number;
        let tail: Vec<TailBlock> = partition.tail_from(from)?.cloned().collect();
        drop(partition);
        let mut count = Count { messages: 0, exact: true };
        let mut left_to_look = look_at_most;
        for entry in tail.iter().filter(|entry| !self.is_expired(entry.block.arrival_ms, now_ms)) {
            let block = &entry.block;
            let at_or_above = count_from(block, from);
            if topics.is_empty() {
                count.messages += at_or_above;
                if entry.at >= last_step {
                    count.messages += next_number.saturating_sub(block.number + u64::from(block.count));
                    break;
                }
                continue;
            }
            match by_table(&block.topics, topics, from <= block.first, block.count, &mut left_to_look) {
                ByTable::Exactly(messages) => count.messages += messages,
                ByTable::AtMost(messages) => {
                    count.messages += messages.min(at_or_above);
                    count.exact = false;
                }
                ByTable::Look => count.messages += looked_at(block.parts.iter(), from, topics),
            }
        }
        Some(count)
    }
}

/// What the topics that a block notes say of how many of its messages are wanted.
enum ByTable {
    Exactly(u64),
    /// So many at most, and there were too many looked at before.
    AtMost(u64),
    /// They have to be looked at.
    Look,
}

fn by_table(table: &TopicTable, wanted: &[Vec<u8>], is_whole: bool, count: u32, left_to_look: &mut u64) -> ByTable {
    let noted = noted(table, wanted);
    match noted {
        Some(messages) if is_whole || messages == 0 => ByTable::Exactly(messages),
        _ if u64::from(count) > *left_to_look => ByTable::AtMost(noted.unwrap_or(u64::from(count))),
        _ => {
            *left_to_look -= u64::from(count);
            ByTable::Look
        }
    }
}

fn looked_at<'a>(parts: impl Iterator<Item = &'a StoredSlice>, from: MessageId, wanted: &[Vec<u8>]) -> u64 {
    let messages = parts.flat_map(StoredSlice::messages).filter_map(Result::ok);
    messages.filter(|message| message.id >= from && is_wanted(message.topic, wanted)).count() as u64
}

/// How many messages have one of `wanted`, if the table knows.
fn noted(table: &TopicTable, wanted: &[Vec<u8>]) -> Option<u64> {
    let TopicTable::Few(known) = table else { return None };
    Some(known.iter().filter(|(topic, _)| is_wanted(topic, wanted)).map(|(_, count)| u64::from(*count)).sum())
}

fn is_wanted(topic: &[u8], wanted: &[Vec<u8>]) -> bool {
    wanted.iter().any(|one| **one == *topic)
}

//! Reading a partition: from memory, or going through the log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;

use super::format::block::BlockHeader;
use super::format::header::LogPosition;
use super::format::table::{PartitionMark, Trim};
use super::queue::QueueLog;
use super::walk::{Met, Walk};
use crate::store::{Block, Cursor, Missing, MissingReason, PlaceHint, ReadBatch, StoreError};

/// A read that has something in hand goes through so many bytes of the log at most.
const WALKED_WITH_BLOCKS: u64 = 8 << 20;

/// A read that has nothing in hand pauses at the end of a segment once it has gone through so many bytes.
const WALKED_WITHOUT: u64 = 32 << 20;

/// What a read has so far.
#[derive(Debug)]
struct Reading {
    from: MessageId,
    max_bytes: usize,
    bytes: usize,
    batch: ReadBatch,
}

impl Reading {
    fn new(from: Cursor, max_bytes: usize) -> Self {
        let batch = ReadBatch { blocks: Vec::new(), next: from, at_end: false, missing: Vec::new() };
        Self { from: from.from, max_bytes, bytes: 0, batch }
    }

    /// Does a block of so many bytes still fit? The first always does.
    fn fits(&self, bytes: usize) -> bool {
        self.batch.blocks.is_empty() || self.bytes.saturating_add(bytes) <= self.max_bytes
    }

    fn push(&mut self, block: Arc<Block>, at: LogPosition) {
        self.bytes = self.bytes.saturating_add(block.byte_len());
        self.pass(block.last, at);
        self.batch.blocks.push(block);
    }

    /// The reader goes on behind the block at `at`.
    fn pass(&mut self, last: MessageId, at: LogPosition) {
        self.go_on_at(last.successor());
        if self.batch.next.from == last.successor() {
            self.batch.next.hint = Some(PlaceHint { epoch: at.epoch, offset: at.offset });
        }
    }

    fn go_on_at(&mut self, from: MessageId) {
        if from > self.batch.next.from {
            self.batch.next = Cursor::at(from);
        }
    }

    fn miss(&mut self, why: MissingReason, messages: u64) {
        match self.batch.missing.last_mut() {
            _ if messages == 0 => {}
            Some(last) if last.why == why => last.messages += messages,
            _ => self.batch.missing.push(Missing { why, messages }),
        }
    }

    fn at_end(mut self, mark: &PartitionMark) -> ReadBatch {
        if let Some(last) = mark.committed.last {
            self.go_on_at(last.successor());
        }
        self.batch.at_end = true;
        self.batch
    }
}

impl QueueLog {
    /// Reads from memory, if the position is there.
    pub(super) fn read_from_tail(&self, number: i16, from: MessageId, max_bytes: usize) -> Option<ReadBatch> {
        let now_ms = self.shared.expiry_now_ms();
        let mut reading = Reading::new(Cursor::at(from), max_bytes);
        let mut partition = self.partition(number)?;
        let mark = partition.mark;
        if mark.committed.last.is_none_or(|last| from > last) {
            reading.batch.at_end = true;
            return Some(reading.batch);
        }
        let mut expired = Vec::new();
        for entry in partition.tail_from(from)? {
            let block = &entry.block;
            if self.is_expired(block.arrival_ms, now_ms) {
                reading.miss(MissingReason::Expired, count_from(block, from));
                reading.pass(block.last, entry.at);
                let number = block.number + u64::from(block.count);
                let end = Trim { number, last: Some(block.last), bytes: entry.end_bytes, why: MissingReason::Expired };
                expired.push((block.number, end));
            } else if reading.fits(block.byte_len()) {
                reading.push(Arc::clone(block), entry.at);
            } else {
                return Some(reading.batch);
            }
        }
        let gone: u64 = expired.into_iter().map(|(number, end)| partition.expired(number, end)).sum();
        drop(partition);
        self.shared.counters.add(|c| &c.expired_messages, gone);
        Some(reading.at_end(&mark))
    }

    /// Reads by going through the log. Blocks.
    pub(super) fn read_cold(&self, number: i16, from: Cursor, max_bytes: usize) -> Result<ReadBatch, StoreError> {
        // It may have come back into memory meanwhile, or the end may have been reached.
        if let Some(found) = self.read_from_tail(number, from.from, max_bytes) {
            return Ok(found);
        }
        self.is_read_cold.store(true, Relaxed);
        self.go_through(number, from, max_bytes).map_err(|error| self.shared.error("read", &self.dir, &error))
    }

    fn go_through(&self, number: i16, from: Cursor, max_bytes: usize) -> io::Result<ReadBatch> {
        let now_ms = self.shared.expiry_now_ms();
        let (mark, mut reading, walk) = loop {
            let mark = self.partition(number).map(|p| p.mark).unwrap_or_default();
            let mut reading = Reading::new(from, max_bytes);
            self.pass_trimmed(&mut reading, number, &mark)?;
            let walk = Walk::begin(self, number, reading.batch.next, mark)?;
            // What has gone since the mark was taken would be passed without a word.
            if self.partition(number).is_none_or(|p| p.mark.trim == mark.trim) {
                break (mark, reading, walk);
            }
        };
        let Some(mut walk) = walk else { return Ok(reading.at_end(&mark)) };
        // What is missing before a block that begins at or below the position is not the reader's.
        let mut gap = 0;
        loop {
            match walk.next_block()? {
                Met::Gap { messages } => gap += messages,
                Met::SegmentEnd { last } => {
                    let moved = last.is_some_and(|last| last >= reading.batch.next.from);
                    if let Some(last) = last.filter(|_| moved) {
                        self.miss_gap(&mut reading, number, &mark, walk.number(), std::mem::take(&mut gap));
                        reading.go_on_at(last.successor());
                    }
                    if moved && walk.walked() > WALKED_WITHOUT {
                        return Ok(reading.batch);
                    }
                }
                Met::End => {
                    self.miss_gap(&mut reading, number, &mark, walk.number(), gap);
                    return Ok(reading.at_end(&mark));
                }
                Met::Block { header, at } => {
                    let gap = std::mem::take(&mut gap);
                    if header.first > reading.from {
                        self.miss_gap(&mut reading, number, &mark, header.number, gap);
                    }
                    if !self.take_block(&mut walk, &mut reading, &header, at, now_ms)? {
                        return Ok(reading.batch);
                    }
                }
            }
            if !reading.batch.blocks.is_empty() && walk.walked() > WALKED_WITH_BLOCKS {
                return Ok(reading.batch);
            }
        }
    }

    /// Tells of `messages` messages up to the running number `end` that were not found: damage, unless they have gone since `mark`.
    fn miss_gap(&self, reading: &mut Reading, number: i16, mark: &PartitionMark, end: u64, messages: u64) {
        let first = end.saturating_sub(messages).max(mark.trim.number);
        let trim = self.partition(number).map(|p| p.mark.trim).unwrap_or_default();
        let gone_meanwhile = trim.number.min(end).saturating_sub(first);
        reading.miss(trim.why, gone_meanwhile);
        reading.miss(MissingReason::Damaged, end.saturating_sub(first + gone_meanwhile));
    }

    /// Tells of messages at or above the position that the trim has taken, and goes on behind them.
    fn pass_trimmed(&self, reading: &mut Reading, number: i16, mark: &PartitionMark) -> io::Result<()> {
        let Trim { number: trimmed, last: Some(last), why, .. } = mark.trim else { return Ok(()) };
        if reading.from <= last {
            reading.miss(why, trimmed.saturating_sub(self.number_from(number, reading.from, mark)?));
            reading.go_on_at(last.successor());
        }
        Ok(())
    }

    /// Takes a block that the walk has met. False if the read ends before it.
    fn take_block(
        &self,
        walk: &mut Walk<'_>,
        reading: &mut Reading,
        header: &BlockHeader,
        at: LogPosition,
        now_ms: i64,
    ) -> io::Result<bool> {
        if header.last < reading.batch.next.from {
            return Ok(true);
        }
        if self.is_expired(header.arrival_ms, now_ms) {
            reading.miss(MissingReason::Expired, walk.count_from(header, at, reading.from)?);
            reading.pass(header.last, at);
            self.note_expired(header);
            return Ok(true);
        }
        if !reading.fits(usize::try_from(header.body_len).unwrap_or(usize::MAX)) {
            return Ok(false);
        }
        let Some(bytes) = walk.body(header, at)? else {
            reading.miss(MissingReason::Damaged, u64::from(header.count));
            reading.pass(header.last, at);
            return Ok(true);
        };
        let part = StoredSlice { bytes, count: header.count, first: header.first, last: header.last };
        let block = Block {
            partition: header.partition,
            number: header.number,
            arrival_ms: header.arrival_ms,
            first: header.first,
            last: header.last,
            count: header.count,
            topics: header.topics.clone(),
            parts: vec![part],
        };
        reading.push(Arc::new(block), at);
        Ok(true)
    }
}

/// Messages of a block at or above `from`.
pub(super) fn count_from(block: &Block, from: MessageId) -> u64 {
    if from <= block.first {
        return u64::from(block.count);
    }
    let messages = block.parts.iter().flat_map(StoredSlice::messages).filter_map(Result::ok);
    messages.filter(|message| message.id >= from).count() as u64
}

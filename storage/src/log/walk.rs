//! Going through the log along the blocks of one partition.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;

use super::format::block::{BlockHeader, Kind};
use super::format::header::LogPosition;
use super::format::table::PartitionMark;
use super::locate::Start;
use super::queue::QueueLog;
use super::scan::{block_at, body_of, lone_block_at, next_block};
use super::segment::Segment;
use super::source::Source;
use crate::store::Cursor;

/// After so many bytes without a block of the partition the index is asked for the next one.
const LOST: u64 = 1 << 20;

/// Behind a shorter block the directory of the window is asked, behind a longer one headers are read without their surroundings.
const DENSE: u64 = 16 << 10;
const SPARSE: u64 = 256 << 10;

/// Shorter bodies are copied out of their windows. Bytes.
const COPIED: usize = 64 << 10;

/// A reader's way through the log, up to what was committed when it began.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    log: &'a QueueLog,
    partition: i16,
    mark: PartitionMark,
    segment: Arc<Segment>,
    source: Source<'a>,
    offset: u64,
    /// The running number of the partition's next message.
    number: u64,
    /// What comes next is likely to begin here.
    next_id: MessageId,
    walked: u64,
    since_block: u64,
    /// Bytes of the block that was met last.
    last_len: u64,
    pending: Option<(BlockHeader, LogPosition)>,
}

/// What comes next on the way.
#[derive(Debug)]
pub(super) enum Met {
    Block {
        header: BlockHeader,
        at: LogPosition,
    },
    /// Messages whose blocks are damaged or missing.
    Gap {
        messages: u64,
    },
    /// A segment ends. Up to `last`, everything has been passed.
    SegmentEnd {
        last: Option<MessageId>,
    },
    End,
}

impl<'a> Walk<'a> {
    /// Begins at the first message at or above the cursor, or before. `None` if there is nothing.
    pub(super) fn begin(log: &'a QueueLog, partition: i16, from: Cursor, mark: PartitionMark) -> io::Result<Option<Self>> {
        while let Some(start) = log.locate(partition, from.from, from.hint)? {
            if let Some(walk) = Self::begin_at(log, partition, from.from, start, mark)? {
                return Ok(Some(walk));
            }
        }
        Ok(None)
    }

    /// Begins at a place. `None` if its segment is gone meanwhile: what comes behind it is to be located anew.
    pub(super) fn begin_at(
        log: &'a QueueLog,
        partition: i16,
        from: MessageId,
        start: Start,
        mark: PartitionMark,
    ) -> io::Result<Option<Self>> {
        let Some(segment) = log.segments.get(start.at.epoch) else { return Ok(None) };
        let source = log.source(&segment)?;
        Ok(Some(Self {
            log,
            partition,
            mark,
            segment,
            source,
            offset: start.at.offset,
            number: start.number,
            next_id: from,
            walked: 0,
            since_block: 0,
            last_len: u64::MAX,
            pending: None,
        }))
    }

    /// The running number of the partition's next message.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes gone through so far.
    pub(super) fn walked(&self) -> u64 {
        self.walked
    }

    pub(super) fn next_block(&mut self) -> io::Result<Met> {
        if let Some((header, at)) = self.pending.take() {
            return Ok(self.meet(header, at));
        }
        loop {
            if self.number >= self.mark.committed.next_number {
                return Ok(Met::End);
            }
            if self.offset >= self.source.end() {
                return self.enter_next_segment();
            }
            if self.since_block > LOST {
                self.since_block = 0;
                if self.jump()? {
                    continue;
                }
            }
            if self.last_len < DENSE && self.pass_others()? {
                continue;
            }
            let Some(header) = self.block_here()? else {
                self.pass_damage()?;
                continue;
            };
            let at = LogPosition { epoch: self.segment.epoch, offset: self.offset };
            self.last_len = header.total_len();
            self.advance(header.total_len());
            if header.kind == Kind::Messages && header.partition == self.partition && header.end_number() > self.number {
                self.since_block = 0;
                if header.number > self.number {
                    let messages = header.number - self.number;
                    self.number = header.number;
                    self.pending = Some((header, at));
                    return Ok(Met::Gap { messages });
                }
                return Ok(self.meet(header, at));
            }
        }
    }

    fn block_here(&mut self) -> io::Result<Option<BlockHeader>> {
        let find = if self.last_len >= SPARSE { lone_block_at } else { block_at };
        find(&mut self.source, &self.segment.place, self.offset)
    }

    /// Passes blocks of other partitions, as far as the window goes. False if there are none.
    fn pass_others(&mut self) -> io::Result<bool> {
        let directory = self.source.directory(&self.segment.place, self.offset)?;
        let next = directory.and_then(|directory| directory.next(self.partition, self.offset));
        let others = next.map_or(0, |next| next.min(self.source.end()).saturating_sub(self.offset));
        self.advance(others);
        Ok(others > 0)
    }

    fn meet(&mut self, header: BlockHeader, at: LogPosition) -> Met {
        self.number = header.end_number();
        self.next_id = header.last.successor();
        Met::Block { header, at }
    }

    fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
        self.walked = self.walked.saturating_add(bytes);
        self.since_block = self.since_block.saturating_add(bytes);
    }

    /// Goes on at the next block behind damage.
    fn pass_damage(&mut self) -> io::Result<()> {
        self.log.report_damage(&self.segment, self.offset, "a part of the log is damaged");
        let end = self.source.end();
        let behind = next_block(&mut self.source, &self.segment.place, self.offset + 1, end)?;
        let next = behind.map_or(end, |(offset, _)| offset);
        self.advance(next - self.offset);
        Ok(())
    }

    /// Goes to the partition's next block at once, if the index knows where it is.
    fn jump(&mut self) -> io::Result<bool> {
        let Some(entry) = self.log.entry_of(self.partition, self.next_id, self.number)? else { return Ok(false) };
        let here = LogPosition { epoch: self.segment.epoch, offset: self.offset };
        let Some(segment) = self.log.segments.get(entry.at.epoch).filter(|_| entry.at >= here) else { return Ok(false) };
        if segment.epoch != self.segment.epoch {
            self.source = self.log.source(&segment)?;
            self.segment = segment;
        }
        self.offset = entry.at.offset;
        Ok(true)
    }

    /// The last segment that began before the partition's next message was committed: between here and there is nothing of it.
    fn enter_next_segment(&mut self) -> io::Result<Met> {
        let above = self.log.segments.above(self.segment.epoch);
        let Some(next) = above.first() else {
            let messages = self.mark.committed.next_number.saturating_sub(self.number);
            self.number = self.mark.committed.next_number;
            return Ok(if messages > 0 { Met::Gap { messages } } else { Met::End });
        };
        if self.jump()? {
            return Ok(Met::SegmentEnd { last: None });
        }
        let mark = Segment::mark_of(&mut self.log.header_source(next)?, self.partition)?;
        let mut entered = Arc::clone(next);
        let mut last = None;
        if let Some(mark) = mark {
            last = mark.committed.last;
            let messages = mark.committed.next_number.saturating_sub(self.number);
            if messages > 0 {
                self.number = mark.committed.next_number;
                return Ok(Met::Gap { messages });
            }
            let number = self.number;
            if let Some((further, _)) =
                self.log.last_segment(&above, self.partition, &|mark: &PartitionMark| mark.committed.next_number <= number)?
            {
                entered = further;
            }
        }
        self.source = self.log.source(&entered)?;
        self.offset = entered.data_start;
        self.segment = entered;
        Ok(Met::SegmentEnd { last })
    }

    /// The body of a block that was met; `None` if it is damaged.
    pub(super) fn body(&mut self, header: &BlockHeader, at: LogPosition) -> io::Result<Option<Bytes>> {
        let body = body_of(&mut self.source, at.offset, header)?;
        if body.is_none() {
            self.log.report_damage(&self.segment, at.offset, "the messages of a block are damaged");
        }
        // A slice keeps all of its window in memory: not worth it for a small part of one.
        Ok(body.map(|body| if body.len() < COPIED { Bytes::copy_from_slice(&body) } else { body }))
    }

    /// Messages of a block that was met at or above `from`; all of them, if it is damaged.
    pub(super) fn count_from(&mut self, header: &BlockHeader, at: LogPosition, from: MessageId) -> io::Result<u64> {
        if from <= header.first {
            return Ok(u64::from(header.count));
        }
        let Some(bytes) = self.body(header, at)? else { return Ok(u64::from(header.count)) };
        let part = StoredSlice { bytes, count: header.count, first: header.first, last: header.last };
        Ok(part.messages().filter_map(Result::ok).filter(|message| message.id >= from).count() as u64)
    }
}

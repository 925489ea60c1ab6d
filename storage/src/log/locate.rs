//! Finding the place in the log from which a reader of a partition has to go.

use std::io;
use std::sync::Arc;

use hqueue_protocol::id::MessageId;

use super::files::FileKey;
use super::format::header::LogPosition;
use super::format::table::PartitionMark;
use super::queue::QueueLog;
use super::scan::{block_at, lone_block_at};
use super::segment::{IndexEntry, Segment};
use super::source::Source;
use crate::store::PlaceHint;

/// A place from which on everything of the partition at or above an id is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) at: LogPosition,
    /// The running number of the partition's next message behind that place.
    pub(super) number: u64,
    /// Messages at or above the id were in segments that are gone.
    pub(super) is_below_oldest: bool,
}

/// Where an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    /// An entry in memory: it was right when it was made.
    Memory,
    /// An entry of the index, which may be wrong.
    Index,
}

impl Start {
    const fn at(at: LogPosition, number: u64) -> Self {
        Self { at, number, is_below_oldest: false }
    }
}

impl QueueLog {
    /// A source of the committed bytes of a segment, through the shared windows.
    pub(super) fn source(&self, segment: &Segment) -> io::Result<Source<'_>> {
        let key = FileKey { log: self.number, epoch: segment.epoch };
        Ok(Source::cached(self.open_segment(segment)?, segment.end(), &self.shared.windows, key))
    }

    /// Where to begin for the first message of the partition at or above `from`. `None` if there is no segment.
    pub(super) fn locate(&self, partition: i16, from: MessageId, hint: Option<PlaceHint>) -> io::Result<Option<Start>> {
        if let Some(start) = self.by_hint(partition, from, hint)? {
            return Ok(Some(start));
        }
        if let Some((entry, told_by)) = self.floor_entry(partition, from)
            && self.names_block(partition, entry, told_by)?
        {
            return Ok(Some(Start::at(entry.at, entry.number)));
        }
        self.by_headers(partition, from)
    }

    /// Is the block that an entry names there? If it is another one, or none, the index is wrong.
    fn names_block(&self, partition: i16, entry: IndexEntry, told_by: Teller) -> io::Result<bool> {
        let Some(segment) = self.segments.get(entry.at.epoch) else { return Ok(false) };
        let block = block_at(&mut self.source(&segment)?, &segment.place, entry.at.offset)?;
        let is_it =
            block.is_some_and(|block| (block.partition, block.number, block.first) == (partition, entry.number, entry.first));
        if !is_it && told_by == Teller::Index {
            self.index_is_wrong("an entry names a block that is not there");
        }
        Ok(is_it)
    }

    /// A hint is the place of the block that was passed last: if the block there is of the partition and ends right before `from`, the
    /// reader goes on behind it. Only its header is looked at: it was read before, and may fill its window.
    fn by_hint(&self, partition: i16, from: MessageId, hint: Option<PlaceHint>) -> io::Result<Option<Start>> {
        let Some(hint) = hint else { return Ok(None) };
        let Some(segment) =
            self.segments.get(hint.epoch).filter(|segment| (segment.data_start..segment.end()).contains(&hint.offset))
        else {
            return Ok(None);
        };
        let block = lone_block_at(&mut self.source(&segment)?, &segment.place, hint.offset)?;
        Ok(block.filter(|block| block.partition == partition && block.last.successor() == from).map(|block| {
            let at = LogPosition { epoch: hint.epoch, offset: hint.offset + block.total_len() };
            Start::at(at, block.end_number())
        }))
    }

    /// The last entry at or below `from`, of the segments that have theirs in memory or of the index.
    fn floor_entry(&self, partition: i16, from: MessageId) -> Option<(IndexEntry, Teller)> {
        let of_segments = self.segments.floor(partition, from);
        let of_index = || self.index_floor(partition, from).map(|entry| (entry, Teller::Index));
        of_segments.map(|entry| (entry, Teller::Memory)).or_else(of_index)
    }

    /// The place of the block that begins at or above `id`, if it is the one of that running number and an entry names it.
    pub(super) fn entry_of(&self, partition: i16, id: MessageId, number: u64) -> io::Result<Option<IndexEntry>> {
        let of_index = self.index_next(partition, id).map(|entry| (entry, Teller::Index));
        let of_segments = || self.segments.next(partition, id).map(|entry| (entry, Teller::Memory));
        let Some((entry, told_by)) = of_index.or_else(of_segments).filter(|(entry, _)| entry.number == number) else {
            return Ok(None);
        };
        Ok(self.names_block(partition, entry, told_by)?.then_some(entry))
    }

    /// By the headers of the segments, which say how far the partition had come: the last segment that began before `from` was given.
    pub(super) fn by_headers(&self, partition: i16, from: MessageId) -> io::Result<Option<Start>> {
        let segments = self.segments.all();
        let Some(oldest) = segments.first() else { return Ok(None) };
        let found =
            self.last_segment(&segments, partition, &|mark: &PartitionMark| mark.committed.last.is_none_or(|last| last < from))?;
        if let Some((segment, mark)) = found {
            let at = LogPosition { epoch: segment.epoch, offset: segment.data_start };
            return Ok(Some(Start::at(at, mark.committed.next_number)));
        }
        let mark = Segment::mark_of(&mut self.header_source(oldest)?, partition)?;
        let at = LogPosition { epoch: oldest.epoch, offset: oldest.data_start };
        let number = mark.map_or(0, |mark| mark.committed.next_number);
        Ok(Some(Start { is_below_oldest: mark.is_some(), ..Start::at(at, number) }))
    }

    /// The last of the segments whose mark of the partition `began` holds for; it holds for all before it too. A segment with a damaged
    /// header is passed over.
    pub(super) fn last_segment(
        &self,
        segments: &[Arc<Segment>],
        partition: i16,
        began: &dyn Fn(&PartitionMark) -> bool,
    ) -> io::Result<Option<(Arc<Segment>, PartitionMark)>> {
        let mut found = None;
        let mut rest = segments;
        while !rest.is_empty() {
            let (front, back) = rest.split_at(rest.len() / 2);
            let Some((middle, behind)) = back.split_first() else { break };
            match Segment::mark_of(&mut self.header_source(middle)?, partition)? {
                Some(mark) if began(&mark) => {
                    found = Some((Arc::clone(middle), mark));
                    rest = behind;
                }
                Some(_) => rest = front,
                None => {
                    self.report_damage(middle, 0, "the header of a segment is damaged");
                    // Either half may have it: the later one counts.
                    let later = self.last_segment(behind, partition, began)?;
                    if later.is_some() {
                        return Ok(later);
                    }
                    rest = front;
                }
            }
        }
        Ok(found)
    }

    /// A source of the header of a segment.
    pub(super) fn header_source(&self, segment: &Segment) -> io::Result<Source<'_>> {
        let key = FileKey { log: self.number, epoch: segment.epoch };
        Ok(Source::cached(self.open_segment(segment)?, segment.end(), &self.shared.windows, key))
    }
}

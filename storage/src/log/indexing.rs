//! Putting sealed segments into the index, and asking it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hqueue_protocol::id::MessageId;

use super::format::block::Kind;
use super::format::header::LogPosition;
use super::queue::QueueLog;
use super::recovery::Ending;
use super::replay::replay;
use super::segment::{IndexEntry, Segment, SegmentIndex};
use super::source::Source;

impl QueueLog {
    pub(super) fn index_floor(&self, partition: i16, from: MessageId) -> Option<IndexEntry> {
        self.shared.index.floor(self.spec.uid, partition, from)
    }

    pub(super) fn index_next(&self, partition: i16, id: MessageId) -> Option<IndexEntry> {
        self.shared.index.next(self.spec.uid, partition, id)
    }

    pub(super) fn index_is_wrong(&self, reason: &str) {
        self.shared.index.drop_wrong(reason);
    }

    /// Has every sealed segment put into the index that is not in it.
    pub(super) fn index_sealed(self: &Arc<Self>) {
        let indexed = self.shared.index.indexed_epoch(self.spec.uid);
        let newest = self.segments.newest().map_or(0, |newest| newest.epoch);
        let missing = self.segments.above(indexed).into_iter().filter(|segment| segment.epoch < newest);
        missing.for_each(|segment| self.index_later(segment.epoch));
    }

    /// Has a sealed segment put into the index.
    pub(super) fn index_later(self: &Arc<Self>, epoch: u64) {
        let log = Arc::clone(self);
        self.shared.upkeep.submit(move || {
            let segment = log.segments.get(epoch).filter(|_| !log.shared.stopping.load(Relaxed));
            segment.inspect(|segment| log.index_segment(segment));
        });
    }

    fn index_segment(&self, segment: &Segment) {
        // A look at the memory of this segment first: then its file need not be read.
        let known = segment.index().as_ref().map(|index| index.entries().collect::<Vec<_>>());
        let entries = match known.map_or_else(|| self.entries_of(segment), Ok) {
            Ok(entries) => entries,
            Err(error) => {
                // Readers find their way through it by its blocks.
                tracing::warn!(path = %segment.path.display(), %error, "a segment cannot be read, so that it is not in the index");
                return;
            }
        };
        self.shared.index.save(self.spec.uid, segment.epoch, entries.into_iter());
        self.segments.saved(segment);
    }

    /// The entries of a segment, out of its blocks.
    fn entries_of(&self, segment: &Segment) -> io::Result<Vec<(i16, IndexEntry)>> {
        let mut index = SegmentIndex::new(self.spec.partitions);
        let mut source = Source::plain(self.open_segment(segment)?, segment.end());
        let used_len = segment.end();
        replay(&mut source, &segment.place, segment.data_start, used_len, Ending::Clean, |offset, header| {
            if header.kind == Kind::Messages {
                index.note(header, LogPosition { epoch: segment.epoch, offset });
            }
        })?;
        Ok(index.entries().collect())
    }

    /// Segments of a lower epoch are gone: so are their entries.
    pub(super) fn remove_entries_below(&self, epoch: u64) {
        if !self.shared.stopping.load(Relaxed) {
            self.shared.index.remove_below(self.spec.uid, self.spec.partitions, epoch);
        }
    }
}

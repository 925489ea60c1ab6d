//! Removing what is gone: truncation, segments that have expired, and what becomes of their files.
//!
//! That messages are gone is durable before a file of theirs is touched: in the header of a new segment, or in a control record that
//! names the first segment that is left.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::commit::Failure;
use super::files::FileKey;
use super::folder;
use super::format::table::{PartitionMark, Trim};
use super::queue::QueueLog;
use super::segment::Segment;
use super::source::Source;
use super::writer::{MAX_SPARES, Writer};
use crate::store::{Committed, MissingReason, StoreError};

impl QueueLog {
    pub(super) fn truncate_now(self: &Arc<Self>, writer: &mut Writer) -> Result<(), Failure> {
        loop {
            match self.drop_everything(writer, MissingReason::Truncated) {
                // Whoever truncates a queue on a full disk wants its space: what is to go anyway makes room for saying so.
                Err(failure) if is_full(&failure) && self.give_up_oldest(writer)? => {}
                done => return done,
            }
        }
    }

    /// Gives back the oldest segment, which is to go. False if there is no other one, or the next one does not tell what was in it.
    fn give_up_oldest(self: &Arc<Self>, writer: &mut Writer) -> Result<bool, Failure> {
        let Some(next) = self.segments.all().get(1).map(Arc::clone) else { return Ok(false) };
        let Some(marks) = self.marks_at(&next)? else { return Ok(false) };
        let gone = marks.into_iter().map(|(p, mark)| (p, gone_mark(mark, MissingReason::Truncated))).collect();
        self.gone(gone, MissingReason::Truncated);
        self.retire(writer, next.epoch);
        Ok(true)
    }

    /// The marks of partitions when a segment began; `None` if its header is damaged.
    pub(super) fn marks_at(&self, segment: &Segment) -> Result<Option<Vec<(i16, PartitionMark)>>, Failure> {
        let file = self.open_segment(segment).map_err(|error| self.refused("open", &segment.path, &error))?;
        let mut source = Source::plain(file, segment.data_start);
        let marks = Segment::marks(&mut source).map_err(|error| self.refused("read", &segment.path, &error))?;
        if marks.is_none() {
            self.report_damage(segment, 0, "the header of a segment is damaged");
        }
        Ok(marks)
    }

    /// Gives back all segments, if all of what they hold has expired.
    pub(super) fn drop_all(self: &Arc<Self>, writer: &mut Writer) -> Result<(), Failure> {
        let has_blocks = self.segments.newest().is_some_and(|newest| newest.has_blocks());
        if has_blocks && self.is_expired(writer.last_arrival_ms, self.shared.expiry_now_ms()) {
            if let Err(failure) = self.drop_everything(writer, MissingReason::Expired) {
                // With the space of the others there is room for what is to be written.
                let newest = self.segments.newest().map_or(0, |newest| newest.epoch);
                return if is_full(&failure) { self.drop_below(writer, newest) } else { Err(failure) };
            }
            // Nothing has been written for a whole TTL: files for later would only take space.
            writer.keeps_spares = false;
            self.reuse_retired(writer);
            for spare in writer.spares.drain(..) {
                if let Err(error) = self.shared.disk.remove_file(&spare) {
                    tracing::warn!(path = %spare.display(), %error, "a file that is not needed any more is left behind");
                }
            }
            return Ok(());
        }
        // More has come since this was asked for: what has expired before it is told by the trims.
        self.keep_trims(writer, self.floor_epoch())
    }

    fn drop_everything(self: &Arc<Self>, writer: &mut Writer, why: MissingReason) -> Result<(), Failure> {
        // Not told by the trims: readers may have moved them to the end already, in memory.
        let has_blocks = self.segments.all().iter().any(|segment| segment.has_blocks());
        if !has_blocks && self.unkept_trims().is_empty() {
            return Ok(());
        }
        let gone: Vec<(i16, PartitionMark)> = self.marks().into_iter().map(|(p, mark)| (p, gone_mark(mark, why))).collect();
        self.roll(writer, u64::MAX, &gone)?;
        let Some(newest) = self.segments.newest() else { return Ok(()) };
        self.gone(gone, why);
        self.retire(writer, newest.epoch);
        Ok(())
    }

    /// Gives back the segments below an epoch, if all of what they hold has expired.
    pub(super) fn drop_below(self: &Arc<Self>, writer: &mut Writer, epoch: u64) -> Result<(), Failure> {
        let now_ms = self.shared.expiry_now_ms();
        let Some(first_kept) = self.segments.get(epoch) else { return Ok(()) };
        let before = self.segments.below(epoch);
        if before.is_none_or(|before| !self.is_expired(before.last_arrival_ms(), now_ms)) {
            return Ok(());
        }
        let Some(marks) = self.marks_at(&first_kept)? else { return Ok(()) };
        match self.keep_trims(writer, epoch) {
            // On a full disk there is no room for the record before the files are gone. They go the oldest first: what is left is the
            // end of the log at every moment.
            Err(failure) if is_full(&failure) => {}
            kept => kept?,
        }
        let gone = marks.into_iter().map(|(p, mark)| (p, gone_mark(mark, MissingReason::Expired))).collect();
        self.gone(gone, MissingReason::Expired);
        self.retire(writer, epoch);
        Ok(())
    }

    pub(super) fn gone(&self, marks: Vec<(i16, PartitionMark)>, why: MissingReason) {
        let mut messages = 0;
        for (number, mark) in marks {
            if let Some(mut partition) = self.partition(number) {
                messages += partition.trim(mark.trim);
                partition.durable_trim = partition.durable_trim.max(mark.trim.number);
            }
        }
        if why == MissingReason::Expired {
            self.shared.counters.add(|c| &c.expired_messages, messages);
        }
    }

    pub(super) fn retire(self: &Arc<Self>, writer: &mut Writer, floor_epoch: u64) {
        writer.retired.extend(self.take_segments_below(floor_epoch));
        let log = Arc::clone(self);
        self.shared.upkeep.submit(move || log.remove_entries_below(floor_epoch));
        self.reuse_retired(writer);
    }

    /// Keeps or deletes the files of segments that are gone, as far as no reader holds them.
    pub(super) fn reuse_retired(&self, writer: &mut Writer) {
        let retired = std::mem::take(&mut writer.retired);
        for mut segment in retired {
            if Arc::get_mut(&mut segment).is_none() {
                writer.retired.push(segment);
                continue;
            }
            self.shared.files.forget(FileKey { log: self.number, epoch: segment.epoch });
            let is_full = segment.end().saturating_mul(2) >= self.shared.options.segment_bytes;
            let spare = folder::spare_path(&self.dir, segment.epoch);
            let done = if is_full && writer.keeps_spares && writer.spares.len() < MAX_SPARES {
                self.shared.disk.rename(&segment.path, &spare).map(|()| writer.spares.push(spare))
            } else {
                self.shared.disk.remove_file(&segment.path)
            };
            if let Err(error) = done {
                // The next start tries again: the log says that the segment is gone.
                tracing::warn!(path = %segment.path.display(), %error, "the file of a segment that is gone is left behind");
            }
        }
        self.has_retired.store(!writer.retired.is_empty(), Relaxed);
    }
}

fn is_full(failure: &Failure) -> bool {
    matches!(failure, Failure::Refused(StoreError::NoSpace { .. }))
}

/// A partition at its end, all of it gone.
pub(super) fn gone_mark(mark: PartitionMark, why: MissingReason) -> PartitionMark {
    if mark.trim.number >= mark.committed.next_number {
        return mark;
    }
    let Committed { last, next_number } = mark.committed;
    PartitionMark { trim: Trim { number: next_number, last, bytes: mark.bytes, why }, ..mark }
}

//! What a start finds in the folder of a queue.
//!
//! The newest segment is read from its header to its end; of all others the headers suffice, as each says how the one before ended. So
//! a start takes as long for a terabyte as for one segment.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::folder::{self, Listing};
use super::format::block::{BlockHeader, Kind};
use super::format::control::Control;
use super::format::header::{FIXED_LEN, LogPosition, MAX_LEN, PAGE, SegmentHeader};
use super::format::table::{PartitionMark, Trim};
use super::partition::Partition;
use super::queue::Found;
use super::replay::{Replay, replay};
use super::scan::body_of;
use super::segment::{Segment, SegmentIndex};
use super::source::Source;
use super::writer::{MAX_SPARES, Writer};
use crate::disk::{Disk, DiskFile, write_all_at};
use crate::store::{Committed, MissingReason, QueueSpec};

/// How the store was left by the run before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was closed.
    Clean,
    /// The process ended; what it had written is there.
    Killed,
    /// The machine may have stopped: of what was not synced, anything may be there.
    PowerCut,
}

/// One segment as its header and its successor's tell.
#[derive(Debug)]
struct Known {
    file: Arc<dyn DiskFile>,
    file_len: u64,
    header: Option<SegmentHeader>,
}

/// Reads a queue's folder. Errors are those of the file system, never of what the files hold.
pub(super) fn recover(disk: &dyn Disk, dir: &Path, spec: &QueueSpec, ending: Ending) -> io::Result<Found> {
    let listing = folder::list(disk, dir)?;
    let mut known = BTreeMap::new();
    for epoch in &listing.epochs {
        let file = disk.open(&folder::segment_path(dir, *epoch))?;
        let file_len = file.len()?;
        let mut source = Source::plain(Arc::clone(&file), file_len.min(FIXED_LEN as u64));
        let header = Segment::header(&mut source)?.filter(|header| header.uid == spec.uid && header.epoch == *epoch);
        known.insert(*epoch, Known { file, file_len, header });
    }
    let mut recovery = Recovery::new(disk, dir, spec);
    recovery.read_segments(&known, ending)?;
    recovery.finish(&known, listing)
}

struct Recovery<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    spec: &'a QueueSpec,
    marks: Vec<PartitionMark>,
    floor_epoch: u64,
    segments: BTreeMap<u64, Arc<Segment>>,
    last_arrival_ms: i64,
    last_step: LogPosition,
    damages: Vec<LogPosition>,
}

impl<'a> Recovery<'a> {
    fn new(disk: &'a dyn Disk, dir: &'a Path, spec: &'a QueueSpec) -> Self {
        Self {
            disk,
            dir,
            spec,
            marks: vec![PartitionMark::default(); usize::try_from(spec.partitions).unwrap_or(0)],
            floor_epoch: 0,
            segments: BTreeMap::new(),
            last_arrival_ms: i64::MIN,
            last_step: LogPosition::default(),
            damages: Vec::new(),
        }
    }

    /// Takes the ends of all segments from the headers behind them; reads what no header tells of: the newest segment, and those
    /// before it whose successor's header is damaged.
    fn read_segments(&mut self, known: &BTreeMap<u64, Known>, ending: Ending) -> io::Result<()> {
        let mut from = None;
        for (epoch, segment) in known.iter().rev() {
            from = Some(*epoch);
            if self.take_header(*epoch, segment)? {
                break;
            }
        }
        let mut behind: Option<&SegmentHeader> = None;
        let mut ends = BTreeMap::new();
        for (epoch, segment) in known.iter().rev() {
            let told = behind.and_then(|header| header.previous).filter(|previous| previous.epoch == *epoch);
            ends.insert(*epoch, told);
            behind = segment.header.as_ref();
        }
        let newest = known.last_key_value().map(|(epoch, _)| *epoch);
        for (epoch, segment) in known {
            let must_read = from.is_some_and(|from| *epoch >= from);
            let told = ends.get(epoch).copied().flatten();
            let found = self.segment(*epoch, segment, must_read || told.is_none());
            match told {
                Some(previous) if !must_read => {
                    found.set_end(previous.end.min(segment.file_len));
                    found.set_last_arrival_ms(previous.last_arrival_ms);
                }
                _ => {
                    let limit = told.map_or(segment.file_len, |previous| previous.end.min(segment.file_len));
                    let ending = if Some(*epoch) == newest { ending } else { Ending::Clean };
                    self.read_segment(&found, segment, limit, must_read, ending)?;
                }
            }
            self.segments.insert(*epoch, Arc::new(found));
        }
        Ok(())
    }

    /// Takes marks and floor from a header. False if it is damaged.
    fn take_header(&mut self, epoch: u64, segment: &Known) -> io::Result<bool> {
        let mut source = Source::plain(Arc::clone(&segment.file), segment.file_len.min(MAX_LEN));
        let marks = if segment.header.is_some() { Segment::marks(&mut source)? } else { None };
        let (Some(header), Some(marks)) = (&segment.header, marks) else {
            tracing::error!(path = %folder::segment_path(self.dir, epoch).display(), "the header of a segment is damaged");
            self.damages.push(LogPosition { epoch, offset: 0 });
            return Ok(false);
        };
        for (partition, mark) in marks {
            if let Some(place) = usize::try_from(partition).ok().and_then(|p| self.marks.get_mut(p)) {
                *place = mark;
            }
        }
        self.floor_epoch = header.floor_epoch;
        self.last_step = header.last_step;
        self.last_arrival_ms = header.previous.map_or(i64::MIN, |previous| previous.last_arrival_ms);
        Ok(true)
    }

    fn segment(&self, epoch: u64, known: &Known, indexed: bool) -> Segment {
        let data_start = known.header.as_ref().map_or(PAGE, |header| header.data_start);
        let index = indexed.then(|| SegmentIndex::new(self.spec.partitions));
        let path = folder::segment_path(self.dir, epoch);
        Segment::new(self.spec.uid, epoch, path, data_start, index)
    }

    fn read_segment(
        &mut self,
        segment: &Segment,
        known: &Known,
        limit: u64,
        changes_marks: bool,
        ending: Ending,
    ) -> io::Result<()> {
        let mut source = Source::plain(Arc::clone(&known.file), limit);
        let used_len = known.header.as_ref().map_or(0, |header| header.used_len);
        let mut last_arrival_ms = if changes_marks { self.last_arrival_ms } else { i64::MIN };
        let mut controls = Vec::new();
        let found = replay(&mut source, &segment.place, segment.data_start, used_len, ending, |offset, header| {
            if header.kind == Kind::Control {
                controls.push((offset, header.clone()));
                return;
            }
            let at = LogPosition { epoch: segment.epoch, offset };
            if changes_marks && header.arrival_ms < last_arrival_ms {
                self.last_step = at;
            }
            last_arrival_ms = header.arrival_ms;
            if (!changes_marks || self.advance(header))
                && let Some(index) = &mut *segment.index_mut()
            {
                index.note(header, at);
            }
        })?;
        if changes_marks {
            self.last_arrival_ms = last_arrival_ms;
        }
        segment.set_last_arrival_ms(last_arrival_ms);
        segment.set_end(found.end);
        if changes_marks {
            self.take_controls(&mut source, &controls)?;
        }
        self.report(segment, &found);
        if ending != Ending::Clean {
            self.make_durable(known, &mut source, &found)?;
        }
        Ok(())
    }

    /// Moves a partition on behind a block. False if the block is none that was committed: a group that failed and was overwritten by a
    /// shorter one has left it.
    fn advance(&mut self, header: &BlockHeader) -> bool {
        let Some(mark) = usize::try_from(header.partition).ok().and_then(|p| self.marks.get_mut(p)) else { return false };
        if header.number < mark.committed.next_number {
            return false;
        }
        mark.committed.next_number = header.end_number();
        mark.committed.last = mark.committed.last.max(Some(header.last));
        mark.bytes = header.bytes_before.saturating_add(u64::from(header.body_len));
        true
    }

    fn take_controls(&mut self, source: &mut Source<'_>, controls: &[(u64, BlockHeader)]) -> io::Result<()> {
        for (offset, header) in controls {
            let Some(control) = body_of(source, *offset, header)?.and_then(|body| Control::decode(&body)) else { continue };
            self.floor_epoch = self.floor_epoch.max(control.floor_epoch);
            for (partition, trim) in control.trims {
                self.raise_trim(partition, trim);
            }
        }
        Ok(())
    }

    fn raise_trim(&mut self, partition: i16, trim: Trim) {
        if let Some(mark) = usize::try_from(partition).ok().and_then(|p| self.marks.get_mut(p))
            && trim.number > mark.trim.number
        {
            mark.trim = trim;
        }
    }

    fn report(&mut self, segment: &Segment, found: &Replay) {
        let path = segment.path.display();
        if found.torn_bytes > 0 {
            let (offset, bytes) = (found.end, found.torn_bytes);
            tracing::warn!(queue = self.spec.name, %path, offset, bytes, "a torn tail of the log is cut");
        }
        for (offset, bytes) in &found.holes {
            tracing::error!(queue = self.spec.name, %path, offset, bytes, "a part of the log is damaged: the rest is served");
            self.damages.push(LogPosition { epoch: segment.epoch, offset: *offset });
        }
    }

    /// What will be served must not go with the next power cut: syncs the file, and writes the last group once more before, since a
    /// sync that failed may have made the system forget to write it.
    fn make_durable(&self, known: &Known, source: &mut Source<'_>, found: &Replay) -> io::Result<()> {
        for (offset, len) in &found.last_group {
            let bytes = source.fetch(*offset, usize::try_from(*len).unwrap_or(0))?;
            match write_all_at(&*known.file, &mut [io::IoSlice::new(&bytes)], *offset) {
                Err(error) if !super::shared::is_no_space(&error) => return Err(error),
                _ => {}
            }
        }
        known.file.sync_data()
    }

    /// Removes what the log says is gone, and puts everything together.
    fn finish(mut self, known: &BTreeMap<u64, Known>, listing: Listing) -> io::Result<Found> {
        let kept = self.segments.split_off(&self.floor_epoch);
        for segment in std::mem::replace(&mut self.segments, kept).into_values() {
            if let Err(error) = self.disk.remove_file(&segment.path) {
                tracing::warn!(path = %segment.path.display(), %error, "the file of a segment that is gone is left behind");
            }
        }
        self.trim_to_oldest(known)?;
        self.report_missing_files(known);
        let mut spares = listing.spares;
        for spare in spares.split_off(spares.len().min(MAX_SPARES)) {
            if let Err(error) = self.disk.remove_file(&spare) {
                tracing::warn!(path = %spare.display(), %error, "a file that is not needed any more is left behind");
            }
        }
        let writer = Writer {
            active: None,
            next_epoch: listing.epochs.last().copied().unwrap_or(0) + 1,
            last_group: 0,
            last_arrival_ms: self.last_arrival_ms,
            spares,
            keeps_spares: true,
            retired: Vec::new(),
            front: LogPosition::default(),
        };
        let live_bytes = Arc::new(AtomicU64::new(0));
        let partition = |mark| Partition::found(mark, Arc::clone(&live_bytes));
        Ok(Found {
            partitions: self.marks.into_iter().map(partition).collect(),
            live_bytes,
            segments: self.segments,
            floor_epoch: self.floor_epoch,
            last_step: self.last_step,
            writer,
            damages: self.damages,
        })
    }

    /// What the oldest segment's header counts as there before it is gone.
    fn trim_to_oldest(&mut self, known: &BTreeMap<u64, Known>) -> io::Result<()> {
        let Some(oldest) = self.segments.first_key_value().and_then(|(epoch, _)| known.get(epoch)) else { return Ok(()) };
        let mut source = Source::plain(Arc::clone(&oldest.file), oldest.file_len.min(MAX_LEN));
        for (partition, mark) in Segment::marks(&mut source)?.unwrap_or_default() {
            let Committed { last, next_number } = mark.committed;
            self.raise_trim(partition, Trim { number: next_number, last, bytes: mark.bytes, why: MissingReason::Expired });
        }
        Ok(())
    }

    fn report_missing_files(&self, known: &BTreeMap<u64, Known>) {
        for header in known.values().filter_map(|segment| segment.header.as_ref()) {
            if let Some(previous) = header.previous.filter(|previous| previous.epoch >= self.floor_epoch)
                && !known.contains_key(&previous.epoch)
            {
                let path = folder::segment_path(self.dir, previous.epoch);
                tracing::error!(queue = self.spec.name, path = %path.display(), "a segment of the log is missing: the rest is served");
            }
        }
    }
}

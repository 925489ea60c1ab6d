//! Where the log is written, and how a new segment begins.
//!
//! A file becomes a segment in this order: header written and synced under a name that no reader looks at, renamed, folder synced.
//! Before that the segment written so far is synced. So a segment has all of its header, whatever happens, and there is no block behind
//! a segment that is not durable.

use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::commit::Failure;
use super::files::FileKey;
use super::folder;
use super::format::header::{LogPosition, Previous, SegmentHeader};
use super::format::table::PartitionMark;
use super::queue::QueueLog;
use super::segment::{Segment, SegmentIndex};
use crate::disk::{DiskFile, write_all_at};

/// Held by the thread that commits.
#[derive(Debug)]
pub(super) struct Writer {
    /// The segment that is written; `None` until something is, after a start.
    pub(super) active: Option<Active>,
    /// Epochs rise with every use of a file and never repeat.
    pub(super) next_epoch: u64,
    /// Numbers of groups rise within a segment, also when a group fails.
    pub(super) last_group: u64,
    /// The arrival of the last block. Milliseconds.
    pub(super) last_arrival_ms: i64,
    /// Files that have been segments, to be used again.
    pub(super) spares: Vec<PathBuf>,
    /// There is use for them: something has been written since everything had expired.
    pub(super) keeps_spares: bool,
    /// Segments that are gone, until no reader holds them.
    pub(super) retired: Vec<Arc<Segment>>,
    /// Nothing is left before, as far as room was made for others.
    pub(super) front: LogPosition,
}

#[derive(Debug)]
pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    /// Blocks end here: the next group begins.
    pub(super) end: u64,
    /// Bytes of the file that are there already.
    pub(super) file_len: u64,
    /// Below, the system need not keep in memory what was written.
    pub(super) let_go: u64,
    pub(super) unsynced: Option<Unsynced>,
}

/// What was written and is not synced.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) file: Arc<dyn DiskFile>,
    /// Where it begins; it ends where the next group begins.
    pub(super) from: u64,
    /// So much has gathered that it is synced at once.
    pub(super) is_hurried: bool,
}

/// Files that one log keeps for later use at most.
pub(super) const MAX_SPARES: usize = 2;

impl Writer {
    pub(super) fn next_group(&mut self) -> u64 {
        self.last_group += 1;
        self.last_group
    }
}

impl QueueLog {
    /// Where a group of `len` bytes is to be written: in a new segment, if there is none or it is full.
    pub(super) fn room_for(self: &Arc<Self>, writer: &mut Writer, len: u64) -> Result<LogPosition, Failure> {
        let full = writer.active.as_ref().is_none_or(|active| {
            active.segment.has_blocks() && active.end.saturating_add(len) > self.shared.options.segment_bytes
        });
        if full {
            self.roll(writer, self.floor_epoch(), &self.marks())?;
        }
        match &writer.active {
            Some(active) => Ok(LogPosition { epoch: active.segment.epoch, offset: active.end }),
            None => Err(Failure::Uncertain("no segment is open".to_owned())),
        }
    }

    /// Begins a new segment, whose header says that those below `floor_epoch` are gone (`u64::MAX`: all before it), and `marks` of
    /// the partitions.
    pub(super) fn roll(
        self: &Arc<Self>,
        writer: &mut Writer,
        floor_epoch: u64,
        marks: &[(i16, PartitionMark)],
    ) -> Result<(), Failure> {
        self.sync_now(writer)?;
        if let Some(active) = &mut writer.active {
            self.let_go(active, active.end);
        }
        let epoch = writer.next_epoch;
        let last = self.segments.newest();
        let previous =
            last.as_ref().map(|last| Previous { epoch: last.epoch, end: last.end(), last_arrival_ms: writer.last_arrival_ms });
        let dir = self.shared.disk.open_dir(&self.dir).map_err(|error| self.refused("open", &self.dir, &error))?;
        let (file, old_path, used_len) = self.file_for_segment(writer, epoch)?;
        let created_ms = self.shared.clock.now_ms();
        let mut header = SegmentHeader::new(self.spec.uid, epoch, created_ms, previous, floor_epoch.min(epoch));
        header.last_step = self.last_step();
        header.used_len = used_len;
        let bytes = header.encode(marks.iter().copied());
        let path = folder::segment_path(&self.dir, epoch);
        if let Err(error) = self.name_segment(&*file, &bytes, &old_path, &path) {
            // What is left is no segment, and is used again or removed.
            self.abandon(writer, old_path, used_len);
            return Err(self.refused("begin", &path, &error));
        }
        dir.sync().map_err(|error| Failure::Uncertain(format!("sync of {}: {error}", self.dir.display())))?;
        let segment = Segment::new(self.spec.uid, epoch, path, header.data_start, Some(SegmentIndex::new(self.spec.partitions)));
        segment.set_last_arrival_ms(writer.last_arrival_ms);
        let segment = Arc::new(segment);
        self.shared.files.keep(FileKey { log: self.number, epoch }, file);
        writer.next_epoch += 1;
        writer.active = Some(Active {
            segment: Arc::clone(&segment),
            end: header.data_start,
            file_len: used_len.max(header.data_start),
            let_go: 0,
            unsynced: None,
        });
        self.segments.add(segment);
        self.marks_are_durable(marks);
        if let Some(sealed) = last {
            self.index_later(sealed.epoch);
        }
        Ok(())
    }

    fn name_segment(&self, file: &dyn DiskFile, header: &[u8], old: &Path, new: &Path) -> io::Result<()> {
        write_all_at(file, &mut [IoSlice::new(header)], 0)?;
        file.sync_data()?;
        self.shared.disk.rename(old, new)
    }

    /// A file under a name that is no segment's: a spare one, or a new one. With its length.
    fn file_for_segment(&self, writer: &mut Writer, epoch: u64) -> Result<(Arc<dyn DiskFile>, PathBuf, u64), Failure> {
        while let Some(spare) = writer.spares.pop() {
            match self.shared.disk.open(&spare).and_then(|file| Ok((file.len()?, file))) {
                Ok((len, file)) => return Ok((file, spare, len)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let refused = self.refused("open", &spare, &error);
                    writer.spares.push(spare);
                    return Err(refused);
                }
            }
        }
        let path = folder::spare_path(&self.dir, epoch);
        match self.shared.disk.create(&path) {
            Ok(file) => Ok((file, path, 0)),
            Err(error) => Err(self.refused("create", &path, &error)),
        }
    }

    fn abandon(&self, writer: &mut Writer, path: PathBuf, used_len: u64) {
        if used_len > 0 {
            writer.spares.push(path);
        } else if let Err(error) = self.shared.disk.remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "a file that was to become a segment is left behind");
        }
    }

    /// Marks of all partitions that ever had a message.
    pub(super) fn marks(&self) -> Vec<(i16, PartitionMark)> {
        let all = (0..self.spec.partitions).filter_map(|p| self.partition(p).map(|partition| (p, partition.mark)));
        all.filter(|(_, mark)| *mark != PartitionMark::default()).collect()
    }

    fn marks_are_durable(&self, marks: &[(i16, PartitionMark)]) {
        for (partition, mark) in marks {
            if let Some(mut partition) = self.partition(*partition) {
                partition.durable_trim = partition.durable_trim.max(mark.trim.number);
            }
        }
    }
}

//! Writing a group into the segment that is open, and syncing it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::commit::Failure;
use super::format::header::{LogPosition, PAGE};
use super::group::Group;
use super::queue::QueueLog;
use super::shared::is_no_space;
use super::writer::{Active, Writer};
use crate::disk::write_all_at;
use crate::store::{Durability, StoreError};

/// A group that makes its file grow has zeros written behind it if it has fewer bytes: a longer one is worth its own sync.
const LARGE_GROUP: u64 = 256 << 10;

/// So many zeros at most.
const MOST_ZEROS: u64 = 1 << 20;

impl QueueLog {
    /// Writes a group where the last one ended, and syncs as the durability says. On a full disk it goes to a file that has its space
    /// already, if there is one. Returns where it is.
    pub(super) fn write_group(
        self: &Arc<Self>,
        writer: &mut Writer,
        group: &mut Group,
        start: LogPosition,
    ) -> Result<LogPosition, Failure> {
        match self.try_write(writer, group, start) {
            Ok(()) => Ok(start),
            Err(Failure::Refused(StoreError::NoSpace { .. })) if !writer.spares.is_empty() => {
                self.roll(writer, self.floor_epoch(), &self.marks())?;
                let start = self.room_for(writer, group.len())?;
                group.move_to(&self.place(start.epoch), start);
                self.try_write(writer, group, start)?;
                Ok(start)
            }
            Err(failure) => Err(failure),
        }
    }

    fn try_write(self: &Arc<Self>, writer: &mut Writer, group: &Group, start: LogPosition) -> Result<(), Failure> {
        let Some(active) = &mut writer.active else { return Err(Failure::Uncertain("no segment is open".to_owned())) };
        let segment = Arc::clone(&active.segment);
        let path = &segment.path;
        let file = self.open_segment(&segment).map_err(|error| self.refused("open", path, &error))?;
        let end = start.offset + group.len();
        let mut padding = self.zeros_behind(active, group, end);
        let mut written = write_all_at(&*file, &mut group.slices(padding), start.offset);
        if end + padding > active.file_len && written.as_ref().is_err_and(is_no_space) {
            // There may be room without the zeros.
            active.file_len = active.file_len.max(file.len().unwrap_or(0));
            padding = page_rest(active, end);
            written = write_all_at(&*file, &mut group.slices(padding), start.offset);
        }
        match written {
            Ok(()) => {}
            Err(error) if is_no_space(&error) => {
                // Some of it may be there: as behind bytes of an earlier use, zeros are to stand before it.
                active.file_len = active.file_len.max(file.len().unwrap_or(0));
                return Err(self.refused("write", path, &error));
            }
            Err(error) => return Err(Failure::Uncertain(format!("write to {}: {error}", path.display()))),
        }
        active.file_len = active.file_len.max(end + padding);
        match self.shared.options.durability {
            Durability::Sync => self.sync(&*file, path)?,
            Durability::Async => self.note_unsynced(active, file, start.offset..end),
        }
        active.end = end;
        if active.unsynced.is_none() {
            self.let_go_synced(active);
        }
        Ok(())
    }

    /// How many zeros are written behind a group that ends at `end`.
    ///
    /// A sync that has to note a new length waits for the file system's journal: a file that grows in small steps grows in larger ones
    /// by zeros, up to twice what it holds.
    fn zeros_behind(&self, active: &Active, group: &Group, end: u64) -> u64 {
        if end < active.file_len || group.len() >= LARGE_GROUP {
            return page_rest(active, end);
        }
        let until = (end + end.min(MOST_ZEROS)).next_multiple_of(PAGE).min(self.shared.options.segment_bytes);
        until.saturating_sub(end)
    }

    pub(super) fn refused(&self, what: &'static str, path: &Path, error: &io::Error) -> Failure {
        Failure::Refused(self.shared.error(what, path, error))
    }
}

/// To the end of the page, within a file: behind the blocks stand zeros, not bytes of an earlier use; and a page that is written whole
/// need not be read before.
fn page_rest(active: &Active, end: u64) -> u64 {
    active.file_len.saturating_sub(end).min(PAGE - end % PAGE)
}

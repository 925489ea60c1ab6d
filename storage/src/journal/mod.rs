//! A small list of records, synced before an append returns: where metadata is kept. One file, read whole when it is opened and
//! written anew from a snapshot when it has grown. `format.rs` draws its bytes.
//!
//! # What it promises
//! * An append that returned is there after a power cut, in whole batches and in order. One that failed may be, except after
//!   [`JournalError::NoSpace`].
//! * A torn tail, which a power cut leaves of an append that had not returned, is cut with a log line. Damage anywhere else refuses to
//!   open and changes nothing: the error names file, byte and what to do. Damage to the very last batch after a hard end looks like a
//!   torn append and is cut; after a clean end it is told apart.
//! * After a failed write or sync nothing more is taken until it is reopened. Without space it goes on where it was.
//! * No lock: one process, one [`Journal`] for a file.

mod error;
mod format;
mod recovery;
mod rewrite;

use std::io::{self, IoSlice};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::JournalError;
pub use format::{MAX_BATCH_BYTES, RecordBatch};
pub use recovery::Replay;
pub use rewrite::Snapshot;

use error::is_no_space;
use recovery::recover;
use rewrite::{Written, remove_if_there, temporary_name, write_snapshot};

use crate::disk::{Disk, DiskDir, DiskFile, create_dir_durably, write_all_at};

/// A journal is written anew once it has so many bytes, and twice those of its last snapshot.
pub const REWRITE_ABOVE_BYTES: u64 = 16 * 1024 * 1024;

/// After a rewrite that failed the next is due when so many bytes have come. Bytes.
const REWRITE_AGAIN_AFTER: u64 = 4 * 1024 * 1024;

/// An open journal. Its calls block on the disk.
#[derive(Debug)]
pub struct Journal {
    disk: Arc<dyn Disk>,
    /// Held open, so that a rewrite can make its new name durable when there is no file descriptor to be had.
    dir: Arc<dyn DiskDir>,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    epoch: u64,
    /// Where the next block goes: everything before is synced, but maybe for `unconfirmed`.
    end: u64,
    next_number: u64,
    /// What was found at the end of the file when it was opened, until it is certain that it is durable: the last block, empty if there
    /// was none. See [`Self::confirm_end`].
    unconfirmed: Option<Vec<u8>>,
    rewrite_above: u64,
    poisoned: Option<String>,
    is_new: bool,
    bytes: Vec<u8>,
}

impl Journal {
    /// Opens the journal `name` in `dir`, making both if they are not there, and hands every record to `replay`, in order.
    ///
    /// # Errors
    /// `Damaged` if the file is, or if `replay` refuses a record; `NoSpace`, `Io`. The file is then as it was.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, name: &str, replay: Replay<'_>) -> Result<Self, JournalError> {
        let path = dir.join(name);
        let failed = |what, error: io::Error| failure(&*disk, what, &path, &error);
        create_dir_durably(&*disk, dir).map_err(|error| failed("making the folder of", error))?;
        let dir = disk.open_dir(dir).map_err(|error| failed("opening the folder of", error))?;
        remove_if_there(&*disk, &temporary_name(&path)).map_err(|error| failed("removing what a rewrite left of", error))?;
        let is_new = !disk.exists(&path).map_err(|error| failed("looking for", error))?;
        let (written, last_block) = if is_new {
            let written = write_snapshot(&*disk, &path, &mut |_| {}).map_err(|error| failed("writing", error))?;
            disk.rename(&temporary_name(&path), &path).map_err(|error| failed("naming", error))?;
            (written, Vec::new())
        } else {
            let file = disk.open(&path).map_err(|error| failed("opening", error))?;
            let found = recover(&*file, &path, replay)?;
            cut_torn_tail(&*file, &path, found.end, found.torn).map_err(|error| failed("cutting", error))?;
            let written = Written { file, epoch: found.epoch, end: found.end, next_number: found.next_number };
            (written, found.last_block)
        };
        // Also when it was there: the process that named it may have ended before this.
        dir.sync().map_err(|error| failed("syncing the folder of", error))?;
        let mut journal = Self {
            dir,
            file: written.file,
            epoch: written.epoch,
            end: written.end,
            next_number: written.next_number,
            unconfirmed: Some(last_block),
            rewrite_above: REWRITE_ABOVE_BYTES,
            poisoned: None,
            is_new,
            bytes: Vec::new(),
            path: path.clone(),
            disk: Arc::clone(&disk),
        };
        match journal.append(&RecordBatch::default()) {
            // With a full disk a broker still starts, and can be read.
            Err(error @ JournalError::NoSpace { .. }) => tracing::warn!(%error, "opened, but nothing can be written"),
            appended => appended?,
        }
        Ok(journal)
    }

    /// Was there no file when it was opened?
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Bytes of the file that are synced.
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.end
    }

    /// Writes the records behind the others and syncs: one write and one sync, however many they are. All of them come back, or none.
    ///
    /// # Errors
    /// `NoSpace`, `TooLarge`: nothing was changed. `Io` after a write or sync that failed: it may come back or not; from then on
    /// `Poisoned`.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), JournalError> {
        self.check_poison()?;
        if batch.byte_len() > MAX_BATCH_BYTES {
            return Err(JournalError::TooLarge { size: batch.byte_len(), limit: MAX_BATCH_BYTES });
        }
        self.confirm_end()?;
        let mut bytes = mem::take(&mut self.bytes);
        bytes.clear();
        batch.encode(self.epoch, self.next_number, &mut bytes);
        let len = bytes.len() as u64;
        let done = self.write_and_sync(&bytes, self.end);
        self.bytes = bytes;
        done?;
        self.end = self.end.saturating_add(len);
        self.next_number += 1;
        Ok(())
    }

    /// Is it time to write the journal anew?
    #[must_use]
    pub const fn wants_rewrite(&self) -> bool {
        self.end > self.rewrite_above
    }

    /// Writes the journal anew: `fill` pushes the records that say what all those so far came to. The new file is written, synced and
    /// put in place of the old one, whose records are gone then.
    ///
    /// # Errors
    /// `NoSpace`, `Io`: the old file goes on. If it is not certain which of the two is there: `Io`, and from then on `Poisoned`.
    pub fn rewrite(&mut self, fill: &mut dyn FnMut(&mut Snapshot<'_>)) -> Result<(), JournalError> {
        self.check_poison()?;
        self.rewrite_above = self.end.saturating_add(REWRITE_AGAIN_AFTER);
        let temporary = temporary_name(&self.path);
        let written = match write_snapshot(&*self.disk, &self.path, fill) {
            Ok(written) => written,
            Err(error) => {
                // A new file frees the space it took; what cannot be removed is removed at the next try or start.
                let _ = remove_if_there(&*self.disk, &temporary);
                return Err(self.failure("rewriting", &error));
            }
        };
        match self.disk.rename(&temporary, &self.path) {
            Ok(()) => {}
            Err(error) if is_no_space(&error) => return Err(self.failure("renaming", &error)),
            Err(error) => return Err(self.poison("renaming", &error)),
        }
        self.rewrite_above = REWRITE_ABOVE_BYTES.max(written.end.saturating_mul(2));
        self.file = written.file;
        self.epoch = written.epoch;
        self.end = written.end;
        self.next_number = written.next_number;
        self.unconfirmed = None;
        // Until the name is durable nothing can be acknowledged that is only in the new file.
        self.dir.sync().map_err(|error| self.poison("syncing the folder of", &error))
    }

    /// Notes the clean end.
    ///
    /// # Errors
    /// As [`append`](Self::append); nothing that was appended is touched by it.
    pub fn close(mut self) -> Result<(), JournalError> {
        self.append(&RecordBatch::default())
    }

    /// Writes the block that was found last once more and syncs it, with the cut behind it. The sync of either may have failed in an
    /// earlier process, with the system's cache showing them all the same, and nothing may be built on that. Only the last block can be
    /// in that state, since this comes before anything is written behind it.
    fn confirm_end(&mut self) -> Result<(), JournalError> {
        let Some(block) = self.unconfirmed.take() else { return Ok(()) };
        let confirmed = self.write_and_sync(&block, self.end.saturating_sub(block.len() as u64));
        if confirmed.is_err() {
            self.unconfirmed = Some(block);
        }
        confirmed
    }

    fn write_and_sync(&mut self, bytes: &[u8], start: u64) -> Result<(), JournalError> {
        match write_all_at(&*self.file, &mut [IoSlice::new(bytes)], start) {
            Ok(()) => self.sync(),
            Err(error) if is_no_space(&error) => {
                // What was written of it must not lie behind a later block, after a power cut either.
                self.file.set_len(self.end).map_err(|error| self.poison("cutting", &error))?;
                self.sync()?;
                Err(self.failure("writing", &error))
            }
            Err(error) => Err(self.poison("writing", &error)),
        }
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|error| self.poison("syncing", &error))
    }

    fn check_poison(&self) -> Result<(), JournalError> {
        match &self.poisoned {
            None => Ok(()),
            Some(reason) => Err(JournalError::Poisoned { path: self.path.clone(), reason: reason.clone() }),
        }
    }

    fn poison(&mut self, what: &'static str, error: &io::Error) -> JournalError {
        self.poisoned = Some(format!("{what}: {error}"));
        JournalError::io(what, &self.path, error)
    }

    fn failure(&self, what: &'static str, error: &io::Error) -> JournalError {
        failure(&*self.disk, what, &self.path, error)
    }
}

fn failure(disk: &dyn Disk, what: &'static str, path: &Path, error: &io::Error) -> JournalError {
    if is_no_space(error) {
        return JournalError::NoSpace {
            path: path.to_owned(),
            free_bytes: disk.free_bytes(path.parent().unwrap_or(path)).unwrap_or(0),
        };
    }
    JournalError::io(what, path, error)
}

fn cut_torn_tail(file: &dyn DiskFile, path: &Path, end: u64, torn: Option<&str>) -> io::Result<()> {
    if let Some(why) = torn {
        let bytes = file.len()?.saturating_sub(end);
        tracing::warn!(file = %path.display(), offset = end, bytes, why, "cut the torn tail of a journal: an append that never returned");
    }
    // Also when nothing shows behind the end: the sync after an earlier cut may have failed.
    file.set_len(end)
}

#[cfg(test)]
mod tests;

//! What the two ends of a queue and its keeper share: how far it is written, synced and read, and making that durable.
//!
//! Locks are taken in this order: index, syncing, state. The state's is short: it is never held while a disk is waited for.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::error::FileQueueError;
use super::folder;
use super::index::{Index, Position, Positions};
use super::options::{FileQueueOptions, SyncWhen};
use crate::disk::{Disk, DiskDir, DiskFile, DiskLock};

/// Files that are kept for later use at most.
pub(super) const MAX_SPARES: usize = 2;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// Held open, so that names can be made durable when there is no file descriptor to be had.
    pub(super) names: Arc<dyn DiskDir>,
    pub(super) options: FileQueueOptions,
    pub(super) boot: Vec<u8>,
    index: Mutex<Index>,
    /// One sync of elements at a time: the outcome of each is known before the next begins.
    syncing: Mutex<()>,
    state: Mutex<State>,
    /// Something was offered, or the writer is gone.
    pub(super) offered: Condvar,
    /// There is something to be made durable later, or the keeper is to end.
    pub(super) changed: Condvar,
    _lock: Box<dyn DiskLock>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// What can be read, by number.
    pub(super) segments: BTreeMap<u64, Segment>,
    /// The number of the next element that becomes visible.
    pub(super) next_element: u64,
    /// What is before it was polled.
    pub(super) read: Position,
    /// The writer writes here.
    pub(super) written: Position,
    /// What is before it is synced.
    pub(super) synced: Position,
    /// The file that is written.
    pub(super) active: Option<Arc<dyn DiskFile>>,
    pub(super) spares: Vec<PathBuf>,
    pub(super) poisoned: Option<String>,
    pub(super) is_writer_gone: bool,
    /// When the oldest write that is not synced was made, the oldest poll that is not durable.
    pub(super) unsynced_since: Option<Instant>,
    pub(super) polled_since: Option<Instant>,
    /// The last try to make polls durable has failed.
    pub(super) has_commit_failed: bool,
    pub(super) is_stopping: bool,
}

/// One use of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) epoch: u64,
    pub(super) first_element: u64,
    /// Elements that may be read end here.
    pub(super) end: u64,
}

/// What opening a queue has made ready.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) names: Arc<dyn DiskDir>,
    pub(super) options: FileQueueOptions,
    pub(super) boot: Vec<u8>,
    pub(super) index: Index,
    pub(super) state: State,
    pub(super) lock: Box<dyn DiskLock>,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            disk: parts.disk,
            dir: parts.dir,
            names: parts.names,
            options: parts.options,
            boot: parts.boot,
            index: Mutex::new(parts.index),
            syncing: Mutex::new(()),
            state: Mutex::new(parts.state),
            offered: Condvar::new(),
            changed: Condvar::new(),
            _lock: parts.lock,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failure(&self, what: &'static str, path: &Path, error: &io::Error) -> FileQueueError {
        FileQueueError::of(&*self.disk, what, path, error)
    }

    pub(super) fn check_poison(&self) -> Result<(), FileQueueError> {
        match &self.state().poisoned {
            None => Ok(()),
            Some(reason) => Err(FileQueueError::Poisoned { dir: self.dir.clone(), reason: reason.clone() }),
        }
    }

    /// What the disk holds is not certain any more: nothing more is taken.
    pub(super) fn poison(&self, what: &str, error: &io::Error) -> FileQueueError {
        let reason = format!("{what}: {error}");
        let mut state = self.state();
        state.unsynced_since = None;
        state.poisoned.get_or_insert_with(|| reason.clone());
        FileQueueError::Poisoned { dir: self.dir.clone(), reason }
    }

    /// Syncs what is written.
    pub(super) fn sync_elements(&self) -> Result<(), FileQueueError> {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_poison()?;
        let (file, written) = {
            let state = self.state();
            if state.written == state.synced {
                return Ok(());
            }
            let Some(file) = state.active.clone() else { return Ok(()) };
            (file, state.written)
        };
        self.sync_file(&*file)?;
        let mut state = self.state();
        state.synced = written;
        if state.written == written {
            state.unsynced_since = None;
        }
        Ok(())
    }

    /// Writes the seal of a file that is full, and syncs it.
    pub(super) fn seal(&self, file: &dyn DiskFile, write: impl FnOnce() -> io::Result<()>) -> Result<(), FileQueueError> {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_poison()?;
        write().map_err(|error| self.poison("write", &error))?;
        self.sync_file(file)
    }

    fn sync_file(&self, file: &dyn DiskFile) -> Result<(), FileQueueError> {
        file.sync_data().map_err(|error| self.poison("sync", &error))
    }

    /// As [`commit`](Self::commit), and what was not to be made durable is an error.
    pub(super) fn commit_all(&self) -> Result<(), FileQueueError> {
        self.commit(false)?;
        let is_all = {
            let state = self.state();
            state.read.element <= state.synced.element
        };
        if is_all { Ok(()) } else { self.check_poison() }
    }

    /// Makes durable what was polled, and that the queue was closed. Files that have been read to their end are used again from then on.
    /// Once the queue is poisoned, polls of what was never synced are left out: they may come again, as it may be lost.
    pub(super) fn commit(&self, is_closed: bool) -> Result<(), FileQueueError> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = self.state().read;
        // After a power cut the read position must not lie behind what there is: new elements would take the place of those that
        // were polled, and be passed.
        let is_behind = |read: Position| read.element > self.state().synced.element;
        let synced = if is_behind(read) || is_closed { self.sync_elements() } else { Ok(()) };
        let write = self.state().synced;
        if synced.is_err() && is_behind(read) {
            // What may be lost anyway comes again if it is not.
            read = write;
        }
        let positions = Positions { read, write, is_closed: is_closed && synced.is_ok(), boot: self.boot.clone() };
        let path = folder::index_path(&self.dir);
        let done = index.write(&positions).map_err(|error| FileQueueError::io("write", &path, &error));
        let gone = {
            let mut state = self.state();
            state.has_commit_failed = done.is_err();
            done?;
            if state.read == read || state.poisoned.is_some() {
                state.polled_since = None;
            }
            let kept = state.segments.split_off(&read.segment);
            std::mem::replace(&mut state.segments, kept)
        };
        gone.into_keys().for_each(|number| self.give_back(number));
        if is_closed { synced } else { Ok(()) }
    }

    /// Keeps the file of a segment for later use, or deletes it.
    fn give_back(&self, number: u64) {
        let path = folder::segment_path(&self.dir, number);
        let spare = folder::spare_path(&self.dir, number);
        let keep = self.state().spares.len() < MAX_SPARES;
        let done = if keep { self.disk.rename(&path, &spare) } else { self.disk.remove_file(&path) };
        match done {
            Ok(()) if keep => self.state().spares.push(spare),
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // The next opening finds it below the read position.
            Err(error) => tracing::warn!(path = %path.display(), %error, "a file that was read to its end is left behind"),
        }
    }

    /// Notes that something was polled, and makes it durable if it is time.
    pub(super) fn polled(&self, read: Position) -> Result<(), FileQueueError> {
        let mut state = self.state();
        state.read = read;
        if state.polled_since.is_none() {
            state.polled_since = Some(Instant::now());
            self.changed.notify_one();
        }
        drop(state);
        if self.options.polls == SyncWhen::Each { self.commit(false) } else { Ok(()) }
    }
}

//! The segment files that are open: so many at most, those used last.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// One use of a segment file: number of the log in this process, epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileKey {
    pub(super) log: u64,
    pub(super) epoch: u64,
}

/// Keeps files open, so that neither a thousand idle queues hold a file descriptor each nor a busy one opens its file at each commit.
#[derive(Debug)]
pub(super) struct OpenFiles {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<FileKey, (u64, Arc<dyn DiskFile>)>,
    by_use: BTreeMap<u64, FileKey>,
    uses: u64,
}

impl OpenFiles {
    /// At most `limit` files; those in use at the moment are not counted.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// The file of that use, opened at `path` if it is not open.
    pub(super) fn open(&self, disk: &dyn Disk, key: FileKey, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.lock().touch(key) {
            return Ok(file);
        }
        let file = disk.open(path)?;
        self.keep(key, Arc::clone(&file));
        Ok(file)
    }

    /// Keeps a file that was opened otherwise.
    pub(super) fn keep(&self, key: FileKey, file: Arc<dyn DiskFile>) {
        let mut state = self.lock();
        state.remove(key);
        state.uses += 1;
        let number = state.uses;
        state.files.insert(key, (number, file));
        state.by_use.insert(number, key);
        while state.files.len() > self.limit {
            let Some((_, oldest)) = state.by_use.pop_first() else { break };
            state.files.remove(&oldest);
        }
    }

    /// The use has ended.
    pub(super) fn forget(&self, key: FileKey) {
        self.lock().remove(key);
    }

    /// All uses of a log have ended.
    pub(super) fn forget_log(&self, log: u64) {
        let mut state = self.lock();
        let keys: Vec<FileKey> = state.files.keys().filter(|key| key.log == log).copied().collect();
        keys.into_iter().for_each(|key| state.remove(key));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn touch(&mut self, key: FileKey) -> Option<Arc<dyn DiskFile>> {
        self.uses += 1;
        let number = self.uses;
        let (used, file) = self.files.get_mut(&key)?;
        let before = std::mem::replace(used, number);
        let file = Arc::clone(file);
        self.by_use.remove(&before);
        self.by_use.insert(number, key);
        Some(file)
    }

    fn remove(&mut self, key: FileKey) {
        if let Some((used, _)) = self.files.remove(&key) {
            self.by_use.remove(&used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedDisk;

    #[test]
    fn the_files_used_last_stay_open() {
        let disk = SimulatedDisk::new();
        let path = |epoch: u64| format!("/{epoch}");
        (0..3).for_each(|epoch| drop(disk.create(Path::new(&path(epoch))).unwrap()));
        let files = OpenFiles::new(2);
        let open = |epoch| files.open(&disk, FileKey { log: 1, epoch }, Path::new(&path(epoch)));
        open(0).unwrap();
        open(1).unwrap();
        open(0).unwrap();
        open(2).unwrap();
        disk.refuse_opens(true);
        assert!(open(0).is_ok() && open(2).is_ok());
        assert!(open(1).is_err());
        files.forget_log(1);
        assert!(open(0).is_err());
    }
}

//! A disk in memory for tests: its power can be cut and its calls can be made to fail.

mod content;
mod faults;
mod gate;
mod names;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::content::Content;
use self::faults::Faults;
use self::gate::Gate;
use self::names::{Names, Node};
use super::{DirEntry, Disk, DiskDir, DiskFile, DiskLock, MAX_SLICES};

/// What a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// Nothing that was not synced.
    LoseUnsynced,
    /// Of what was not synced, whatever the seed says: writes whole, not at all or some of their 512-byte sectors, lengths without
    /// their bytes, and of the names in each folder those changed up to some moment.
    Random(u64),
    /// Everything: only the process ended.
    KeepAll,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    names: Names,
    faults: Faults,
    syncs: Arc<Gate>,
    boots: u64,
    native_root: Option<PathBuf>,
    locks: HashSet<PathBuf>,
}

impl SimulatedDisk {
    /// An empty disk with power and endless space, folder `/` only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a folder of the machine for libraries that know nothing of this one, such as the index's. What is kept there
    /// is out of reach of the faults and survives every power cut.
    #[must_use]
    pub fn with_native_root(root: PathBuf) -> Self {
        let state = State { native_root: Some(root), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Ends this disk, whose calls fail from now on, and returns what is found when the power is back. No faults are set there.
    #[must_use]
    pub fn power_cut(&self, how: PowerCut) -> Self {
        let mut state = self.lock();
        state.faults.cut_now();
        let after = State {
            names: state.names.after(how),
            faults: Faults::default(),
            syncs: Arc::default(),
            boots: state.boots + u64::from(how != PowerCut::KeepAll),
            native_root: state.native_root.clone(),
            locks: HashSet::new(),
        };
        Self { state: Arc::new(Mutex::new(after)) }
    }

    /// After `operations` more calls that change the disk or sync it, the power fails in the middle of the next one: it and all
    /// calls after it fail. `None`: never.
    pub fn cut_power_after(&self, operations: Option<u64>) {
        self.lock().faults.set_cut(operations);
    }

    /// Calls so far that changed the disk or synced it.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().faults.operations()
    }

    /// Bytes by which files may still grow: what goes beyond is written in part and then refused (`ENOSPC`). `None`: no limit.
    pub fn set_free_bytes(&self, bytes: Option<u64>) {
        self.lock().faults.set_free_bytes(bytes);
    }

    /// After `after` more writes, `count` writes fail (`EIO`).
    pub fn fail_writes(&self, after: u64, count: u64) {
        self.lock().faults.fail_writes(after, count);
    }

    /// After `after` more syncs of files, `count` of them fail (`EIO`), and what they should have made durable never becomes so.
    pub fn fail_syncs(&self, after: u64, count: u64) {
        self.lock().faults.fail_syncs(after, count);
    }

    /// While set, syncs of files do not end, and everything else goes on.
    pub fn hold_syncs(&self, hold: bool) {
        self.lock().syncs.set_closed(hold);
    }

    /// While set, whatever needs a new file descriptor fails (`EMFILE`): creating and opening files and folders, listing and removing
    /// folders.
    pub fn refuse_opens(&self, refuse: bool) {
        self.lock().faults.refuse_opens(refuse);
    }

    /// A write takes at most so many bytes. `None`: all.
    pub fn set_write_limit(&self, bytes: Option<usize>) {
        self.lock().faults.set_write_limit(bytes);
    }

    /// Reads that meet these bytes of a file fail (`EIO`) until the next power cut.
    ///
    /// # Errors
    /// There is no such file.
    pub fn make_unreadable(&self, path: &Path, bytes: Range<u64>) -> io::Result<()> {
        match self.lock().names.find(path)? {
            Node::File(content) => {
                content.lock().unwrap_or_else(PoisonError::into_inner).make_unreadable(bytes);
                Ok(())
            }
            Node::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_file(&self, content: Arc<Mutex<Content>>) -> Arc<dyn DiskFile> {
        Arc::new(SimulatedFile { state: Arc::clone(&self.state), content })
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.lock();
        state.faults.open()?;
        let live = state.faults.operation();
        let content = Arc::new(Mutex::new(Content::default()));
        state.names.create(path, Node::File(Arc::clone(&content)))?;
        live?;
        Ok(self.open_file(content))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.lock();
        state.faults.open()?;
        match state.names.find(path)? {
            Node::File(content) => Ok(self.open_file(content)),
            Node::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.faults.power()?;
        let live = state.faults.operation();
        let freed = state.names.rename(from, to)?;
        state.faults.free(freed);
        live
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.faults.power()?;
        let live = state.faults.operation();
        let freed = state.names.remove_file(path)?;
        state.faults.free(freed);
        live
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = self.lock();
        state.faults.open()?;
        let entry = |(name, is_dir): (OsString, bool)| DirEntry { name, is_dir };
        Ok(state.names.list(dir)?.into_iter().map(entry).collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.lock();
        state.faults.power()?;
        match state.names.find(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.faults.power()?;
        let live = state.faults.operation();
        state.names.create_dir_all(dir)?;
        live
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.faults.open()?;
        let live = state.faults.operation();
        let freed = state.names.remove_dir_all(dir)?;
        state.faults.free(freed);
        live
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Arc<dyn DiskDir>> {
        let state = self.lock();
        state.faults.open()?;
        match state.names.find(dir)? {
            Node::Dir(number) => Ok(Arc::new(SimulatedDir { state: Arc::clone(&self.state), number })),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let state = self.lock();
        state.faults.power()?;
        Ok(state.faults.free_bytes())
    }

    fn boot_id(&self) -> Option<String> {
        Some(format!("boot {}", self.lock().boots))
    }

    fn try_lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.lock();
        state.faults.open()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimulatedLock { state: Arc::clone(&self.state), path: path.to_owned() }))
    }

    fn native_path(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix("/").unwrap_or(path);
        self.lock().native_root.as_ref().map(|root| root.join(below))
    }
}

#[derive(Debug)]
struct SimulatedLock {
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl DiskLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).locks.remove(&self.path);
    }
}

#[derive(Debug)]
struct SimulatedDir {
    state: Arc<Mutex<State>>,
    number: u64,
}

impl DiskDir for SimulatedDir {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.faults.power()?;
        state.faults.operation()?;
        state.names.sync_dir(self.number);
        Ok(())
    }
}

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    content: Arc<Mutex<Content>>,
}

impl SimulatedFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.state().faults.power()?;
        let content = self.content();
        if !content.is_readable(offset, buffer.len()) {
            return Err(Faults::unreadable());
        }
        Ok(content.read_at(buffer, offset))
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        let mut content = self.content();
        let bytes = slices.iter().take(MAX_SLICES).fold(Vec::new(), |mut bytes, slice| {
            bytes.extend_from_slice(slice);
            bytes
        });
        state.faults.write()?;
        let live = state.faults.operation();
        let bytes = state.faults.admit(&bytes, offset, content.len())?;
        content.write(bytes, offset);
        live.map(|()| bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        let gate = Arc::clone(&self.state().syncs);
        gate.pass();
        let mut state = self.state();
        state.faults.power()?;
        state.faults.operation()?;
        let synced = state.faults.sync();
        self.content().sync(synced.is_ok());
        synced
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        let mut content = self.content();
        state.faults.write()?;
        let live = state.faults.operation();
        state.faults.free(content.len().saturating_sub(len));
        content.set_len(len)?;
        live
    }

    fn len(&self) -> io::Result<u64> {
        self.state().faults.power()?;
        Ok(self.content().len())
    }
}

#[cfg(test)]
mod tests;

//! A disk between a store and a simulated one. It ends with the process of the store, it can hold up syncs, it counts what is read,
//! and it may lie about syncs, which tests of durability must notice.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hqueue_storage::disk::{DirEntry, Disk, DiskDir, DiskFile, SimulatedDisk};

/// Which syncs do nothing and say that they have succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// Those of files.
    Data,
    /// Those of folders.
    Names,
}

/// Clones belong to the same process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessDisk {
    disk: SimulatedDisk,
    process: Arc<Process>,
}

#[derive(Debug)]
struct Process {
    lie: Lie,
    ended: AtomicBool,
    read_bytes: AtomicU64,
    let_go: Mutex<Vec<LetGo>>,
    syncs: Mutex<Syncs>,
    changed: Condvar,
}

impl Process {
    fn alive(&self) -> io::Result<()> {
        if self.ended.load(SeqCst) { Err(io::Error::other("the process has ended")) } else { Ok(()) }
    }

    fn hold(&self, hold: bool) {
        self.syncs.lock().unwrap().held = hold;
        self.changed.notify_all();
    }

    fn wait_until_released(&self) {
        let mut syncs = self.syncs.lock().unwrap();
        syncs.waiting += 1;
        self.changed.notify_all();
        syncs = self.changed.wait_while(syncs, |syncs| syncs.held).unwrap();
        syncs.waiting -= 1;
    }
}

/// Bytes of a file that need not be kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LetGo {
    pub(crate) bytes: Range<u64>,
    /// So much of the file is synced.
    pub(crate) synced: u64,
}

/// The syncs of files.
#[derive(Debug, Default)]
struct Syncs {
    held: bool,
    waiting: usize,
}

impl ProcessDisk {
    pub(crate) fn new(disk: SimulatedDisk, lie: Lie) -> Self {
        let (ended, read_bytes, let_go) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::default());
        let (syncs, changed) = (Mutex::default(), Condvar::new());
        Self { disk, process: Arc::new(Process { lie, ended, read_bytes, let_go, syncs, changed }) }
    }

    /// Syncs of files wait from now on.
    pub(crate) fn hold_syncs(&self) {
        self.process.hold(true);
    }

    /// Returns when a sync waits, so that what it is to make durable is written; after a second if none comes.
    pub(crate) fn wait_for_sync(&self) {
        let syncs = self.process.syncs.lock().unwrap();
        drop(self.process.changed.wait_timeout_while(syncs, Duration::from_secs(1), |syncs| syncs.waiting == 0).unwrap());
    }

    /// They go on.
    pub(crate) fn release_syncs(&self) {
        self.process.hold(false);
    }

    /// Bytes of files read so far.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.process.read_bytes.load(SeqCst)
    }

    /// What the system was told that it need not keep in memory, so far.
    pub(crate) fn let_go(&self) -> Vec<LetGo> {
        self.process.let_go.lock().unwrap().clone()
    }

    /// The process ends here: its calls fail from now on, and what it has written and not synced stays as it is on the disk, for the
    /// next process to read and for a power cut to lose.
    pub(crate) fn end(&self) {
        self.process.ended.store(true, SeqCst);
    }

    fn live(&self) -> io::Result<&SimulatedDisk> {
        self.process.alive()?;
        Ok(&self.disk)
    }

    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(ProcessFile { file, written: AtomicU64::new(0), synced: AtomicU64::new(0), process: Arc::clone(&self.process) })
    }
}

impl Disk for ProcessDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.live()?.create(path).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.live()?.open(path).map(|file| self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.live()?.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.live()?.remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.live()?.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.live()?.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.live()?.create_dir_all(dir)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.live()?.remove_dir_all(dir)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Arc<dyn DiskDir>> {
        let dir = self.live()?.open_dir(dir)?;
        Ok(Arc::new(ProcessDir { dir, process: Arc::clone(&self.process) }))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.live()?.free_bytes(path)
    }

    fn boot_id(&self) -> Option<String> {
        self.disk.boot_id()
    }

    fn native_path(&self, path: &Path) -> Option<PathBuf> {
        self.disk.native_path(path)
    }
}

#[derive(Debug)]
struct ProcessDir {
    dir: Arc<dyn DiskDir>,
    process: Arc<Process>,
}

impl DiskDir for ProcessDir {
    fn sync(&self) -> io::Result<()> {
        self.process.alive()?;
        if self.process.lie == Lie::Names { Ok(()) } else { self.dir.sync() }
    }
}

#[derive(Debug)]
struct ProcessFile {
    file: Arc<dyn DiskFile>,
    written: AtomicU64,
    synced: AtomicU64,
    process: Arc<Process>,
}

impl DiskFile for ProcessFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.process.alive()?;
        let read = self.file.read_at(buffer, offset)?;
        self.process.read_bytes.fetch_add(read as u64, SeqCst);
        Ok(read)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.process.alive()?;
        let written = self.file.write_vectored_at(slices, offset)?;
        self.written.fetch_max(offset + written as u64, SeqCst);
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.process.wait_until_released();
        self.process.alive()?;
        let written = self.written.load(SeqCst);
        if self.process.lie != Lie::Data {
            self.file.sync_data()?;
        }
        self.synced.fetch_max(written, SeqCst);
        Ok(())
    }

    fn let_go(&self, bytes: Range<u64>) {
        self.process.let_go.lock().unwrap().push(LetGo { bytes, synced: self.synced.load(SeqCst) });
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.process.alive()?;
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.process.alive()?;
        self.file.len()
    }
}

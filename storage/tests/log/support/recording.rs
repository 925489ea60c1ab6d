//! A disk that writes down everything that is done to it, so that any moment of its life can be made anew, down to the byte.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use hqueue_storage::disk::{DirEntry, Disk, DiskDir, DiskFile, SimulatedDisk, write_all_at};

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Create(PathBuf, u64),
    Open(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    CreateDirAll(PathBuf),
    RemoveDirAll(PathBuf),
    SyncDir(PathBuf),
    Write { handle: u64, offset: u64, bytes: Vec<u8> },
    SetLen { handle: u64, len: u64 },
    SyncData { handle: u64 },
}

/// Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct RecordingDisk {
    disk: SimulatedDisk,
    recording: Arc<Recording>,
}

#[derive(Debug, Default)]
struct Recording {
    changes: Mutex<Vec<Change>>,
    handles: AtomicU64,
}

impl Recording {
    fn add(&self, change: Change) {
        self.changes.lock().unwrap().push(change);
    }

    /// Records while nothing else is, so that the record has the order of the disk.
    fn during<T>(&self, work: impl FnOnce() -> io::Result<T>, change: impl FnOnce() -> Change) -> io::Result<T> {
        let mut changes = self.changes.lock().unwrap();
        let done = work()?;
        changes.push(change());
        Ok(done)
    }
}

impl RecordingDisk {
    /// Records what is done to `disk`, which is empty, from now on.
    pub(crate) fn over(disk: SimulatedDisk) -> Self {
        Self { disk, recording: Arc::default() }
    }

    /// Changes so far.
    pub(crate) fn len(&self) -> usize {
        self.recording.changes.lock().unwrap().len()
    }

    pub(crate) fn changes(&self) -> Vec<Change> {
        self.recording.changes.lock().unwrap().clone()
    }

    fn file(&self, file: Arc<dyn DiskFile>, opened: impl FnOnce(u64) -> Change) -> Arc<dyn DiskFile> {
        let handle = self.recording.handles.fetch_add(1, SeqCst);
        self.recording.add(opened(handle));
        Arc::new(RecordingFile { file, handle, recording: Arc::clone(&self.recording) })
    }
}

/// Makes the changes on an empty disk, but of the last one, if it is a write, only the first `torn_at` bytes.
pub(crate) fn replay(changes: &[Change], torn_at: Option<usize>, disk: &SimulatedDisk) {
    let mut files: HashMap<u64, Arc<dyn DiskFile>> = HashMap::new();
    for (n, change) in changes.iter().enumerate() {
        match change {
            Change::Create(path, handle) => drop(files.insert(*handle, disk.create(path).unwrap())),
            Change::Open(path, handle) => drop(files.insert(*handle, disk.open(path).unwrap())),
            Change::Rename(from, to) => disk.rename(from, to).unwrap(),
            Change::RemoveFile(path) => disk.remove_file(path).unwrap(),
            Change::CreateDirAll(path) => disk.create_dir_all(path).unwrap(),
            Change::RemoveDirAll(path) => disk.remove_dir_all(path).unwrap(),
            Change::SyncDir(path) => disk.sync_dir(path).unwrap(),
            Change::Write { handle, offset, bytes } => {
                let until = torn_at.filter(|_| n + 1 == changes.len()).unwrap_or(bytes.len());
                write_all_at(&*files[handle], &mut [IoSlice::new(&bytes[..until])], *offset).unwrap();
            }
            Change::SetLen { handle, len } => files[handle].set_len(*len).unwrap(),
            Change::SyncData { handle } => files[handle].sync_data().unwrap(),
        }
    }
}

impl Disk for RecordingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(path)?;
        Ok(self.file(file, |handle| Change::Create(path.to_owned(), handle)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path)?;
        Ok(self.file(file, |handle| Change::Open(path.to_owned(), handle)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.recording.during(|| self.disk.rename(from, to), || Change::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.recording.during(|| self.disk.remove_file(path), || Change::RemoveFile(path.to_owned()))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.recording.during(|| self.disk.create_dir_all(dir), || Change::CreateDirAll(dir.to_owned()))
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.recording.during(|| self.disk.remove_dir_all(dir), || Change::RemoveDirAll(dir.to_owned()))
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Arc<dyn DiskDir>> {
        let opened = self.disk.open_dir(dir)?;
        Ok(Arc::new(RecordingDir { dir: opened, path: dir.to_owned(), recording: Arc::clone(&self.recording) }))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_bytes(path)
    }

    fn boot_id(&self) -> Option<String> {
        self.disk.boot_id()
    }

    fn native_path(&self, path: &Path) -> Option<PathBuf> {
        self.disk.native_path(path)
    }
}

#[derive(Debug)]
struct RecordingDir {
    dir: Arc<dyn DiskDir>,
    path: PathBuf,
    recording: Arc<Recording>,
}

impl DiskDir for RecordingDir {
    fn sync(&self) -> io::Result<()> {
        self.recording.during(|| self.dir.sync(), || Change::SyncDir(self.path.clone()))
    }
}

#[derive(Debug)]
struct RecordingFile {
    file: Arc<dyn DiskFile>,
    handle: u64,
    recording: Arc<Recording>,
}

impl DiskFile for RecordingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let mut changes = self.recording.changes.lock().unwrap();
        let written = self.file.write_vectored_at(slices, offset)?;
        let bytes = slices.iter().flat_map(|slice| slice.iter().copied()).take(written).collect();
        changes.push(Change::Write { handle: self.handle, offset, bytes });
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        let handle = self.handle;
        self.recording.during(|| self.file.sync_data(), || Change::SyncData { handle })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let handle = self.handle;
        self.recording.during(|| self.file.set_len(len), || Change::SetLen { handle, len })
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

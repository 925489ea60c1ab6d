//! A disk whose syncs can be held.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use hqueue_storage::disk::{DirEntry, Disk, DiskDir, DiskFile, SimulatedDisk};

/// A simulated disk; while the gate is shut a sync waits in front of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatedDisk {
    pub(crate) disk: SimulatedDisk,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shut: bool,
    waiting: usize,
    passed: u64,
}

impl GatedDisk {
    pub(crate) fn shut(&self) {
        self.gate.state.lock().unwrap().shut = true;
    }

    pub(crate) fn open_gate(&self) {
        self.gate.state.lock().unwrap().shut = false;
        self.gate.changed.notify_all();
    }

    /// Blocks until a sync waits in front of the gate.
    pub(crate) fn wait_for_sync(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut state = self.gate.state.lock().unwrap();
        while state.waiting == 0 {
            assert!(Instant::now() < deadline, "no sync came");
            state = self.gate.changed.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
        }
    }

    /// Syncs of files so far.
    pub(crate) fn syncs(&self) -> u64 {
        self.gate.state.lock().unwrap().passed
    }
}

impl Disk for GatedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(path)?;
        Ok(Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path)?;
        Ok(Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(dir)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Arc<dyn DiskDir>> {
        self.disk.open_dir(dir)
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
struct GatedFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl DiskFile for GatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.file.write_vectored_at(slices, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.gate.state.lock().unwrap();
        state.waiting += 1;
        self.gate.changed.notify_all();
        while state.shut {
            state = self.gate.changed.wait(state).unwrap();
        }
        state.waiting -= 1;
        state.passed += 1;
        drop(state);
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

//! The file: one thread writes what has gathered and syncs it; while a sync runs, the next group gathers.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::Put;
use super::delivery::Partition;
use super::vectored;
use crate::failure::{Doing, Outcome};
use crate::setting::Durability;

/// How often what was only written is synced.
const SYNC_PERIOD: Duration = Duration::from_millis(100);

/// A put that waits for the disk, and who is told when it is safe.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) put: Put,
    /// Counts the safe puts of a connection.
    pub(super) safe: Arc<watch::Sender<u32>>,
}

#[derive(Debug)]
pub(super) struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Vec<Entry>>,
    wake: Condvar,
}

impl Log {
    pub(super) fn open(folder: &Path, size: u64, durability: Durability, partitions: Vec<Arc<Partition>>) -> Outcome<Self> {
        let path = folder.join("floor.log");
        let file = written_full(&path, size).doing(|| format!("preparing {}", path.display()))?;
        let shared = Arc::new(Shared::default());
        let writer = Writer { file, size, at: 0, durability, dirty: Arc::new(AtomicBool::new(false)), partitions };
        if durability == Durability::Async {
            let file = writer.file.try_clone().doing(|| "cloning the file's handle".to_owned())?;
            let dirty = Arc::clone(&writer.dirty);
            std::thread::spawn(move || sync_now_and_then(&file, &dirty));
        }
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || writer.run(&theirs));
        Ok(Self { shared })
    }

    pub(super) fn append(&self, entry: Entry) {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        self.shared.wake.notify_one();
    }
}

/// A file whose blocks are all written: syncs into it are twice as fast as into one that grows.
fn written_full(path: &Path, size: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..size.div_ceil(1 << 20) {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn sync_now_and_then(file: &File, dirty: &AtomicBool) {
    loop {
        // A period and no wait: what is acknowledged when written is synced so often.
        std::thread::sleep(SYNC_PERIOD);
        if dirty.swap(false, Ordering::Relaxed)
            && let Err(error) = file.sync_data()
        {
            give_up("sync", &error);
        }
    }
}

/// A floor that cannot write has no figure.
fn give_up(doing: &str, error: &io::Error) -> ! {
    eprintln!("floor: {doing}: {error}");
    std::process::exit(1);
}

#[derive(Debug)]
struct Writer {
    file: File,
    size: u64,
    at: u64,
    durability: Durability,
    /// Something was written since the last sync.
    dirty: Arc<AtomicBool>,
    partitions: Vec<Arc<Partition>>,
}

impl Writer {
    fn run(mut self, shared: &Shared) {
        let mut group = Vec::new();
        loop {
            {
                let mut waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                while waiting.is_empty() {
                    waiting = shared.wake.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                }
                std::mem::swap(&mut *waiting, &mut group);
            }
            if let Err(error) = self.write(&group) {
                give_up("write", &error);
            }
            for Entry { put, safe } in group.drain(..) {
                safe.send_modify(|count| *count = count.wrapping_add(1));
                if let Some(partition) = self.partitions.get(usize::from(put.partition)) {
                    partition.push(put);
                }
            }
        }
    }

    fn write(&mut self, group: &[Entry]) -> io::Result<()> {
        let mut pieces: Vec<_> = group.iter().map(|entry| IoSlice::new(&entry.put.frame)).collect();
        let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        if self.at + bytes > self.size {
            self.file.seek(SeekFrom::Start(0))?;
            self.at = 0;
        }
        vectored::write_all(&mut self.file, &mut pieces)?;
        self.at += bytes;
        match self.durability {
            Durability::Sync => self.file.sync_data(),
            Durability::Async => {
                self.dirty.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

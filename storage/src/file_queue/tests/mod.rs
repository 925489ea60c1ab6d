mod cuts;
mod damage;
mod faults;
mod model;
mod rolling;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{FileQueue, FileQueueError, FileQueueOptions, SyncWhen};
use crate::disk::{Disk, SimulatedDisk, read_file, write_all_at};

const DIR: &str = "/data/queue";

/// A poll that is not durable stays so while a test runs.
const LATER: SyncWhen = SyncWhen::Within(Duration::from_secs(3600));

/// Small files, everything synced at once.
fn strict() -> FileQueueOptions {
    FileQueueOptions {
        segment_bytes: 64 << 10,
        max_element_bytes: 32 << 10,
        offers: SyncWhen::Each,
        polls: SyncWhen::Each,
        ..FileQueueOptions::default()
    }
}

fn open_with(disk: &SimulatedDisk, options: FileQueueOptions) -> Result<FileQueue, FileQueueError> {
    FileQueue::open_on(Arc::new(disk.clone()), DIR, options)
}

fn open(disk: &SimulatedDisk) -> FileQueue {
    open_with(disk, strict()).unwrap()
}

/// Ends the process that has the queue, not the machine.
fn kill(disk: &SimulatedDisk, queue: FileQueue) -> SimulatedDisk {
    let after = disk.power_cut(crate::disk::PowerCut::KeepAll);
    drop(queue);
    after
}

/// Polls everything: texts, and what was said of lost elements.
fn drain(queue: &mut FileQueue) -> (Vec<String>, Vec<FileQueueError>) {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    loop {
        match queue.poll() {
            Ok(Some(element)) => found.push(String::from_utf8(element).unwrap()),
            Ok(None) => return (found, lost),
            Err(error @ (FileQueueError::Damaged { .. } | FileQueueError::Missing { .. })) => lost.push(error),
            Err(error) => panic!("{error}"),
        }
    }
}

fn lost_elements(errors: &[FileQueueError]) -> u64 {
    let elements = |error: &FileQueueError| match error {
        FileQueueError::Damaged { elements, .. } | FileQueueError::Missing { elements, .. } => *elements,
        _ => 0,
    };
    errors.iter().map(elements).sum()
}

/// The names in the folder that end so, in order.
fn files(disk: &SimulatedDisk, ending: &str) -> Vec<PathBuf> {
    let names = disk.list(Path::new(DIR)).unwrap_or_default().into_iter().map(|entry| Path::new(DIR).join(entry.name));
    let mut found: Vec<PathBuf> = names.filter(|path| path.to_str().unwrap().ends_with(ending)).collect();
    found.sort();
    found
}

fn bytes_of(disk: &SimulatedDisk, path: &Path) -> Vec<u8> {
    read_file(disk, path, 1 << 30).unwrap()
}

fn overwrite(disk: &SimulatedDisk, path: &Path, at: usize, bytes: &[u8]) {
    let file = disk.open(path).unwrap();
    write_all_at(&*file, &mut [std::io::IoSlice::new(bytes)], at as u64).unwrap();
}

/// The same files with the same bytes on another disk.
fn copy(disk: &SimulatedDisk) -> SimulatedDisk {
    let other = SimulatedDisk::new();
    other.create_dir_all(Path::new(DIR)).unwrap();
    for path in files(disk, "") {
        other.create(&path).unwrap();
        overwrite(&other, &path, 0, &bytes_of(disk, &path));
    }
    other
}

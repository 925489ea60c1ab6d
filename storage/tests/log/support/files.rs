//! What is on a simulated disk, copied and changed behind a store's back.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use hqueue_storage::disk::{Disk, read_file, write_all_at};

/// Every file below a folder, in the order of paths.
fn files(disk: &dyn Disk, below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in disk.list(below).unwrap() {
        let path = below.join(entry.name);
        if entry.is_dir { found.extend(files(disk, &path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Copies everything to an empty disk, durably.
pub(crate) fn copy(from: &dyn Disk, to: &dyn Disk) {
    for path in files(from, Path::new("/")) {
        let bytes = read_file(from, &path, u64::MAX).unwrap();
        to.create_dir_all(path.parent().unwrap()).unwrap();
        let file = to.create(&path).unwrap();
        write_all_at(&*file, &mut [IoSlice::new(&bytes)], 0).unwrap();
        file.sync_data().unwrap();
    }
}

/// Changes the bytes of a file.
pub(crate) fn edit(disk: &dyn Disk, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = read_file(disk, path, u64::MAX).unwrap();
    change(&mut bytes);
    let file = disk.open(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    write_all_at(&*file, &mut [IoSlice::new(&bytes)], 0).unwrap();
    file.sync_data().unwrap();
}

/// The segment files, oldest first.
pub(crate) fn segments(disk: &dyn Disk) -> Vec<PathBuf> {
    files(disk, Path::new("/")).into_iter().filter(|path| path.extension().is_some_and(|e| e == "segment")).collect()
}

/// Bytes of a segment file up to the end of its last block, and a few zeros behind.
pub(crate) fn used(disk: &dyn Disk, path: &Path) -> usize {
    let bytes = read_file(disk, path, u64::MAX).unwrap();
    // A message ends with a zero.
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| bytes.len().min(last + 2))
}

/// Copies a folder of the machine.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Do calls of the disk still succeed?
pub(crate) fn has_power(disk: &dyn Disk) -> bool {
    disk.exists(Path::new("/")).is_ok()
}

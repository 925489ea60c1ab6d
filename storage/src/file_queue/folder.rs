//! The folder of a file queue.
//!
//! ```text
//! <dir>/lock                                 held while the queue is open
//! <dir>/index                                read and write positions
//! <dir>/<number, 16 hex digits>.segment
//! <dir>/<number, 16 hex digits>.spare        has been a segment, or is about to become one
//! <dir>/<number, 16 hex digits>.damaged      a segment whose header cannot be read; nobody looks at it any more
//! ```

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;

const SEGMENT: &str = ".segment";
const SPARE: &str = ".spare";
const DAMAGED: &str = ".damaged";

/// What a folder has. Other files are left alone.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Numbers of segments, rising.
    pub(super) segments: Vec<u64>,
    pub(super) spares: Vec<PathBuf>,
    /// The highest number that any file but a spare one has.
    pub(super) highest: u64,
}

pub(super) fn lock_path(dir: &Path) -> PathBuf {
    dir.join("lock")
}

pub(super) fn index_path(dir: &Path) -> PathBuf {
    dir.join("index")
}

pub(super) fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}{SEGMENT}"))
}

pub(super) fn spare_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}{SPARE}"))
}

pub(super) fn damaged_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:016x}{DAMAGED}"))
}

pub(super) fn list(disk: &dyn Disk, dir: &Path) -> io::Result<Listing> {
    let mut found = Listing::default();
    for entry in disk.list(dir)? {
        let Some(name) = entry.name.to_str() else { continue };
        let segment = number_of(name, SEGMENT);
        let spare = number_of(name, SPARE);
        found.segments.extend(segment);
        found.spares.extend(spare.map(|_| dir.join(name)));
        let number = segment.or_else(|| number_of(name, DAMAGED));
        found.highest = found.highest.max(number.unwrap_or(0));
    }
    found.segments.sort_unstable();
    found.spares.sort_unstable();
    Ok(found)
}

fn number_of(name: &str, ending: &str) -> Option<u64> {
    let digits = name.strip_suffix(ending)?;
    let is_hex = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedDisk;

    #[test]
    fn files_of_others_are_left_alone() {
        let disk = SimulatedDisk::new();
        let dir = Path::new("/q");
        disk.create_dir_all(dir).unwrap();
        let names = ["notes.txt", "1.segment", "000000000000001G.segment", "lock", "index"].map(|name| dir.join(name));
        let ours = [segment_path(dir, 255), segment_path(dir, 2), spare_path(dir, 300), damaged_path(dir, 280)];
        names.iter().chain(&ours).for_each(|path| drop(disk.create(path).unwrap()));
        let found = list(&disk, dir).unwrap();
        assert_eq!((found.segments, found.highest), (vec![2, 255], 280));
        assert_eq!(found.spares, [spare_path(dir, 300)]);
    }
}

//! The folder of a queue.
//!
//! ```text
//! <data>/queues/<name>/uid                       uid of the queue, as text
//! <data>/queues/<name>/<epoch, 16 hex digits>.segment
//! <data>/queues/<name>/<epoch, 16 hex digits>.spare    has been a segment, or is about to become one
//! <data>/queues/.removed-<number>/               what is being removed
//! ```

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::format::header::{FIXED_LEN, SegmentHeader};
use crate::disk::{Disk, create_dir_durably, read_file, write_file_atomically};

const UID_FILE: &str = "uid";
const SEGMENT: &str = ".segment";
const SPARE: &str = ".spare";
const REMOVED: &str = ".removed-";

/// What a folder of a queue has.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Epochs of segments, rising.
    pub(super) epochs: Vec<u64>,
    pub(super) spares: Vec<PathBuf>,
}

/// Whose folder it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// There is no folder.
    Nobody,
    /// A folder without a word of its queue, and without a message.
    Unknown,
    Queue(Uuid),
}

/// The folder of all queues.
pub(super) fn queues_dir(data: &Path) -> PathBuf {
    data.join("queues")
}

pub(super) fn segment_path(dir: &Path, epoch: u64) -> PathBuf {
    dir.join(format!("{epoch:016x}{SEGMENT}"))
}

pub(super) fn spare_path(dir: &Path, epoch: u64) -> PathBuf {
    dir.join(format!("{epoch:016x}{SPARE}"))
}

/// Can it be the name of a folder that is a queue's?
pub(super) fn is_queue_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

/// Lists segments and spare files. Others are left alone.
pub(super) fn list(disk: &dyn Disk, dir: &Path) -> io::Result<Listing> {
    let mut found = Listing::default();
    for entry in disk.list(dir)? {
        let Some(name) = entry.name.to_str() else { continue };
        if let Some(epoch) = epoch_of(name, SEGMENT) {
            found.epochs.push(epoch);
        } else if epoch_of(name, SPARE).is_some() {
            found.spares.push(dir.join(name));
        }
    }
    found.epochs.sort_unstable();
    found.spares.sort_unstable();
    Ok(found)
}

fn epoch_of(name: &str, ending: &str) -> Option<u64> {
    let digits = name.strip_suffix(ending)?;
    let is_hex = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// Whose folder is it? By its file, and if that is not there or says nothing, by the headers of the segments.
pub(super) fn owner(disk: &dyn Disk, dir: &Path) -> io::Result<Owner> {
    if !disk.exists(dir)? {
        return Ok(Owner::Nobody);
    }
    match read_file(disk, &dir.join(UID_FILE), 100) {
        Ok(text) => {
            if let Some(uid) = std::str::from_utf8(&text).ok().and_then(|text| Uuid::try_parse(text.trim()).ok()) {
                return Ok(Owner::Queue(uid));
            }
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::FileTooLarge) => {}
        Err(error) => return Err(error),
    }
    for epoch in list(disk, dir)?.epochs.into_iter().rev() {
        let path = segment_path(dir, epoch);
        let file = disk.open(&path)?;
        let mut header = vec![0; FIXED_LEN];
        let read = file.read_at(&mut header, 0)?;
        if let Some(header) = header.get(..read).and_then(SegmentHeader::decode) {
            return Ok(Owner::Queue(header.uid));
        }
    }
    Ok(Owner::Unknown)
}

/// Makes the folder of a queue, or says in it whose it is.
pub(super) fn make(disk: &dyn Disk, dir: &Path, uid: Uuid) -> io::Result<()> {
    create_dir_durably(disk, dir)?;
    write_file_atomically(disk, &dir.join(UID_FILE), format!("{uid}\n").as_bytes())
}

/// Removes the folder of a queue: renamed durably first, so that no part of it comes back. What cannot be deleted then is deleted at
/// the next start.
pub(super) fn remove(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let queues = dir.parent().unwrap_or(dir);
    let taken: Vec<_> = disk.list(queues)?.into_iter().map(|entry| entry.name).collect();
    let mut names = (0u64..).map(|n| format!("{REMOVED}{n}"));
    let Some(free) = names.find(|name| !taken.iter().any(|other| other == OsStr::new(name))) else { return Ok(()) };
    let aside = queues.join(free);
    disk.rename(dir, &aside)?;
    disk.sync_dir(queues)?;
    delete_aside(disk, &aside);
    Ok(())
}

/// Deletes what earlier removals have left.
pub(super) fn delete_removed(disk: &dyn Disk, queues: &Path) -> io::Result<()> {
    for entry in disk.list(queues)? {
        if entry.name.to_str().is_some_and(|name| name.starts_with(REMOVED)) {
            delete_aside(disk, &queues.join(entry.name));
        }
    }
    Ok(())
}

fn delete_aside(disk: &dyn Disk, aside: &Path) {
    if let Err(error) = disk.remove_dir_all(aside) {
        tracing::warn!(path = %aside.display(), %error, "a removed queue's files are not deleted yet; the next start tries again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{PowerCut, SimulatedDisk};

    const DIR: &str = "/data/queues/q";

    #[test]
    fn a_folder_tells_whose_it_is_after_every_power_cut() {
        for cut in 0..20 {
            let disk = SimulatedDisk::new();
            disk.cut_power_after(Some(cut));
            let made = make(&disk, Path::new(DIR), Uuid::from_u128(7)).is_ok();
            let after = disk.power_cut(PowerCut::Random(cut));
            let found = owner(&after, Path::new(DIR)).unwrap();
            assert!(found == Owner::Queue(Uuid::from_u128(7)) || !made, "cut {cut}: {found:?}");
        }
    }

    #[test]
    fn a_removed_folder_never_comes_back() {
        for cut in 0..10 {
            let disk = SimulatedDisk::new();
            let dir = Path::new(DIR);
            make(&disk, dir, Uuid::from_u128(7)).unwrap();
            disk.cut_power_after(Some(cut));
            let removed = remove(&disk, dir).is_ok();
            let after = disk.power_cut(PowerCut::LoseUnsynced);
            assert_eq!(owner(&after, dir).unwrap() == Owner::Nobody, removed, "cut {cut}");
            delete_removed(&after, dir.parent().unwrap()).unwrap();
            let left = after.list(dir.parent().unwrap()).unwrap().len();
            assert_eq!(left, usize::from(!removed), "cut {cut}");
        }
    }

    #[test]
    fn names_of_other_files_are_no_segments() {
        assert_eq!(epoch_of("00000000000000ff.segment", SEGMENT), Some(255));
        for other in ["ff.segment", "00000000000000FF.segment", "00000000000000ff.spare", "+0000000000000ff.segment", "uid"] {
            assert_eq!(epoch_of(other, SEGMENT), None, "{other}");
        }
        for name in ["", ".", "..", ".removed-1", "a/b"] {
            assert!(!is_queue_name(name), "{name:?}");
        }
    }
}

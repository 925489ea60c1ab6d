//! Opening a queue.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::active::Active;
use super::error::FileQueueError;
use super::folder;
use super::index::{Index, Position, Positions};
use super::options::FileQueueOptions;
use super::reader::FileQueueReader;
use super::recovery::{Recovered, recover};
use super::shared::{Parts, Shared, State};
use super::writer::FileQueueWriter;
use super::{FileQueue, Opened, keeper};
use crate::disk::{Disk, create_dir_durably};

pub(super) fn open(disk: Arc<dyn Disk>, dir: &Path, options: FileQueueOptions) -> Result<FileQueue, FileQueueError> {
    options.check()?;
    let failed = |what, error: io::Error| FileQueueError::of(&*disk, what, dir, &error);
    create_dir_durably(&*disk, dir).map_err(|error| failed("make the folder", error))?;
    let lock = disk.try_lock(&folder::lock_path(dir)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => FileQueueError::InUse { dir: dir.to_owned() },
        _ => failed("lock", error),
    })?;
    let names = disk.open_dir(dir).map_err(|error| failed("open the folder", error))?;
    let boot = disk.boot_id().unwrap_or_default().into_bytes();
    let found = recover(&*disk, dir, &boot).map_err(|error| failed("look for what is in", error))?;
    let active = active(&*disk, dir, &found).map_err(|error| failed("open the last file of", error))?;
    let (state, index) =
        begin(&*disk, dir, &found, active.as_ref(), &boot).map_err(|error| failed("begin the index of", error))?;
    let parts = Parts { disk: Arc::clone(&disk), dir: dir.to_owned(), names, options, boot, index, state, lock };
    let shared = Arc::new(Shared::new(parts));
    let keeper = keeper::start(&shared).map_err(|error| failed("start a thread for", error))?;
    let opened = Arc::new(Opened { shared, keeper: Mutex::new(keeper) });
    let writer = FileQueueWriter::new(Arc::clone(&opened), active, found.next_element, found.next_segment);
    let reader = FileQueueReader::new(opened, found.read);
    Ok(FileQueue { writer, reader })
}

/// The last file, if it goes on.
fn active(disk: &dyn Disk, dir: &Path, found: &Recovered) -> io::Result<Option<Active>> {
    let Some(write) = found.write else { return Ok(None) };
    let file = disk.open(&folder::segment_path(dir, write.segment))?;
    let file_len = file.len()?;
    let epoch = found.segments.get(&write.segment).map_or(0, |segment| segment.epoch);
    Ok(Some(Active { file, number: write.segment, epoch, end: write.offset, file_len }))
}

/// Everything that was found is synced: from here on the index says so.
fn begin(disk: &dyn Disk, dir: &Path, found: &Recovered, active: Option<&Active>, boot: &[u8]) -> io::Result<(State, Index)> {
    let unwritten = Position { element: found.next_element, ..Position::default() };
    let synced = found.write.unwrap_or(unwritten);
    let positions = Positions { read: found.read, write: synced, is_closed: false, boot: boot.to_owned() };
    let path = folder::index_path(dir);
    // In place: that takes no space.
    let index = match &found.index {
        Some((sequence, known)) => {
            Index::open(disk, &path, *sequence, known).and_then(|mut index| index.write(&positions).map(|()| index))?
        }
        None => Index::create(disk, &path, &positions)?,
    };
    let state = State {
        segments: found.segments.clone(),
        next_element: found.last_element,
        read: found.read,
        written: synced,
        synced,
        active: active.map(|active| Arc::clone(&active.file)),
        spares: found.spares.clone(),
        ..State::default()
    };
    Ok((state, index))
}

impl Shared {
    pub(super) fn close(&self) -> Result<(), FileQueueError> {
        self.commit(true)
    }
}

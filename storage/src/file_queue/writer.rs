//! The end at which elements are added.

use std::io::{self, ErrorKind, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use super::Opened;
use super::active::Active;
use super::error::FileQueueError;
use super::folder;
use super::format::{DATA_START, ELEMENT_HEADER_LEN, ElementHeader, SEAL_AT, Seal, SegmentHeader};
use super::index::Position;
use super::options::SyncWhen;
use super::shared::{Segment, Shared};
use crate::disk::{DiskFile, write_all_at};

/// Adds elements. There is one for a queue; it may be sent to another thread.
#[derive(Debug)]
pub struct FileQueueWriter {
    opened: Arc<Opened>,
    active: Option<Active>,
    next_element: u64,
    next_segment: u64,
}

impl FileQueueWriter {
    pub(super) fn new(opened: Arc<Opened>, active: Option<Active>, next_element: u64, next_segment: u64) -> Self {
        Self { opened, active, next_element, next_segment }
    }

    /// Adds an element at the end. When it returns the element is as durable as [`offers`](super::FileQueueOptions::offers) says, and
    /// the reader sees it.
    ///
    /// # Errors
    /// `ElementTooLarge`, `Full`, `NoSpace`, `Io`: nothing was added. `Poisoned`: it may be there after the next opening, or not.
    pub fn offer(&mut self, element: &[u8]) -> Result<(), FileQueueError> {
        self.offer_all(&[element])
    }

    /// Adds elements, in order, with one write and one sync. The reader sees all of them at once. If the process or the machine ends
    /// before this returns, the first few of them may be there.
    ///
    /// # Errors
    /// As [`offer`](Self::offer); `BatchTooLarge` if they do not fit in one segment. It is all of them or none.
    pub fn offer_all<E: AsRef<[u8]>>(&mut self, elements: &[E]) -> Result<(), FileQueueError> {
        let len = self.check_sizes(elements)?;
        if elements.is_empty() {
            return Ok(());
        }
        self.shared().check_poison()?;
        let segment_bytes = self.shared().options.segment_bytes;
        if self.active.as_ref().is_none_or(|active| active.end > DATA_START && active.end.saturating_add(len) > segment_bytes) {
            self.roll()?;
        }
        match self.write(elements, len) {
            // A file that has its space already may take it.
            Err(FileQueueError::NoSpace { .. }) if self.has_spare() => {
                self.roll()?;
                self.write(elements, len)
            }
            written => written,
        }
    }

    fn has_spare(&self) -> bool {
        self.shared().look_for_spares();
        let is_of_use = self.active.as_ref().is_some_and(|active| active.end > DATA_START);
        is_of_use && !self.shared().state().spares.is_empty()
    }

    /// Makes durable everything that was offered.
    ///
    /// # Errors
    /// `Poisoned`: what was offered since the last sync is not certain.
    pub fn sync(&self) -> Result<(), FileQueueError> {
        self.shared().sync_elements()
    }

    /// Elements in the queue; those that are damaged count until they are passed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    fn shared(&self) -> &Shared {
        &self.opened.shared
    }

    fn check_sizes<E: AsRef<[u8]>>(&self, elements: &[E]) -> Result<u64, FileQueueError> {
        let options = &self.shared().options;
        let limit = options.max_element_bytes;
        let mut sum = 0u64;
        for size in elements.iter().map(|element| element.as_ref().len()) {
            if size > limit {
                return Err(FileQueueError::ElementTooLarge { size, limit });
            }
            sum = sum.saturating_add((ELEMENT_HEADER_LEN + size) as u64);
        }
        let limit = options.batch_limit();
        if sum > limit { Err(FileQueueError::BatchTooLarge { size: sum, limit }) } else { Ok(sum) }
    }

    fn write<E: AsRef<[u8]>>(&mut self, elements: &[E], len: u64) -> Result<(), FileQueueError> {
        let shared = Arc::clone(&self.opened);
        let shared = &shared.shared;
        let Some(active) = &mut self.active else { return Ok(()) };
        let synced = shared.state().synced;
        let synced = if synced.segment == active.number { synced.offset } else { DATA_START };
        let mut at = active.end;
        let headers: Vec<_> = elements
            .iter()
            .zip(self.next_element..)
            .map(|(element, number)| {
                let header = ElementHeader::of(element.as_ref(), number, synced);
                let offset = at;
                at += header.total_len();
                header.encode(active.epoch, offset)
            })
            .collect();
        let pieces = || headers.iter().zip(elements).flat_map(|(header, element)| [&header[..], element.as_ref()]);
        active.write(&pieces, len, shared)?;
        active.end += len;
        self.next_element += elements.len() as u64;
        let written = Position { segment: active.number, offset: active.end, element: self.next_element };
        shared.state().written = written;
        match shared.options.offers {
            SyncWhen::Each => shared.sync_elements()?,
            SyncWhen::Within(_) => shared.sync_later(),
        }
        shared.publish(written);
        Ok(())
    }

    /// Begins a new file: header written and synced under a name that no opening looks at, the file before synced, sealed and synced
    /// again, renamed, folder synced.
    fn roll(&mut self) -> Result<(), FileQueueError> {
        let opened = Arc::clone(&self.opened);
        let shared = &opened.shared;
        let number = self.next_segment;
        let (epoch, _) = Uuid::new_v4().as_u64_pair();
        let header = SegmentHeader { number, epoch, first_element: self.next_element };
        shared.look_for_spares();
        let (file, spare) = prepare(shared, &header)?;
        // A seal is believed: all that is before it is on the disk first.
        shared.sync_elements()?;
        if let Some(active) = self.active.take() {
            let seal = Seal { next: number, end: active.end, next_element: self.next_element };
            let write = || write_all_at(&*active.file, &mut [IoSlice::new(&seal.encode(active.epoch))], SEAL_AT);
            shared.seal(&*active.file, write)?;
        }
        let path = folder::segment_path(&shared.dir, number);
        if let Err(error) = shared.disk.rename(&spare, &path) {
            shared.state().spares.push(spare);
            return Err(shared.failure("begin", &path, &error));
        }
        shared.names.sync().map_err(|error| shared.poison("sync the folder", &error))?;
        let file_len = file.len().map_err(|error| shared.poison("measure", &error))?;
        self.next_segment += 1;
        shared.begin_segment(number, Segment { epoch, first_element: self.next_element, end: DATA_START }, Arc::clone(&file));
        self.active = Some(Active { file, number, epoch, end: DATA_START, file_len });
        Ok(())
    }
}

impl Drop for FileQueueWriter {
    fn drop(&mut self) {
        self.shared().state().is_writer_gone = true;
        self.shared().offered.notify_all();
    }
}

/// A file with this header, durable, under the name of a spare one.
fn prepare(shared: &Shared, header: &SegmentHeader) -> Result<(Arc<dyn DiskFile>, PathBuf), FileQueueError> {
    let (file, path, is_new) = file_for_segment(shared, header.number)?;
    let page = header.encode();
    let done = write_all_at(&*file, &mut [IoSlice::new(&page)], 0).and_then(|()| file.sync_data());
    let Err(error) = done else { return Ok((file, path)) };
    // What is left is no segment, and is used again or removed.
    if is_new {
        let _ = shared.disk.remove_file(&path);
    } else {
        shared.state().spares.push(path.clone());
    }
    Err(shared.failure("begin", &path, &error))
}

fn file_for_segment(shared: &Shared, number: u64) -> Result<(Arc<dyn DiskFile>, PathBuf, bool), FileQueueError> {
    loop {
        let Some(spare) = shared.state().spares.pop() else { break };
        match shared.disk.open(&spare).and_then(|file| shorten(file, shared.options.segment_bytes)) {
            Ok(file) => return Ok((file, spare, false)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let failure = shared.failure("open", &spare, &error);
                shared.state().spares.push(spare);
                return Err(failure);
            }
        }
    }
    shared.check_room()?;
    let path = folder::spare_path(&shared.dir, number);
    let created = match shared.disk.create(&path) {
        // One that could not be removed.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => shared.disk.open(&path),
        created => created,
    };
    match created {
        Ok(file) => Ok((file, path, true)),
        Err(error) => Err(shared.failure("create", &path, &error)),
    }
}

/// One that is left from larger options gives back what it has too much.
fn shorten(file: Arc<dyn DiskFile>, segment_bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
    if file.len()? > segment_bytes {
        file.set_len(segment_bytes)?;
    }
    Ok(file)
}

impl Shared {
    /// Elements between the read position and the last one that is visible.
    pub(super) fn len(&self) -> u64 {
        let state = self.state();
        state.next_element.saturating_sub(state.read.element)
    }

    fn sync_later(&self) {
        let mut state = self.state();
        if state.unsynced_since.is_none() && state.poisoned.is_none() {
            state.unsynced_since = Some(Instant::now());
            self.changed.notify_one();
        }
    }

    /// Shows the reader what is before a position.
    fn publish(&self, written: Position) {
        let mut state = self.state();
        state.next_element = written.element;
        if let Some(segment) = state.segments.get_mut(&written.segment) {
            segment.end = written.offset;
        }
        drop(state);
        self.offered.notify_all();
    }

    fn begin_segment(&self, number: u64, segment: Segment, file: Arc<dyn DiskFile>) {
        let mut state = self.state();
        let start = Position { segment: number, offset: segment.end, element: segment.first_element };
        state.segments.insert(number, segment);
        state.active = Some(file);
        state.written = start;
        state.synced = start;
    }

    /// Files that have been read become spare ones once that is durable, which may be due only later.
    fn look_for_spares(&self) {
        let state = self.state();
        let is_worth_it = state.spares.is_empty() && state.polled_since.is_some();
        drop(state);
        if is_worth_it && let Err(error) = self.commit(false) {
            tracing::warn!(%error, "what was polled may come again");
        }
    }

    /// May there be one more file?
    fn check_room(&self) -> Result<(), FileQueueError> {
        let Some(limit) = self.options.max_bytes else { return Ok(()) };
        let files = self.state().segments.len() as u64 + 1;
        let size = files.saturating_mul(self.options.segment_bytes);
        if size > limit { Err(FileQueueError::Full { dir: self.dir.clone(), size, limit }) } else { Ok(()) }
    }
}

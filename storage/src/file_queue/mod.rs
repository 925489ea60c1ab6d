//! A durable queue in a folder, for a program that wants one and no broker.
//!
//! ```
//! use hqueue_storage::file_queue::FileQueue;
//!
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("jobs");
//! let mut queue = FileQueue::open(&dir)?;
//! queue.offer(b"first")?; // synced when it returns
//! queue.offer_all(&["second", "third"])?; // one sync for both
//! assert_eq!(queue.len(), 3);
//! assert_eq!(queue.peek()?, Some(&b"first"[..])); // stays
//! assert_eq!(queue.poll()?.as_deref(), Some(&b"first"[..])); // goes
//! queue.close()?;
//!
//! let mut queue = FileQueue::open(&dir)?;
//! assert_eq!(queue.poll()?.as_deref(), Some(&b"second"[..]));
//! queue.clear()?;
//! assert!(queue.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Elements are bytes, first in, first out. They lie in segment files of a fixed size (`format.rs` draws them), used again once they have
//! been read to the end; how far the queue was read and written is in an index (`index.rs`). Calls block on the disk.
//!
//! # What a crash can do
//! * **Offered**: with [`offers`](FileQueueOptions::offers)` = Each` (default) an element whose offer has returned is there after the process
//!   was killed or the power was cut. With `Within(d)` it survives the end of the process, and a power cut takes at most what was
//!   offered in the last `d`: always the last elements, never one in between.
//! * **Offered, but the call had not returned, or said `Poisoned`**: it may be there or not; of a batch the first few may be there.
//!   After any other error it is not there.
//! * **Polled**: with [`polls`](FileQueueOptions::polls)` = Each` an element whose poll has returned never comes again. With `Within(d)` (default,
//!   100 ms) elements polled in the last `d` come again, in order, after the process was killed or the power was cut. They never come
//!   again after [`close`](FileQueue::close), a drop, or [`FileQueueReader::sync`]. If the disk refuses to note a poll, the element is given
//!   all the same, may come again, and the next poll says `Io`. Once the queue is poisoned, polls of elements that were never synced (which
//!   takes offers `Within(d)`) are not durable either.
//! * `clear` is durable when it returns.
//!
//! # Damage
//! Every element has a CRC32C and a running number. One that is not what was written is reported (`Damaged` says which file, where, and
//! how many elements) and passed: the next call goes on behind it. Damage to a file's header costs the elements of that file
//! (`Missing`); the file is kept under another name. A lost index is reported in the log: the queue then begins at the oldest file that is
//! there, so that elements may come again. Damage to the very last write, together with a power cut, looks like an offer that never
//! returned and is cut, with a log line.
//!
//! # Locks and threads
//! One process at a time has a queue open, once: another opening, also from another process, says `InUse`. The lock is the system's and ends
//! with the process. [`split`](FileQueue::split) gives one writer and one reader, which two threads may use at the same time: a poll does not
//! wait for the sync of an offer, and [`poll_within`](FileQueueReader::poll_within) is woken by it. With `Within` a thread of the queue
//! sleeps until something is due.
//!
//! # Limits
//! An element has 0 to [`max_element_bytes`](FileQueueOptions::max_element_bytes) bytes (4 MiB), a batch fits in a segment (16 MiB). The
//! queue grows until the disk is full, or to [`max_bytes`](FileQueueOptions::max_bytes): then offers are refused (`NoSpace`, `Full`), nothing is
//! dropped, and polling makes room, a segment at a time. Open files: one for each end, the index, the folder, the lock. Memory: a
//! read-ahead of 256 KiB and the element in hand, whatever the queue's length. Opening takes as long as reading the headers of all files,
//! and after a crash up to one segment more.

mod active;
mod error;
mod folder;
mod format;
mod index;
mod keeper;
mod open;
mod options;
mod reader;
mod recovery;
mod scan;
mod shared;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use error::FileQueueError;
pub use options::{BadFileQueueOption, FileQueueOptions, SyncWhen};
pub use reader::FileQueueReader;
pub use writer::FileQueueWriter;

use self::shared::Shared;
use crate::disk::{Disk, RealDisk};

/// A queue that is open, both ends of it. The module's page says what it promises.
#[derive(Debug)]
pub struct FileQueue {
    writer: FileQueueWriter,
    reader: FileQueueReader,
}

/// What both ends have in common; the queue is closed with the last of them.
#[derive(Debug)]
struct Opened {
    shared: Arc<Shared>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl FileQueue {
    /// Opens the queue in a folder, making it if it is not there, with default options.
    ///
    /// # Errors
    /// `InUse` if it is open already; `NoSpace`, `Io`. Damage does not keep it from being opened.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, FileQueueError> {
        Self::open_with(dir, FileQueueOptions::default())
    }

    /// The same with other options; they may differ from those that it was opened with before.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); `BadOption`.
    pub fn open_with(dir: impl AsRef<Path>, options: FileQueueOptions) -> Result<Self, FileQueueError> {
        Self::open_on(Arc::new(RealDisk), dir, options)
    }

    /// The same on a disk other than the machine's.
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with).
    pub fn open_on(disk: Arc<dyn Disk>, dir: impl AsRef<Path>, options: FileQueueOptions) -> Result<Self, FileQueueError> {
        open::open(disk, dir.as_ref(), options)
    }

    /// Adds an element at the end: [`FileQueueWriter::offer`].
    ///
    /// # Errors
    /// Its errors.
    pub fn offer(&mut self, element: &[u8]) -> Result<(), FileQueueError> {
        self.writer.offer(element)
    }

    /// Adds elements, in order, with one sync: [`FileQueueWriter::offer_all`].
    ///
    /// # Errors
    /// Its errors.
    pub fn offer_all<E: AsRef<[u8]>>(&mut self, elements: &[E]) -> Result<(), FileQueueError> {
        self.writer.offer_all(elements)
    }

    /// The next element, removed: [`FileQueueReader::poll`].
    ///
    /// # Errors
    /// Its errors.
    pub fn poll(&mut self) -> Result<Option<Vec<u8>>, FileQueueError> {
        self.reader.poll()
    }

    /// The next element, which stays: [`FileQueueReader::peek`].
    ///
    /// # Errors
    /// Its errors.
    pub fn peek(&mut self) -> Result<Option<&[u8]>, FileQueueError> {
        self.reader.peek()
    }

    /// Removes all elements, durably: [`FileQueueReader::clear`].
    ///
    /// # Errors
    /// Its errors.
    pub fn clear(&mut self) -> Result<(), FileQueueError> {
        self.reader.clear()
    }

    /// Elements in the queue; those that are damaged count until they are passed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.writer.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes durable what was offered and what was polled.
    ///
    /// # Errors
    /// Those of [`FileQueueWriter::sync`] and [`FileQueueReader::sync`].
    pub fn sync(&mut self) -> Result<(), FileQueueError> {
        self.writer.sync()?;
        self.reader.sync()
    }

    /// The two ends, for two threads.
    #[must_use]
    pub fn split(self) -> (FileQueueWriter, FileQueueReader) {
        (self.writer, self.reader)
    }

    /// Puts the two ends of one queue together again.
    ///
    /// # Errors
    /// They are of different queues: both are given back.
    pub fn unsplit(writer: FileQueueWriter, reader: FileQueueReader) -> Result<Self, Box<(FileQueueWriter, FileQueueReader)>> {
        if Arc::ptr_eq(writer.opened(), reader.opened()) { Ok(Self { writer, reader }) } else { Err(Box::new((writer, reader))) }
    }

    /// Makes everything durable and gives up the queue, as a drop does, and says how it went.
    ///
    /// # Errors
    /// `Poisoned`, `Io`: the next opening looks for what was written last, and what was polled last may come again.
    pub fn close(self) -> Result<(), FileQueueError> {
        self.writer.opened().finish()
    }
}

impl Opened {
    /// Ends the keeper and makes everything durable.
    fn finish(&self) -> Result<(), FileQueueError> {
        self.shared.state().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(keeper) = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It does not panic.
            let _ = keeper.join();
        }
        self.shared.close()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::warn!(%error, "a file queue was not closed in order: the next opening looks after it");
        }
    }
}

impl FileQueueReader {
    /// An element, waiting for one as long as there is a writer. `None`: the writer is gone and everything was polled.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll).
    pub fn poll_until_end(&mut self) -> Result<Option<Vec<u8>>, FileQueueError> {
        self.poll_within(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;

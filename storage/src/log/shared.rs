//! What all queues of a store share.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::counters::Counters;
use super::files::OpenFiles;
use super::index::Index;
use super::options::StoreOptions;
use super::pool::Pool;
use super::queue::QueueLog;
use super::windows::Windows;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::expiry::SharedExpiryClock;
use crate::store::{Durability, StoreError};
use crate::tails::Tails;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: StoreOptions,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Arc<dyn Clock>,
    expiry: SharedExpiryClock,
    /// Writes and syncs.
    pub(super) io: Pool,
    /// Syncs of what was acknowledged when it was written, which no group waits for.
    pub(super) syncs: Pool,
    /// Reads of what memory does not hold, and opening queues.
    pub(super) readers: Pool,
    /// The sweep and the index.
    pub(super) upkeep: Pool,
    pub(super) tails: Tails<QueueLog>,
    pub(super) windows: Windows,
    pub(super) files: OpenFiles,
    pub(super) index: Index,
    pub(super) counters: Arc<Counters>,
    /// Work that can be left to the next start is left to it.
    pub(super) stopping: AtomicBool,
}

impl Shared {
    pub(super) fn start(options: StoreOptions, clock: Arc<dyn Clock>, disk: Arc<dyn Disk>) -> io::Result<Self> {
        let counters = Arc::new(Counters::default());
        Ok(Self {
            expiry: SharedExpiryClock::starting(&*clock),
            io: Pool::start("hqueue-io", options.io_threads)?,
            syncs: Pool::start("hqueue-sync", sync_threads(options.durability))?,
            readers: Pool::start("hqueue-read", options.read_threads)?,
            upkeep: Pool::start("hqueue-upkeep", 1)?,
            tails: Tails::new(options.tail_cache_bytes),
            windows: Windows::new(options.window_cache_bytes, Arc::clone(&counters)),
            files: OpenFiles::new(options.open_files),
            index: Index::open(Arc::clone(&disk), &options.data, options.index_cache_bytes)?,
            counters,
            stopping: AtomicBool::new(false),
            options,
            disk,
            clock,
        })
    }

    /// The time by which messages expire. Milliseconds since 1970 UTC.
    pub(super) fn expiry_now_ms(&self) -> i64 {
        self.expiry.now_ms(&*self.clock)
    }

    /// Ends all threads when what they were given is done.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.readers.stop();
        self.upkeep.stop();
        self.io.stop();
        self.syncs.stop();
    }

    /// An error of the file system, told by kind.
    pub(super) fn error(&self, what: &'static str, path: &Path, error: &io::Error) -> StoreError {
        if is_no_space(error) {
            let free_bytes = self.disk.free_bytes(path.parent().unwrap_or(path)).unwrap_or(0);
            return StoreError::NoSpace { path: path.to_owned(), free_bytes };
        }
        StoreError::Io { what, path: path.to_owned(), reason: error.to_string() }
    }
}

/// None where groups are synced by who writes them.
const fn sync_threads(durability: Durability) -> usize {
    match durability {
        Durability::Sync => 0,
        Durability::Async => 2,
    }
}

/// Is the disk, or what we may have of it, full?
pub(super) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

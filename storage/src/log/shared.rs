//! What all queues of a store share.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::counters::Counters;
use super::files::OpenFiles;
use super::index::Index;
use super::options::StoreOptions;
use super::pool::Pool;
use super::tails::Tails;
use super::windows::Windows;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::expiry::{ClockReport, ExpiryClock};
use crate::store::StoreError;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: StoreOptions,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Arc<dyn Clock>,
    expiry: Mutex<ExpiryClock>,
    /// Writes and syncs.
    pub(super) io: Pool,
    /// Reads of what memory does not hold, and opening queues.
    pub(super) readers: Pool,
    /// The sweep and the index.
    pub(super) upkeep: Pool,
    pub(super) tails: Tails,
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
            expiry: Mutex::new(ExpiryClock::starting(clock.now_ms(), clock.monotonic_ms())),
            io: Pool::start("hqueue-io", options.io_threads)?,
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
        let mut expiry = self.expiry.lock().unwrap_or_else(PoisonError::into_inner);
        let (now_ms, report) = expiry.now(self.clock.now_ms(), self.clock.monotonic_ms());
        drop(expiry);
        match report {
            Some(ClockReport::Doubted { by_ms }) => tracing::warn!(
                by_ms,
                "the wall clock has jumped: messages expire as if it had not, until it has stayed so for 10 minutes"
            ),
            Some(ClockReport::Believed { by_ms }) => {
                tracing::warn!(by_ms, "the wall clock has stayed where it jumped to: messages expire by it from now on");
            }
            Some(ClockReport::Corrected) => tracing::info!("the wall clock is back where it should be"),
            None => {}
        }
        now_ms
    }

    /// Ends all threads when what they were given is done.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.readers.stop();
        self.upkeep.stop();
        self.io.stop();
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

/// Is the disk, or what we may have of it, full?
pub(super) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

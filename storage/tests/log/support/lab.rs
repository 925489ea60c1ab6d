//! A segment store on a simulated disk, with a clock that is turned by hand and small segments.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use hqueue_storage::conformance::{ManualClock, Queue, START_MS};
use hqueue_storage::disk::{Disk, SimulatedDisk};
use hqueue_storage::log::{SegmentStore, StoreOptions};
use hqueue_storage::store::{MessageStore, QueueSpec, StoreError};
use tempfile::TempDir;
use uuid::Uuid;

/// What all stores of a test have in common.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) options: StoreOptions,
    pub(crate) spec: QueueSpec,
    /// Folders of the machine, for the index.
    folder: TempDir,
    disks: AtomicU64,
}

/// An open store with the one queue of the lab.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn MessageStore>,
    pub(crate) queue: Queue,
}

impl Lab {
    /// Segments of 64 KiB, a TTL of a day.
    pub(crate) fn new(partitions: i16) -> Self {
        Self::with_ttl(partitions, 24 * 3_600_000)
    }

    pub(crate) fn with_ttl(partitions: i16, ttl_ms: i64) -> Self {
        let mut options = StoreOptions::new("/data");
        options.segment_bytes = 64 << 10;
        options.io_threads = 1;
        options.read_threads = 1;
        options.sweep = Duration::from_millis(5);
        Self {
            clock: Arc::new(ManualClock::at(START_MS)),
            options,
            spec: QueueSpec { name: "orders".to_owned(), uid: Uuid::new_v4(), partitions, ttl_ms, limit: None },
            folder: memory_folder(),
            disks: AtomicU64::new(0),
        }
    }

    /// An empty disk, and an empty index with it.
    pub(crate) fn disk(&self) -> SimulatedDisk {
        self.disks.fetch_add(1, SeqCst);
        SimulatedDisk::with_native_root(self.root())
    }

    /// Where the index of the disk made last is.
    pub(crate) fn index(&self) -> PathBuf {
        self.root().join("data/index")
    }

    pub(crate) fn drop_index(&self) {
        match std::fs::remove_dir_all(self.index()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            _ => {}
        }
    }

    /// A path for a test's own files.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join("scratch").join(name)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join(self.disks.load(SeqCst).to_string())
    }

    pub(crate) async fn open(&self, disk: impl Disk) -> Opened {
        self.try_open(disk).await.unwrap()
    }

    pub(crate) async fn try_open(&self, disk: impl Disk) -> Result<Opened, StoreError> {
        let store: Arc<dyn MessageStore> =
            Arc::new(SegmentStore::open(self.options.clone(), Arc::clone(&self.clock) as _, Arc::new(disk))?);
        match self.open_queue(&store).await {
            Ok(queue) => Ok(Opened { store, queue }),
            Err(error) => {
                store.close().await;
                Err(error)
            }
        }
    }

    /// The lab's queue, maybe once more.
    pub(crate) async fn open_queue(&self, store: &Arc<dyn MessageStore>) -> Result<Queue, StoreError> {
        Queue::open(&**store, self.spec.clone()).await
    }
}

/// A temporary folder in memory, where the machine has one: for what need not wait for a disk.
pub(crate) fn memory_folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

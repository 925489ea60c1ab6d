//! The segment log does what every store must do: on the machine's disk, on a simulated one, with small segments and
//! small caches.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use hqueue_storage::conformance::{Harness, ManualClock};
use hqueue_storage::disk::{PowerCut, RealDisk, SimulatedDisk};
use hqueue_storage::log::{SegmentStore, StoreOptions};
use hqueue_storage::store::{Durability, MessageStore, StoreError};
use tempfile::TempDir;

use crate::support::memory_folder;

/// On a file system of the machine, in a temporary folder.
struct OnRealDisk {
    folder: TempDir,
    options: fn(&mut StoreOptions),
}

impl OnRealDisk {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), options: |_| {} }
    }

    /// In memory where the machine has such a file system, as syncs are what most cases wait for.
    fn in_memory(options: fn(&mut StoreOptions)) -> Self {
        Self { folder: memory_folder(), options }
    }
}

impl Harness for OnRealDisk {
    fn open(&self, clock: Arc<ManualClock>) -> BoxFuture<'_, Result<Arc<dyn MessageStore>, StoreError>> {
        Box::pin(async move {
            let mut options = StoreOptions::new(self.folder.path());
            (self.options)(&mut options);
            Ok(Arc::new(SegmentStore::open(options, clock, Arc::new(RealDisk))?) as _)
        })
    }
}

/// On a simulated disk whose power fails at each restart, and which loses all that was not synced.
struct OnSimulatedDisk {
    folder: TempDir,
    disk: Mutex<SimulatedDisk>,
    durable_index: bool,
}

impl OnSimulatedDisk {
    fn new(durable_index: bool) -> Self {
        let folder = memory_folder();
        let disk = Mutex::new(SimulatedDisk::with_native_root(folder.path().to_owned()));
        Self { folder, disk, durable_index }
    }
}

impl Harness for OnSimulatedDisk {
    fn open(&self, clock: Arc<ManualClock>) -> BoxFuture<'_, Result<Arc<dyn MessageStore>, StoreError>> {
        Box::pin(async move {
            let mut disk = self.disk.lock().unwrap();
            *disk = disk.power_cut(PowerCut::LoseUnsynced);
            let index = self.folder.path().join("data/index");
            if !self.durable_index && index.exists() {
                std::fs::remove_dir_all(index).unwrap();
            }
            let mut options = StoreOptions::new("/data");
            small_segments(&mut options);
            Ok(Arc::new(SegmentStore::open(options, clock, Arc::new(disk.clone()))?) as _)
        })
    }
}

fn small_segments(options: &mut StoreOptions) {
    options.segment_bytes = 64 << 10;
    options.open_files = 8;
}

/// Every read goes to a file.
fn nothing_in_memory(options: &mut StoreOptions) {
    options.segment_bytes = 1 << 20;
    options.tail_cache_bytes = 0;
    options.window_cache_bytes = 4 << 20;
}

fn asynchronous(options: &mut StoreOptions) {
    options.durability = Durability::Async;
}

hqueue_storage::conformance_tests!(real: OnRealDisk::new());
hqueue_storage::conformance_tests!(nothing_in_memory: OnRealDisk::in_memory(nothing_in_memory));
hqueue_storage::conformance_tests!(asynchronous: OnRealDisk::in_memory(asynchronous));
hqueue_storage::conformance_tests!(simulated_with_power_cuts: OnSimulatedDisk::new(true));
hqueue_storage::conformance_tests!(simulated_without_an_index: OnSimulatedDisk::new(false));

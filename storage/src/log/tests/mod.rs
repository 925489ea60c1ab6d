//! The log under faults, from inside.

mod behind;
mod faults;
mod index;
mod reading;
mod recovery;
mod recycling;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use tempfile::TempDir;
use uuid::Uuid;

use super::{SegmentStore, StoreOptions};
use crate::conformance::{ManualClock, Queue, Recorder, START_MS};
use crate::disk::{Disk, PowerCut, RealDisk, SimulatedDisk};
use crate::store::{MessageStore, QueueSpec, StoreError};

const UID: Uuid = Uuid::from_u128(0x0a11_ce00);

/// A disk, a clock, and the stores that are opened over them one after the other.
struct Rig {
    options: StoreOptions,
    clock: Arc<ManualClock>,
    disk: Arc<dyn Disk>,
    simulated: SimulatedDisk,
    spec: QueueSpec,
    _folder: Option<TempDir>,
}

impl Rig {
    fn simulated() -> Self {
        let simulated = SimulatedDisk::new();
        Self {
            options: StoreOptions { segment_bytes: 64 << 10, ..StoreOptions::new("/data") },
            clock: Arc::new(ManualClock::at(START_MS)),
            disk: Arc::new(simulated.clone()),
            simulated,
            spec: QueueSpec { name: "q".to_owned(), uid: UID, partitions: 2, ttl_ms: 3_600_000, limit: None },
            _folder: None,
        }
    }

    fn real() -> Self {
        let folder = TempDir::new().unwrap();
        let options = StoreOptions { data: folder.path().join("data"), ..Self::simulated().options };
        Self { options, disk: Arc::new(RealDisk), _folder: Some(folder), ..Self::simulated() }
    }

    /// No message stays in memory: every read goes to the files.
    fn without_tail(self) -> Self {
        Self { options: StoreOptions { tail_cache_bytes: 0, ..self.options }, ..self }
    }

    fn open(&self) -> SegmentStore {
        SegmentStore::open(self.options.clone(), Arc::clone(&self.clock) as _, Arc::clone(&self.disk)).unwrap()
    }

    async fn queue(&self, store: &SegmentStore) -> Queue {
        self.try_queue(store).await.unwrap()
    }

    async fn try_queue(&self, store: &SegmentStore) -> Result<Queue, StoreError> {
        let commits = Arc::new(Recorder::default());
        let opened = store.open_queue(self.spec.clone(), Arc::clone(&commits) as _).await?;
        Ok(Queue { spec: self.spec.clone(), store: opened, commits })
    }

    /// The power is cut and comes back.
    fn cut_power(&mut self, how: PowerCut) {
        self.simulated = self.simulated.power_cut(how);
        self.disk = Arc::new(self.simulated.clone());
    }

    fn dir(&self) -> PathBuf {
        self.options.data.join("queues").join(&self.spec.name)
    }

    /// Names of the files in the queue's folder that end so.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let names = self.disk.list(&self.dir()).unwrap().into_iter().map(|entry| self.dir().join(entry.name));
        let mut found: Vec<PathBuf> = names.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
        found.sort();
        found
    }

    fn bytes(&self, path: &Path) -> Vec<u8> {
        crate::disk::read_file(&*self.disk, path, 1 << 30).unwrap()
    }

    /// Puts other bytes in place of a file's.
    fn replace(&self, path: &Path, bytes: &[u8]) {
        let file = self.disk.open(path).unwrap();
        file.set_len(0).unwrap();
        crate::disk::write_all_at(&*file, &mut [std::io::IoSlice::new(bytes)], 0).unwrap();
        file.sync_data().unwrap();
    }
}

/// A put that must be refused; with what.
async fn refused(queue: &Queue, partition: i16, values: &[&str]) -> StoreError {
    match queue.store.append(partition, crate::conformance::batch("t", values)) {
        Ok(append) => append.done.await.unwrap().unwrap_err(),
        Err(refusal) => refusal,
    }
}

/// Numbers of all messages that are read, and how many are said to be damaged.
async fn numbers(queue: &Queue, partition: i16) -> (Vec<u64>, u64) {
    let found = queue.from(partition, MessageId::MIN).await;
    let damaged = found.missing_because(crate::store::MissingReason::Damaged);
    (found.messages.iter().map(|message| message.number).collect(), damaged)
}

//! The store: all queues of one data folder.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::folder::{self, Owner};
use super::intake::Command;
use super::options::StoreOptions;
use super::queue::{QueueHandle, QueueLog};
use super::recovery::{Ending, recover};
use super::shared::Shared;
use crate::clock::Clock;
use crate::disk::{Disk, create_dir_durably};
use crate::store::{CommitListener, MessageStore, QueueSpec, QueueStore, StoreCounters, StoreError};

/// The queues of one data folder, in segment files with a group commit.
#[derive(Debug)]
pub struct SegmentStore {
    core: Arc<Core>,
}

#[derive(Debug)]
struct Core {
    shared: Arc<Shared>,
    /// By name. The lock of a slot is held while its queue is opened or removed, by a thread of the store.
    slots: Mutex<HashMap<String, Arc<Mutex<Slot>>>>,
    logs: AtomicU64,
    closed: AtomicBool,
    closing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Slot {
    log: Option<Arc<QueueLog>>,
}

impl SegmentStore {
    /// Opens the store in `options.data`, which this process must have for itself. Blocks, but not for long: queues are opened by
    /// themselves.
    ///
    /// # Errors
    /// Options outside their limits, a folder that cannot be made, threads that cannot be started.
    pub fn open(options: StoreOptions, clock: Arc<dyn Clock>, disk: Arc<dyn Disk>) -> Result<Self, StoreError> {
        let path = options.data.clone();
        let failed = |what, reason: String| StoreError::Io { what, path: path.clone(), reason };
        options.check().map_err(|bad| failed("open the store in", bad.to_string()))?;
        let queues = folder::queues_dir(&options.data);
        create_dir_durably(&*disk, &queues)
            .and_then(|()| folder::delete_removed(&*disk, &queues))
            .map_err(|error| failed("open the store in", error.to_string()))?;
        let shared = Shared::start(options, clock, disk).map_err(|error| failed("start threads for", error.to_string()))?;
        let core = Arc::new(Core {
            shared: Arc::new(shared),
            slots: Mutex::default(),
            logs: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            closing: tokio::sync::Mutex::default(),
        });
        core.sweep_later();
        Ok(Self { core })
    }

    #[cfg(test)]
    pub(super) fn index(&self) -> &super::index::Index {
        &self.core.shared.index
    }

    #[cfg(test)]
    pub(super) fn indexed_epoch(&self, uid: Uuid) -> u64 {
        self.core.shared.index.indexed_epoch(uid)
    }

    /// Looks for expired messages now, as happens every `options.sweep`, and gives back their files.
    pub fn sweep(&self) {
        self.core.sweep();
    }
}

impl Drop for SegmentStore {
    /// What waits is still committed; what was not closed is found by the next start.
    fn drop(&mut self) {
        if !self.core.closed.swap(true, SeqCst) {
            self.core.shared.stop();
            self.core.shared.index.abandon();
        }
    }
}

impl Core {
    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<Mutex<Slot>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, name: &str) -> Arc<Mutex<Slot>> {
        Arc::clone(self.slots().entry(name.to_owned()).or_default())
    }

    /// All logs that are open. Waits for those that are being opened.
    fn open_logs(&self) -> Vec<Arc<QueueLog>> {
        let slots: Vec<_> = self.slots().values().cloned().collect();
        slots.iter().filter_map(|slot| lock(slot).log.clone()).collect()
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(SeqCst) { Err(StoreError::Closed) } else { Ok(()) }
    }

    fn sweep(&self) {
        let index_is_new = self.shared.index.renew();
        let slots: Vec<_> = self.slots().values().cloned().collect();
        for slot in slots {
            // One that is being opened has just looked at everything.
            let log = slot.try_lock().ok().and_then(|slot| slot.log.clone());
            if let Some(log) = log {
                log.sweep();
                if index_is_new {
                    log.index_sealed();
                }
            }
        }
    }

    fn sweep_later(self: &Arc<Self>) {
        let core: Weak<Self> = Arc::downgrade(self);
        self.shared.upkeep.submit_at(Instant::now() + self.shared.options.sweep, move || {
            if let Some(core) = core.upgrade() {
                core.sweep();
                core.sweep_later();
            }
        });
    }

    fn open_queue(&self, spec: QueueSpec, listener: Arc<dyn CommitListener>) -> Result<Arc<QueueLog>, StoreError> {
        self.check_open()?;
        let queues = folder::queues_dir(&self.shared.options.data);
        if !folder::is_queue_name(&spec.name) {
            let reason = format!("{:?} is no name of a queue", spec.name);
            return Err(StoreError::Io { what: "open a queue in", path: queues, reason });
        }
        let slot = self.slot(&spec.name);
        let mut slot = lock(&slot);
        // A close that began meanwhile does not see this queue.
        self.check_open()?;
        let mut ending = self.shared.index.ending_of(spec.uid);
        if let Some(log) = slot.log.take() {
            if log.spec == spec && !log.is_poisoned() {
                log.set_listener(listener);
                slot.log = Some(Arc::clone(&log));
                return Ok(log);
            }
            log.close();
            self.shared.files.forget_log(log.number);
            ending = Ending::Killed;
        }
        let dir = queues.join(&spec.name);
        let log = self.open_log(&dir, spec, listener, ending).map_err(|error| self.shared.error("open", &dir, &error))?;
        slot.log = Some(Arc::clone(&log));
        Ok(log)
    }

    fn open_log(
        &self,
        dir: &Path,
        spec: QueueSpec,
        listener: Arc<dyn CommitListener>,
        ending: Ending,
    ) -> std::io::Result<Arc<QueueLog>> {
        let disk = &*self.shared.disk;
        match folder::owner(disk, dir)? {
            Owner::Queue(uid) if uid == spec.uid => {}
            Owner::Queue(uid) => {
                tracing::warn!(queue = spec.name, %uid, "data of another queue of this name, which is gone, is removed");
                folder::remove(disk, dir)?;
                folder::make(disk, dir, spec.uid)?;
            }
            Owner::Nobody | Owner::Unknown => folder::make(disk, dir, spec.uid)?,
        }
        let found = recover(disk, dir, &spec, ending)?;
        let number = self.logs.fetch_add(1, SeqCst);
        self.shared.index.opened(spec.uid);
        let log = QueueLog::new(spec, number, dir.to_owned(), Arc::clone(&self.shared), listener, found);
        log.index_sealed();
        Ok(log)
    }

    fn remove_queue(&self, name: &str, uid: Uuid) -> Result<(), StoreError> {
        self.check_open()?;
        if !folder::is_queue_name(name) {
            return Ok(());
        }
        let slot = self.slot(name);
        let mut slot = lock(&slot);
        self.check_open()?;
        if let Some(log) = slot.log.take_if(|log| log.spec.uid == uid) {
            log.close();
            self.shared.files.forget_log(log.number);
        }
        let shared = Arc::clone(&self.shared);
        self.shared.upkeep.submit(move || shared.index.remove_queue(uid));
        let dir = folder::queues_dir(&self.shared.options.data).join(name);
        let disk = &*self.shared.disk;
        let remove = || match folder::owner(disk, &dir)? {
            Owner::Queue(owner) if owner == uid => folder::remove(disk, &dir),
            Owner::Queue(_) | Owner::Nobody | Owner::Unknown => Ok(()),
        };
        remove().map_err(|error| self.shared.error("remove", &dir, &error))
    }

    /// Has everything committed and ends the threads. Blocks.
    fn close(&self) {
        let mut closed = Vec::new();
        for log in self.open_logs() {
            if !log.is_poisoned() {
                // A failure shows in what the close returns.
                drop(log.command(Command::KeepTrims));
            }
            if log.close() {
                closed.push(log.spec.uid);
            }
        }
        self.shared.stop();
        self.shared.index.close(&closed);
    }
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MessageStore for SegmentStore {
    fn open_queue(
        &self,
        spec: QueueSpec,
        listener: Arc<dyn CommitListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn QueueStore>, StoreError>> {
        Box::pin(async move {
            let core = Arc::clone(&self.core);
            let opened = self.core.shared.readers.run(move || core.open_queue(spec, listener)).await;
            opened.unwrap_or(Err(StoreError::Closed)).map(|log| Arc::new(QueueHandle(log)) as Arc<dyn QueueStore>)
        })
    }

    fn remove_queue(&self, name: &str, uid: Uuid) -> BoxFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move {
            let core = Arc::clone(&self.core);
            let removed = self.core.shared.readers.run(move || core.remove_queue(&name, uid)).await;
            removed.unwrap_or(Err(StoreError::Closed))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Whoever comes second waits for the first.
            let _first = self.core.closing.lock().await;
            if self.core.closed.swap(true, SeqCst) {
                return;
            }
            let core = Arc::clone(&self.core);
            let (ended, end) = tokio::sync::oneshot::channel();
            let closer = std::thread::Builder::new().name("hqueue-close".to_owned()).spawn(move || {
                core.close();
                // Nobody may be waiting any more.
                let _ = ended.send(());
            });
            match closer {
                Ok(_) => drop(end.await),
                Err(error) => tracing::error!(%error, "the store cannot be closed: the next start looks after it"),
            }
        })
    }

    fn counters(&self) -> StoreCounters {
        self.core.shared.counters.snapshot(self.core.shared.tails.bytes())
    }
}

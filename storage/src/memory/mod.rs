//! A store that keeps everything in memory: the second implementation of the seam, for tests of what stands above it.
//!
//! An append is committed before [`QueueStore::append`](crate::store::QueueStore::append) returns. What is kept lives as long as
//! some [`MemoryStore`] of the same family: [`MemoryStore::restarted`] gives a new store over the same messages, as a restart of the
//! process would with a log.

mod expiry;
mod partition;
mod queue;
mod retention;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use uuid::Uuid;

use self::queue::{MemoryQueue, QueueData};
use crate::clock::{Clock, SystemClock};
use crate::expiry::SharedExpiryClock;
use crate::store::{CommitListener, MessageStore, QueueSpec, QueueStore, StoreCounters, StoreError};

/// How much the tail of a partition serves unless said otherwise: everything.
const WHOLE_TAIL: usize = usize::MAX;

/// All queues of one broker, in memory.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    /// What every restart keeps.
    queues: Arc<Mutex<HashMap<String, Arc<QueueData>>>>,
}

/// What a store and its handles have in common; a restarted store has another.
#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    expiry: SharedExpiryClock,
    closed: AtomicBool,
    /// `read_tail` serves the newest blocks of a partition up to so many bytes.
    tail_bytes: usize,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    appended_messages: AtomicU64,
    appended_bytes: AtomicU64,
    commits: AtomicU64,
    expired_messages: AtomicU64,
    dropped_messages: AtomicU64,
}

impl Shared {
    /// The time by which messages expire. Milliseconds since 1970 UTC.
    fn expiry_now_ms(&self) -> i64 {
        self.expiry.now_ms(&*self.clock)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::default()))
    }
}

impl MemoryStore {
    /// An empty store. Ids and expiry go by `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_tail(clock, WHOLE_TAIL)
    }

    /// An empty store whose [`read_tail`](QueueStore::read_tail) serves no more than the newest blocks of a partition that sum up to
    /// `tail_bytes` bytes, so that readers which lag meet `Cold`.
    #[must_use]
    pub fn with_tail(clock: Arc<dyn Clock>, tail_bytes: usize) -> Self {
        let expiry = SharedExpiryClock::starting(&*clock);
        let shared = Shared { clock, expiry, closed: AtomicBool::new(false), tail_bytes, counters: Counters::default() };
        Self { shared: Arc::new(shared), queues: Arc::default() }
    }

    /// A store over the messages of this one, which is closed by it: what a restart of the process is for a store on a disk.
    #[must_use]
    pub fn restarted(&self) -> Self {
        self.shared.closed.store(true, Relaxed);
        let next = Self::with_tail(Arc::clone(&self.shared.clock), self.shared.tail_bytes);
        Self { queues: Arc::clone(&self.queues), ..next }
    }

    fn open(&self, spec: QueueSpec, listener: Arc<dyn CommitListener>) -> Result<Arc<dyn QueueStore>, StoreError> {
        if self.shared.closed.load(Relaxed) {
            return Err(StoreError::Closed);
        }
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let data = match queues.get(&spec.name) {
            Some(known) if known.uid == spec.uid => Arc::clone(known),
            other_uid_or_none => {
                if let Some(other) = other_uid_or_none {
                    other.remove();
                }
                let data = Arc::new(QueueData::new(spec.uid));
                queues.insert(spec.name.clone(), Arc::clone(&data));
                data
            }
        };
        Ok(Arc::new(MemoryQueue::new(spec, data, listener, Arc::clone(&self.shared))))
    }
}

impl MessageStore for MemoryStore {
    fn open_queue(
        &self,
        spec: QueueSpec,
        listener: Arc<dyn CommitListener>,
    ) -> BoxFuture<'_, Result<Arc<dyn QueueStore>, StoreError>> {
        Box::pin(async move { self.open(spec, listener) })
    }

    fn remove_queue(&self, name: &str, uid: Uuid) -> BoxFuture<'_, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(async move {
            if self.shared.closed.load(Relaxed) {
                return Err(StoreError::Closed);
            }
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            if queues.get(&name).is_some_and(|known| known.uid == uid)
                && let Some(data) = queues.remove(&name)
            {
                data.remove();
            }
            Ok(())
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.shared.closed.store(true, Relaxed) })
    }

    fn counters(&self) -> StoreCounters {
        let of_this = &self.shared.counters;
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        StoreCounters {
            appended_messages: of_this.appended_messages.load(Relaxed),
            appended_bytes: of_this.appended_bytes.load(Relaxed),
            commits: of_this.commits.load(Relaxed),
            expired_messages: of_this.expired_messages.load(Relaxed),
            dropped_messages: of_this.dropped_messages.load(Relaxed),
            tail_cache_bytes: queues.values().map(|queue| queue.byte_len()).sum(),
            ..StoreCounters::default()
        }
    }
}

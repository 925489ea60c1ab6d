//! One subscriber of a queue: its workers, its endpoints, its state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hqueue_storage::store::QueueStore;
use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use super::endpoint::{Endpoint, EndpointSpec, Takes};
use super::options::SubscriptionOptions;
use super::shared::SubscriptionShared;
use super::topics_json;
use super::worker::SubscriptionWorker;
use crate::partition::CommitWaiters;

/// What coordination keeps of a subscription, in its options node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionRecord {
    /// Fixed endpoints, `host:port`.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// No calls until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Empty: all. The last ones known.
    #[serde(default, with = "topics_json")]
    pub topics: Vec<Vec<u8>>,
    /// The partitions it reads, sorted; empty: all.
    #[serde(default)]
    pub partitions: Vec<i16>,
    #[serde(default)]
    pub options: SubscriptionOptions,
}

/// How a subscription fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionState {
    Active,
    /// It has no endpoint.
    Waiting,
    /// A call failed, or an endpoint does not answer.
    Retrying,
    /// It fails at everything: nothing is dead-lettered until something succeeds.
    Failing,
    /// A message is in the way.
    Blocked,
    /// It is paused, or its queue is disabled.
    Paused,
    /// Something of it in coordination cannot be read.
    Broken,
}

impl SubscriptionState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Failing => "failing",
            Self::Blocked => "blocked",
            Self::Paused => "paused",
            Self::Broken => "broken",
        }
    }
}

/// A subscription at work.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<SubscriptionShared>,
    pub(super) store: Arc<dyn QueueStore>,
    pub(super) waiters: Arc<CommitWaiters>,
    workers: RwLock<BTreeMap<i16, Arc<SubscriptionWorker>>>,
    record: Mutex<SubscriptionRecord>,
    /// What of it cannot be read, by path.
    faults: Mutex<BTreeMap<String, String>>,
    /// Endpoints that were given up while they had a call under way.
    pub(super) leaving: Mutex<Vec<Arc<Endpoint>>>,
    /// Endpoints as they were when other options came: what is known of their lives still counts.
    pub(super) known: Mutex<Vec<Arc<Endpoint>>>,
    /// Messages are about to expire unread.
    late: AtomicBool,
    /// It has other options by now: it makes no more calls, and another one takes its place when those under way have ended.
    pub(super) retiring: AtomicBool,
    /// Somebody waits for the end of those calls.
    pub(super) awaited: AtomicBool,
}

impl Subscription {
    #[must_use]
    pub fn new(
        shared: SubscriptionShared,
        record: SubscriptionRecord,
        store: Arc<dyn QueueStore>,
        waiters: Arc<CommitWaiters>,
    ) -> Self {
        Self {
            shared: Arc::new(shared),
            store,
            waiters,
            workers: RwLock::default(),
            record: Mutex::new(record),
            faults: Mutex::default(),
            leaving: Mutex::default(),
            known: Mutex::default(),
            late: AtomicBool::new(false),
            retiring: AtomicBool::new(false),
            awaited: AtomicBool::new(false),
        }
    }

    #[must_use]
    pub fn shared(&self) -> &Arc<SubscriptionShared> {
        &self.shared
    }

    #[must_use]
    pub fn record(&self) -> SubscriptionRecord {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[must_use]
    pub fn workers(&self) -> Vec<Arc<SubscriptionWorker>> {
        self.workers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Notes whether messages are about to expire unread. True: that is new.
    pub fn warned_of_expiry(&self, is_late: bool) -> bool {
        !self.late.swap(is_late, Ordering::Relaxed) && is_late
    }

    /// The worker of a partition.
    #[must_use]
    pub fn worker(&self, partition: i16) -> Option<Arc<SubscriptionWorker>> {
        self.workers.read().unwrap_or_else(PoisonError::into_inner).get(&partition).cloned()
    }

    /// Begins to push a partition from its checkpoint on, once it has an endpoint.
    pub fn start(&self, partition: i16, checkpoint: Checkpoint) {
        self.shared.stored(partition, checkpoint.id);
        self.begin(&self.new_worker(partition, checkpoint));
    }

    pub(super) fn new_worker(&self, partition: i16, checkpoint: Checkpoint) -> Arc<SubscriptionWorker> {
        Arc::new(SubscriptionWorker::new(Arc::clone(&self.shared), Arc::clone(&self.store), partition, checkpoint))
    }

    pub(super) fn begin(&self, worker: &Arc<SubscriptionWorker>) {
        self.workers.write().unwrap_or_else(PoisonError::into_inner).insert(worker.partition(), Arc::clone(worker));
        self.waiters.add(Arc::clone(worker));
        SubscriptionWorker::wake(worker);
    }

    /// Pushes a partition no more. A call under way ends by itself and moves nothing.
    pub fn end(&self, partition: i16) {
        let ended = self.workers.write().unwrap_or_else(PoisonError::into_inner).remove(&partition);
        if let Some(worker) = ended {
            self.waiters.remove(&worker);
            worker.close();
            worker.forget();
        }
    }

    /// Calls these endpoints from now on, and no others.
    pub fn set_endpoints(&self, mut specs: Vec<(EndpointSpec, Takes)>) {
        specs.sort();
        let known = self.known_unless(specs.is_empty());
        let mut routes = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoints = &mut routes.endpoints;
        let (kept, gone): (Vec<_>, Vec<_>) = endpoints.drain(..).partition(|e| specs.iter().any(|(spec, _)| *spec == e.spec));
        *endpoints = kept;
        let stayed = endpoints.clone();
        let mut routes_change = !gone.is_empty();
        for (spec, takes) in specs {
            match endpoints.iter().find(|e| e.spec == spec) {
                Some(known) => routes_change |= known.set_takes(takes),
                None => {
                    let endpoint = Endpoint::new(spec, takes, Arc::clone(&self.shared));
                    if let Some(before) = known.iter().find(|before| before.spec == endpoint.spec) {
                        endpoint.set_health(before.health().at_rest());
                    }
                    endpoints.push(Arc::new(endpoint));
                    routes_change = true;
                }
            }
        }
        if !routes_change {
            // Asked at every look at the queue: then nobody is woken.
            return;
        }
        endpoints.sort_by(|a, b| a.spec.cmp(&b.spec));
        routes.spread(self.shared.partitions);
        drop(routes);
        gone.iter().for_each(|endpoint| endpoint.close());
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|endpoint| endpoint.is_busy());
        leaving.extend(gone.into_iter().filter(|endpoint| endpoint.is_busy()));
        drop(leaving);
        // Partitions that now belong to another must not wait in the line of one that does not answer.
        stayed.iter().for_each(|endpoint| endpoint.route_line_again());
        self.workers().iter().for_each(SubscriptionWorker::endpoints_changed);
        self.wake_all();
    }

    /// Makes no new calls, or makes them again.
    pub fn set_paused(&self, paused: bool) {
        if self.shared.paused.swap(paused, Ordering::AcqRel) && !paused {
            self.wake_all();
        }
    }

    /// What is in the way is tried again, and what fails at everything gets another chance.
    pub fn resume(&self) {
        self.shared.forgive();
        self.workers().iter().for_each(SubscriptionWorker::resume);
    }

    /// What of it cannot be read in coordination, by path; each new fault is its last error, too.
    pub fn set_faults(&self, faults: BTreeMap<String, String>) {
        let mut known = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, reason) in &faults {
            if known.get(path) != Some(reason) {
                self.shared.note_error(&format!("{path}: {reason}"));
            }
        }
        *known = faults;
    }

    /// The endpoint of a registration, if it is called.
    #[must_use]
    pub fn endpoint_of(&self, registration: i64) -> Option<Arc<Endpoint>> {
        let routes = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        routes.endpoints.iter().find(|e| e.spec.registration == registration).cloned()
    }

    /// Has every worker look for work.
    pub fn wake_all(&self) {
        self.workers().iter().for_each(SubscriptionWorker::wake);
    }

    /// Has the worker of a partition look for work.
    pub fn wake(&self, partition: i16) {
        if let Some(worker) = self.worker(partition) {
            SubscriptionWorker::wake(&worker);
        }
    }

    /// Wants these topics from now on.
    pub fn set_topics(&self, topics: &[Vec<u8>]) {
        if !self.shared.set_topics(topics) {
            return;
        }
        self.workers().iter().for_each(|worker| worker.restart(false));
    }

    /// All messages were removed: lets go of what was read ahead.
    pub fn truncated(&self) {
        self.workers().iter().for_each(|worker| worker.restart(true));
    }

    /// What is kept of it has changed in what a subscription can take on while it runs.
    pub fn set_record(&self, record: SubscriptionRecord) {
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = record;
    }

    /// No more calls; waits for those under way, at most so long.
    pub async fn stop(&self, at_most: Duration) {
        let workers = self.workers();
        workers.iter().for_each(|worker| self.waiters.remove(worker));
        self.set_endpoints(Vec::new());
        // Those too that a change in coordination has taken away a moment before.
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for endpoint in leaving {
            endpoint.drained(at_most).await;
        }
        workers.iter().for_each(|worker| worker.close());
    }

    /// Writes no more checkpoints: its nodes are deleted, and others of the name may come.
    pub fn forget(&self) {
        self.workers().iter().for_each(|worker| worker.forget());
    }

    #[must_use]
    pub fn endpoint_addresses(&self) -> Vec<String> {
        let routes = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        // They are called again in a moment, by the new options.
        let leaving = leaving.iter().filter(|e| self.is_retiring() && e.is_busy());
        let mut all: Vec<String> = routes.endpoints.iter().chain(leaving).map(|e| e.spec.address.clone()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[must_use]
    pub fn state(&self) -> SubscriptionState {
        if self.shared.held.load(Ordering::Acquire) || self.shared.paused.load(Ordering::Acquire) {
            return SubscriptionState::Paused;
        }
        if !self.faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return SubscriptionState::Broken;
        }
        if self.workers().iter().any(|worker| worker.is_blocked()) {
            return SubscriptionState::Blocked;
        }
        if self.shared.is_failing() {
            return SubscriptionState::Failing;
        }
        let routes = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if routes.endpoints.is_empty() && !self.is_retiring() {
            return SubscriptionState::Waiting;
        }
        let away = routes.endpoints.iter().any(|e| e.is_away());
        drop(routes);
        if away || self.workers().iter().any(|w| w.is_retrying()) {
            SubscriptionState::Retrying
        } else {
            SubscriptionState::Active
        }
    }
}

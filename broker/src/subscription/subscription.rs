//! One subscriber of a queue: its workers, its endpoints, its state.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hqueue_storage::store::QueueStore;
use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use super::endpoint::{Endpoint, EndpointSpec};
use super::options::SubscriptionOptions;
use super::shared::SubscriptionShared;
use super::topics_json;
use super::worker::SubscriptionWorker;
use crate::partition::{CommitWaiters, TopicFilter};

/// What coordination keeps of a subscription, in its options node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionRecord {
    /// Fixed endpoints, `host:port`.
    #[serde(default)]
    pub addresses: Vec<String>,
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
    /// Its queue is disabled.
    Paused,
}

impl SubscriptionState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Paused => "paused",
        }
    }
}

/// A subscription at work.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<SubscriptionShared>,
    store: Arc<dyn QueueStore>,
    waiters: Arc<CommitWaiters>,
    workers: RwLock<BTreeMap<i16, Arc<SubscriptionWorker>>>,
    record: Mutex<SubscriptionRecord>,
}

impl Subscription {
    #[must_use]
    pub fn new(
        shared: SubscriptionShared,
        record: SubscriptionRecord,
        store: Arc<dyn QueueStore>,
        waiters: Arc<CommitWaiters>,
    ) -> Self {
        Self { shared: Arc::new(shared), store, waiters, workers: RwLock::default(), record: Mutex::new(record) }
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

    /// Begins to push these partitions, from their checkpoints on.
    pub fn start(&self, checkpoints: impl IntoIterator<Item = (i16, Checkpoint)>) {
        let fixed = self.record().addresses;
        for (partition, checkpoint) in checkpoints {
            let worker = SubscriptionWorker::new(Arc::clone(&self.shared), Arc::clone(&self.store), partition, checkpoint);
            let worker = Arc::new(worker);
            self.workers.write().unwrap_or_else(PoisonError::into_inner).insert(partition, Arc::clone(&worker));
            self.waiters.add(Arc::clone(&worker));
            SubscriptionWorker::wake(&worker);
        }
        if !fixed.is_empty() {
            self.set_endpoints(fixed.into_iter().map(EndpointSpec::fixed).collect());
        }
    }

    /// Calls these endpoints from now on, and no others. Returns those that were given up.
    pub fn set_endpoints(&self, mut specs: Vec<EndpointSpec>) -> Vec<Arc<Endpoint>> {
        specs.sort();
        let mut endpoints = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, gone): (Vec<_>, Vec<_>) = endpoints.drain(..).partition(|e| specs.contains(&e.spec));
        *endpoints = kept;
        for spec in specs {
            if !endpoints.iter().any(|e| e.spec == spec) {
                endpoints.push(Arc::new(Endpoint::new(spec, Arc::clone(&self.shared))));
            }
        }
        endpoints.sort_by(|a, b| a.spec.cmp(&b.spec));
        drop(endpoints);
        gone.iter().for_each(|endpoint| endpoint.close());
        self.wake_all();
        gone
    }

    /// Has every worker look for work.
    pub fn wake_all(&self) {
        self.workers().iter().for_each(SubscriptionWorker::wake);
    }

    /// Wants other topics from now on; remembered in the record, which the caller keeps.
    pub fn set_topics(&self, topics: &[Vec<u8>]) {
        let filter = TopicFilter::new(topics.to_vec());
        self.record.lock().unwrap_or_else(PoisonError::into_inner).topics = topics.to_vec();
        *self.shared.filter.lock().unwrap_or_else(PoisonError::into_inner) = filter;
        self.workers().iter().for_each(|worker| worker.restart(false));
    }

    /// All messages were removed: lets go of what was read ahead.
    pub fn truncated(&self) {
        self.workers().iter().for_each(|worker| worker.restart(true));
    }

    /// Reads these partitions from now on (empty: all); the caller begins with those that are new.
    pub fn set_partitions(&self, partitions: Vec<i16>) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).partitions = partitions;
    }

    /// No more calls; waits for those under way, at most so long.
    pub async fn stop(&self, at_most: Duration) {
        let workers = self.workers();
        workers.iter().for_each(|worker| self.waiters.remove(worker));
        let gone = self.set_endpoints(Vec::new());
        for endpoint in gone {
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
        let endpoints = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.iter().map(|e| e.spec.address.clone()).collect()
    }

    #[must_use]
    pub fn state(&self) -> SubscriptionState {
        if self.shared.held.load(Ordering::Acquire) {
            return SubscriptionState::Paused;
        }
        let endpoints = self.shared.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if endpoints.is_empty() {
            return SubscriptionState::Waiting;
        }
        let away = endpoints.iter().any(|e| e.is_away());
        drop(endpoints);
        if away || self.workers().iter().any(|w| w.is_retrying()) {
            SubscriptionState::Retrying
        } else {
            SubscriptionState::Active
        }
    }
}

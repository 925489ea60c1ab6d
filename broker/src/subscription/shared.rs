//! What all parts of one subscription know of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::checkpoint::CheckpointUpdater;
use super::endpoint::Endpoint;
use super::error_log::ErrorLog;
use super::options::SubscriptionOptions;
use super::worker::SubscriptionWorker;
use crate::partition::TopicFilter;
use crate::time::Moment;

/// Where the broker's tasks run and how they are told to stop.
#[derive(Clone, Debug)]
pub struct TaskScope {
    pub handle: Handle,
    pub tasks: TaskTracker,
    /// No new calls.
    pub stop: CancellationToken,
    /// Calls under way are dropped.
    pub abort: CancellationToken,
}

impl TaskScope {
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.handle);
    }
}

/// The part of a subscription that its workers, endpoints and senders share.
#[derive(Debug)]
pub struct SubscriptionShared {
    pub queue: String,
    pub name: String,
    /// Of the queue.
    pub partitions: i16,
    pub options: SubscriptionOptions,
    pub filter: Mutex<TopicFilter>,
    pub counters: SubscriptionCounters,
    pub checkpoints: Arc<CheckpointUpdater>,
    pub scope: TaskScope,
    /// Sorted by address.
    pub endpoints: Mutex<Vec<Arc<Endpoint>>>,
    /// The queue is disabled: no new calls.
    pub held: Arc<AtomicBool>,
    errors: Mutex<Errors>,
}

#[derive(Debug, Default)]
struct Errors {
    last: Option<LastError>,
    log: ErrorLog,
}

/// What went wrong last, and when.
#[derive(Clone, Debug)]
pub struct LastError {
    pub text: String,
    pub at: Moment,
}

/// Since the broker started.
#[derive(Debug, Default)]
pub struct SubscriptionCounters {
    pub delivered: AtomicU64,
    /// Calls that failed.
    pub failed: AtomicU64,
    /// Calls that consumed something.
    pub consumed: AtomicU64,
    /// Calls answered with -2.
    pub busy: AtomicU64,
    /// Of all calls that were answered.
    pub call_micros: AtomicU64,
    pub in_flight: AtomicU64,
    pub expired: AtomicU64,
    pub damaged: AtomicU64,
}

impl SubscriptionShared {
    #[expect(clippy::too_many_arguments, reason = "made in one place, from what that place has at hand")]
    pub fn new(
        queue: String,
        name: String,
        partitions: i16,
        options: SubscriptionOptions,
        filter: TopicFilter,
        checkpoints: Arc<CheckpointUpdater>,
        scope: TaskScope,
        held: Arc<AtomicBool>,
    ) -> Self {
        Self {
            queue,
            name,
            partitions,
            options,
            filter: Mutex::new(filter),
            counters: SubscriptionCounters::default(),
            checkpoints,
            scope,
            endpoints: Mutex::default(),
            held,
            errors: Mutex::default(),
        }
    }

    /// The topics wanted now.
    pub fn filter(&self) -> TopicFilter {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No calls may begin.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) || self.scope.stop.is_cancelled()
    }

    pub fn last_error(&self) -> Option<LastError> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    /// Keeps the error for the status; an outage is a few lines in the log, not a flood.
    pub fn note_error(&self, text: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = errors.last.as_ref().is_none_or(|l| l.text != text);
        if let Some(held_back) = errors.log.pass(Instant::now(), is_new) {
            tracing::warn!(queue = self.queue, subscriber = self.name, held_back, "call failed: {text}");
        }
        errors.last = Some(LastError { text: text.to_owned(), at: Moment::now() });
    }

    /// Queues a worker that has work at the endpoint of its partition. Without an endpoint it is idle until one comes.
    pub(super) fn enqueue(&self, worker: &Arc<SubscriptionWorker>) {
        if self.scope.stop.is_cancelled() {
            return worker.rest();
        }
        // Under the lock, so that an endpoint that comes now either is seen here or wakes this worker afterwards.
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        match route(&endpoints, worker.partition()) {
            Some(endpoint) => Endpoint::push(endpoint, Arc::clone(worker)),
            None => worker.rest(),
        }
    }
}

/// Which of the endpoints, sorted, serves a partition: those that take it share their partitions evenly.
fn route(endpoints: &[Arc<Endpoint>], partition: i16) -> Option<&Arc<Endpoint>> {
    let takers = endpoints.iter().filter(|e| e.takes(partition)).count();
    let turn = usize::try_from(partition).ok()?.checked_rem(takers)?;
    endpoints.iter().filter(|e| e.takes(partition)).nth(turn)
}

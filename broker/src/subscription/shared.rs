//! What all parts of one subscription know of it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hqueue_protocol::id::MessageId;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_log::{Calls, What};
use super::checkpoint::CheckpointUpdater;
use super::endpoint::Endpoint;
use super::error_log::ErrorLog;
use super::letter::SharedDeadLetterBox;
use super::options::SubscriptionOptions;
use super::rate::Bucket;
use super::spread;
use super::unread::Unread;
use super::window::Window;
use super::worker::SubscriptionWorker;
use crate::cluster::Ownership;
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
    /// Shared with those of the name that had other options.
    pub counters: Arc<SubscriptionCounters>,
    pub checkpoints: Arc<CheckpointUpdater>,
    /// As `counters`: what is noted of its calls.
    pub calls: Calls,
    pub scope: TaskScope,
    pub endpoints: Mutex<Routes>,
    /// The queue is disabled: no new calls.
    pub held: Arc<AtomicBool>,
    /// Which partitions are ours: no calls and no checkpoints of others.
    pub ownership: Arc<Ownership>,
    /// The subscription is paused: no new calls.
    pub paused: AtomicBool,
    /// Of a queue that keeps what is unread.
    unread: Option<Arc<Unread>>,
    /// Where poison goes.
    pub letters: SharedDeadLetterBox,
    /// Dead letters since the last success.
    dead_in_a_row: AtomicU32,
    pub(super) window: Arc<Window>,
    rates: Mutex<(Bucket, Bucket)>,
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
    pub dead_lettered: AtomicU64,
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
        ownership: Arc<Ownership>,
        letters: SharedDeadLetterBox,
        unread: Option<Arc<Unread>>,
        calls: Calls,
    ) -> Self {
        let now = tokio::time::Instant::now();
        Self {
            paused: AtomicBool::new(false),
            letters,
            unread,
            dead_in_a_row: AtomicU32::new(0),
            window: Window::new(options.window_messages, options.window_bytes as usize),
            rates: Mutex::new((Bucket::new(options.rate_messages, now), Bucket::new(options.rate_bytes, now))),
            queue,
            name,
            partitions,
            options,
            filter: Mutex::new(filter),
            counters: Arc::default(),
            checkpoints,
            calls,
            scope,
            endpoints: Mutex::default(),
            held,
            ownership,
            errors: Mutex::default(),
        }
    }

    /// Takes the place of one that had other options: what was counted, and what went wrong, stays.
    #[must_use]
    pub fn following(mut self, former: &Self) -> Self {
        self.counters = Arc::clone(&former.counters);
        self.calls = former.calls.clone();
        self.dead_in_a_row = AtomicU32::new(former.dead_in_a_row.load(Ordering::Acquire));
        let errors = std::mem::take(&mut *former.errors.lock().unwrap_or_else(PoisonError::into_inner));
        self.errors = Mutex::new(errors);
        self
    }

    /// Wants these topics from now on. False: it does already.
    pub(super) fn set_topics(&self, topics: &[Vec<u8>]) -> bool {
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        let next = filter.with_topics(topics.to_vec());
        if *filter.topics() == *next.topics() {
            return false;
        }
        self.calls.note(None, What::Topics { before: Arc::clone(filter.topics()) });
        *filter = next;
        true
    }

    /// The topics wanted now.
    pub fn filter(&self) -> TopicFilter {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No calls may begin for this partition.
    pub fn is_held(&self, partition: i16) -> bool {
        self.held.load(Ordering::Acquire)
            || self.paused.load(Ordering::Acquire)
            || self.scope.stop.is_cancelled()
            || self.ownership.held(partition).is_none()
    }

    /// Its queue makes no calls.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// As much is in flight as may be, of all or at the endpoint where messages of this partition go.
    #[must_use]
    pub fn is_window_full(&self, partition: i16) -> bool {
        let routes = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        self.window.is_full() || routes.of(partition).is_some_and(|endpoint| endpoint.window.is_full())
    }

    /// Where messages of a partition go, and whether that does not answer at present.
    #[must_use]
    pub fn endpoint_of(&self, partition: i16) -> Option<(Arc<str>, bool)> {
        let routes = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        routes.of(partition).map(|endpoint| (Arc::clone(&endpoint.address), endpoint.is_away()))
    }

    /// It is stored that everything wanted at or below `id` is done.
    pub(super) fn stored(&self, partition: i16, id: MessageId) {
        if let Some(unread) = &self.unread {
            unread.stored(partition, &self.name, id.successor());
        }
    }

    /// What lies above `id` is about to be wanted again.
    pub(super) fn lowers(&self, partition: i16, id: MessageId) {
        if let Some(unread) = &self.unread {
            unread.lowers(partition, &self.name, id.successor());
        }
    }

    /// One more dead letter, if there were not too many without a success between them.
    pub(super) fn may_bury(&self) -> bool {
        let most = self.options.max_dead_in_a_row;
        let step = |n| (n < most).then_some(n + 1);
        let before = self.dead_in_a_row.fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        if before.is_ok_and(|before| before + 1 == most) {
            let reason = self.last_error().map(|error| error.text).unwrap_or_default();
            tracing::warn!(
                queue = self.queue,
                subscriber = self.name,
                dead_letters = most,
                "failing: so many dead letters in a row, no more are made until something is consumed; the last reason: {reason}"
            );
        }
        before.is_ok()
    }

    /// Something was consumed.
    pub(super) fn succeeded(&self) {
        if self.dead_in_a_row.load(Ordering::Relaxed) > 0
            && self.dead_in_a_row.swap(0, Ordering::AcqRel) >= self.options.max_dead_in_a_row
        {
            tracing::info!(queue = self.queue, subscriber = self.name, "well again: it has consumed something");
        }
    }

    /// It gets another chance, by command.
    pub(super) fn forgive(&self) {
        self.dead_in_a_row.store(0, Ordering::Release);
    }

    /// It fails at everything: nothing is dead-lettered until something succeeds.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.dead_in_a_row.load(Ordering::Acquire) >= self.options.max_dead_in_a_row
    }

    /// How long to wait before so much is sent.
    pub(super) fn pace(&self, messages: u32, bytes: usize) -> Duration {
        if self.options.rate_messages == 0 && self.options.rate_bytes == 0 {
            return Duration::ZERO;
        }
        let now = tokio::time::Instant::now();
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let (by_messages, by_bytes) = &mut *rates;
        by_messages.take(messages.into(), now).max(by_bytes.take(bytes as u64, now))
    }

    /// Another endpoint than this one answers.
    #[must_use]
    pub(super) fn has_another(&self, endpoint: &Endpoint) -> bool {
        let routes = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        routes.endpoints.iter().any(|other| !std::ptr::eq(&**other, endpoint) && !other.is_passed_over())
    }

    /// There is an endpoint that takes this partition.
    #[must_use]
    pub(super) fn has_endpoint(&self, partition: i16) -> bool {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).endpoints.iter().any(|e| e.takes(partition))
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
        match endpoints.of(worker.partition()) {
            Some(endpoint) => Endpoint::push(endpoint, Arc::clone(worker)),
            None => worker.rest(),
        }
    }
}

/// The endpoints of a subscription, and which partition goes where.
#[derive(Debug, Default)]
pub struct Routes {
    /// Sorted.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// By partition; empty while there is at most one endpoint.
    table: Vec<Option<usize>>,
}

impl Routes {
    /// Makes the table anew: endpoints have come or gone, or take other partitions.
    pub fn spread(&mut self, partitions: i16) {
        self.table = if self.endpoints.len() > 1 {
            let names: Vec<&str> = self.endpoints.iter().map(|endpoint| endpoint.spec.address.as_str()).collect();
            let takes = |index: usize, partition| self.endpoints.get(index).is_some_and(|e| e.takes(partition));
            spread::spread(partitions, &names, takes)
        } else {
            Vec::new()
        };
    }

    /// The endpoint that serves a partition: its own, unless that is passed over and another is not.
    fn of(&self, partition: i16) -> Option<&Arc<Endpoint>> {
        if self.table.is_empty() {
            return self.endpoints.first().filter(|endpoint| endpoint.takes(partition));
        }
        let own = usize::try_from(partition).ok().and_then(|p| self.table.get(p)).copied().flatten();
        let own = own.and_then(|index| self.endpoints.get(index))?;
        if !own.is_passed_over() {
            return Some(own);
        }
        let others = self.endpoints.iter().filter(|e| e.takes(partition) && !e.is_passed_over());
        others.max_by_key(|e| spread::rank(partition, &e.spec.address)).or(Some(own))
    }
}

//! Other options for a subscription at work. They are fixed for its life: one with the new ones takes its place, when no call of the old one
//! is under way any more, and goes on from where that was.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::endpoint::Endpoint;
use super::shared::SubscriptionShared;
use super::subscription::{Subscription, SubscriptionRecord};
use super::worker::SubscriptionWorker;

impl Subscription {
    /// It makes no more calls because its options are others by now.
    #[must_use]
    pub fn is_retiring(&self) -> bool {
        self.retiring.load(Ordering::Acquire)
    }

    /// Makes no new calls. True: none is under way, it can be replaced.
    pub fn retire(&self) -> bool {
        // First, so that nobody takes it for one without an endpoint.
        let is_known = self.retiring.swap(true, Ordering::AcqRel);
        let now = self.shared().endpoints.lock().unwrap_or_else(PoisonError::into_inner).endpoints.clone();
        if !now.is_empty() {
            *self.known() = now;
        }
        self.set_endpoints(Vec::new());
        let is_idle = !self.leaving.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|endpoint| endpoint.is_busy());
        if !is_idle && !is_known {
            tracing::info!(
                queue = self.shared().queue,
                subscriber = self.shared().name,
                "other options: its calls under way end first"
            );
        }
        is_idle
    }

    fn known(&self) -> MutexGuard<'_, Vec<Arc<Endpoint>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are known from before, once; none for those who want none.
    pub(super) fn known_unless(&self, none_are_wanted: bool) -> Vec<Arc<Endpoint>> {
        if none_are_wanted { Vec::new() } else { std::mem::take(&mut self.known()) }
    }

    /// Its options are what they should be after all.
    pub fn stay(&self) {
        self.retiring.store(false, Ordering::Release);
    }

    /// Somebody waits already until it is idle; if not, that is whoever asks.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.awaited.swap(true, Ordering::AcqRel)
    }

    /// The wait is over.
    pub fn awaited(&self) {
        self.awaited.store(false, Ordering::Release);
    }

    /// Waits until no call is under way at an endpoint that was given up. Calls have their own limit.
    pub async fn idle(&self) {
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for endpoint in leaving {
            endpoint.idle().await;
        }
    }

    /// The endpoint of a registration that is given up and may have a call under way.
    #[must_use]
    pub fn leaving_of(&self, registration: i64) -> Option<Arc<Endpoint>> {
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.iter().find(|endpoint| endpoint.spec.registration == registration && endpoint.is_busy()).cloned()
    }

    /// One with these options that goes on from where this one is, which has no call under way and does nothing more. It has no endpoint
    /// yet.
    pub async fn replaced(&self, shared: SubscriptionShared, record: SubscriptionRecord) -> Arc<Self> {
        let workers = self.workers();
        // No checkpoint is being written while it changes hands: its version would be known to the old worker only.
        let mut alone = Vec::with_capacity(workers.len());
        for worker in &workers {
            alone.push(worker.writing.lock().await);
        }
        let shared = shared.following(self.shared());
        let next = Arc::new(Self::new(shared, record, Arc::clone(&self.store), Arc::clone(&self.waiters)));
        next.known().append(&mut self.known());
        workers.iter().for_each(|worker| self.hand_over(worker, &next));
        next
    }

    fn hand_over(&self, worker: &Arc<SubscriptionWorker>, next: &Self) {
        self.waiters.remove(worker);
        worker.close();
        worker.forget();
        let heir = next.new_worker(worker.partition(), worker.checkpoint());
        heir.inherit(worker);
        if worker.begin_dirty() {
            heir.shared().checkpoints.mark(&heir);
        } else {
            next.shared().stored(worker.partition(), heir.checkpoint().id);
        }
        next.begin(&heir);
    }
}

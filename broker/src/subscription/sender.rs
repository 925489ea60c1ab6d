//! Sending: takes workers from an endpoint's line, one call after the other on one connection.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use hqueue_protocol::endpoint::EndpointCaller;

use super::backoff;
use super::endpoint::Endpoint;
use super::outcome::Outcome;
use super::worker::{Batch, Next, SubscriptionWorker};

/// After an error of the store a partition rests for so long.
const STORE_ERROR_PAUSE: Duration = Duration::from_secs(1);

/// Serves an endpoint's line over one connection until the line is empty.
#[derive(Debug)]
pub(super) struct MessageSender {
    endpoint: Arc<Endpoint>,
    caller: EndpointCaller,
}

impl MessageSender {
    pub(super) fn new(endpoint: Arc<Endpoint>, caller: EndpointCaller) -> Self {
        Self { endpoint, caller }
    }

    pub(super) async fn run(mut self) {
        loop {
            while let Some(worker) = self.next_worker().await {
                self.serve(&worker).await;
            }
            if self.endpoint.closed.is_cancelled() {
                self.endpoint.hand_over_line();
            }
            if !self.endpoint.end_sender() {
                break;
            }
        }
        if !self.endpoint.closed.is_cancelled() {
            self.endpoint.keep_caller(self.caller);
        }
    }

    /// The next in the line, once the endpoint is known to answer. `None`: nobody waits, or the endpoint is closed.
    async fn next_worker(&mut self) -> Option<Arc<SubscriptionWorker>> {
        if self.endpoint.closed.is_cancelled() || self.endpoint.is_line_empty() {
            return None;
        }
        while self.endpoint.is_away() {
            if !self.ask().await {
                return None;
            }
        }
        let worker = self.endpoint.pop()?;
        worker.begin_turn();
        Some(worker)
    }

    /// Asks the endpoint whether it is there, and waits if it is not. False: closed meanwhile.
    async fn ask(&mut self) -> bool {
        let closed = self.endpoint.closed.clone();
        let result = tokio::select! {
            result = self.caller.consume(&[]) => result,
            () = closed.cancelled() => return false,
        };
        let unanswered = match result {
            Err(error) if !error.is_answer() => {
                self.endpoint.shared.note_error(&error.to_string());
                let mut health = self.endpoint.health.lock().unwrap_or_else(PoisonError::into_inner);
                health.unanswered = health.unanswered.saturating_add(1);
                health.unanswered
            }
            Ok(_) | Err(_) => {
                let mut health = self.endpoint.health.lock().unwrap_or_else(PoisonError::into_inner);
                health.known_to_live = true;
                health.to_be_asked = false;
                health.unanswered = 0;
                return true;
            }
        };
        let options = &self.endpoint.shared.options;
        let wait = backoff::delay(options.retry_min, options.retry_max, unanswered, fastrand::f64());
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = closed.cancelled() => false,
        }
    }

    /// One turn of a worker: a batch, a call, and what follows.
    async fn serve(&mut self, worker: &Arc<SubscriptionWorker>) {
        if self.endpoint.shared.is_held() {
            SubscriptionWorker::end_turn(worker, false);
            return;
        }
        match worker.next_batch().await {
            Ok(Some(batch)) => {
                let next = self.send(worker, batch).await;
                match next {
                    Next::Again => SubscriptionWorker::end_turn(worker, true),
                    Next::Wait(wait) => SubscriptionWorker::wait(worker, wait),
                    Next::Ask => {
                        self.endpoint.health.lock().unwrap_or_else(PoisonError::into_inner).to_be_asked = true;
                        SubscriptionWorker::end_turn(worker, true);
                    }
                }
            }
            Ok(None) => SubscriptionWorker::end_turn(worker, false),
            Err(error) => {
                self.endpoint.shared.note_error(&format!("partition {} cannot be read: {error}", worker.partition()));
                SubscriptionWorker::wait(worker, STORE_ERROR_PAUSE);
            }
        }
    }

    async fn send(&mut self, worker: &Arc<SubscriptionWorker>, batch: Batch) -> Next {
        worker.sent(&batch);
        let abort = self.endpoint.shared.scope.abort.clone();
        let ahead = self.endpoint.is_line_empty();
        let began = Instant::now();
        let call = async {
            tokio::select! {
                result = self.caller.consume(&batch.slices) => Some(result),
                () = abort.cancelled() => None,
            }
        };
        let read_ahead = async {
            if ahead {
                worker.read_ahead().await;
            }
        };
        let (result, ()) = tokio::join!(call, read_ahead);
        let outcome = match result {
            Some(result) => Outcome::of(result, batch.messages),
            None => Outcome::NoAnswer { reason: "the broker stopped during the call".to_owned(), sent: false, timeout: false },
        };
        self.count(&outcome, began.elapsed());
        let charge = self.note_life(&outcome);
        worker.settle(batch, outcome, charge)
    }

    fn count(&self, outcome: &Outcome, took: Duration) {
        let counters = &self.endpoint.shared.counters;
        let by_result = match outcome {
            Outcome::Consumed(_) => &counters.consumed,
            Outcome::Busy => &counters.busy,
            Outcome::Failed(_) | Outcome::NoAnswer { .. } => &counters.failed,
        };
        by_result.fetch_add(1, Ordering::Relaxed);
        if !matches!(outcome, Outcome::NoAnswer { .. }) {
            counters.call_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Keeps what the call's end says of the endpoint's life. True: an end without an answer counts as an attempt.
    fn note_life(&self, outcome: &Outcome) -> bool {
        let mut health = self.endpoint.health.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(outcome, Outcome::NoAnswer { .. }) {
            std::mem::take(&mut health.known_to_live)
        } else {
            health.known_to_live = true;
            true
        }
    }
}

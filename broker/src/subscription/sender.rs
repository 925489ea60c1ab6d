//! Sending: takes workers from an endpoint's line, one call after the other on one connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hqueue_protocol::endpoint::CallError;
use hqueue_storage::store::StoreError;

use super::backoff;
use super::caller::Caller;
use super::endpoint::Endpoint;
use super::health::End;
use super::outcome::{Outcome, Silence};
use super::window::Room;
use super::worker::{Batch, Next, SubscriptionWorker};
use crate::trace;

/// An endpoint that is passed over is asked so often whether it is back.
const PASSED_OVER_PAUSE: Duration = Duration::from_secs(30);
/// After an error of the store a partition rests for so long.
const STORE_ERROR_PAUSE: Duration = Duration::from_secs(1);

/// Who reads ahead during a call.
#[derive(Debug)]
enum Ahead {
    Nothing,
    /// The one whose call it is.
    OfItself,
    /// The one whose call comes next.
    OfNext(Arc<SubscriptionWorker>),
}

/// Serves an endpoint's line over one connection until the line is empty.
#[derive(Debug)]
pub(super) struct MessageSender {
    endpoint: Arc<Endpoint>,
    caller: Caller,
    /// What was read during the last call came from the disk.
    read_from_disk: bool,
}

impl MessageSender {
    pub(super) fn new(endpoint: Arc<Endpoint>, caller: Caller) -> Self {
        Self { endpoint, caller, read_from_disk: false }
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
        // One that is passed over is asked again although nobody waits for it.
        if self.endpoint.closed.is_cancelled() || (self.endpoint.is_line_empty() && !self.is_passed_over()) {
            return None;
        }
        while self.endpoint.is_away() {
            if self.endpoint.has_too_many_senders() || !self.ask().await {
                return None;
            }
        }
        if self.endpoint.has_too_many_senders() {
            return None;
        }
        let worker = self.endpoint.pop()?;
        worker.begin_turn();
        Some(worker)
    }

    /// Others serve its partitions.
    fn is_passed_over(&self) -> bool {
        self.endpoint.is_passed_over() && self.endpoint.shared.has_another(&self.endpoint)
    }

    /// Asks the endpoint whether it is there, and waits if it is not. False: closed meanwhile.
    async fn ask(&mut self) -> bool {
        let closed = self.endpoint.closed.clone();
        if self.is_passed_over() {
            // Others serve its partitions meanwhile.
            self.say_passed_over();
            self.endpoint.hand_over_line();
            tokio::select! {
                () = tokio::time::sleep(PASSED_OVER_PAUSE) => {}
                () = closed.cancelled() => return false,
            }
        }
        let result = tokio::select! {
            result = self.caller.consume(&[]) => result,
            () = closed.cancelled() => return false,
        };
        let unanswered = match result {
            Err(error) if !error.is_answer() => {
                self.note_silence(&error);
                self.endpoint.health().silent()
            }
            Ok(_) | Err(_) => {
                self.endpoint.health().answered_empty();
                return true;
            }
        };
        if self.is_passed_over() {
            return true;
        }
        let options = &self.endpoint.shared.options;
        let wait = backoff::delay(options.retry_min, options.retry_max, unanswered, fastrand::f64());
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = closed.cancelled() => false,
        }
    }

    /// A question was not answered. One that has answered before speaks Thrift: that it does not now is no news, how it fell silent is.
    fn note_silence(&self, error: &CallError) {
        let shared = &self.endpoint.shared;
        if error.is_undetected() && self.endpoint.health().has_answered() && shared.last_error().is_some() {
            tracing::debug!(queue = shared.queue, subscriber = shared.name, "{error}");
        } else {
            shared.note_error(&error.to_string());
        }
    }

    fn say_passed_over(&self) {
        let shared = &self.endpoint.shared;
        if self.endpoint.health().say_passed_over() {
            let reason = shared.last_error().map(|error| error.text).unwrap_or_default();
            tracing::warn!(
                queue = shared.queue,
                subscriber = shared.name,
                endpoint = self.endpoint.spec.address,
                "passed over while others answer: {reason}"
            );
        }
    }

    /// One turn of a worker: a batch, a call, and what follows.
    async fn serve(&mut self, worker: &Arc<SubscriptionWorker>) {
        if self.endpoint.shared.is_held(worker.partition()) {
            SubscriptionWorker::end_turn(worker, false);
            return;
        }
        if let Some(letter) = worker.letter() {
            SubscriptionWorker::bury(worker, letter);
            return;
        }
        if let Some(left) = worker.has_to_wait() {
            // Something else has woken it.
            SubscriptionWorker::rest_for(worker, left);
            return;
        }
        let (messages, bytes) = worker.limits();
        let closed = self.endpoint.closed.clone();
        let room = async {
            // Its own first: what waits for that keeps nothing from other endpoints.
            let own = self.endpoint.window.room(messages, bytes).await;
            let shared = self.endpoint.shared.window.room(own.messages(), own.bytes()).await;
            (own, shared)
        };
        let (mut own, mut room) = tokio::select! {
            biased;
            rooms = room => rooms,
            () = closed.cancelled() => return SubscriptionWorker::end_turn(worker, true),
        };
        if self.endpoint.is_away() || self.endpoint.has_too_many_senders() {
            // That came to be while this one waited for room.
            return SubscriptionWorker::end_turn(worker, true);
        }
        let next = worker.next_batch(room.messages(), room.bytes()).await;
        if let Ok(Some(batch)) = &next {
            room.fit(batch.messages, batch.bytes());
            own.fit(batch.messages, batch.bytes());
        }
        match next {
            Ok(Some(batch)) if batch.flight.is_some() => {
                // Another sender may take the next batch of it at the same time.
                SubscriptionWorker::end_turn(worker, true);
                if matches!(self.send(worker, batch, &mut own).await, Next::Ask(_)) {
                    self.endpoint.health().to_be_asked = true;
                }
                SubscriptionWorker::wake(worker);
            }
            Ok(Some(batch)) => {
                let next = self.send(worker, batch, &mut own).await;
                match next {
                    Next::Again => SubscriptionWorker::end_turn(worker, true),
                    Next::Wait(wait) => SubscriptionWorker::wait(worker, wait),
                    Next::Ask(wait) => {
                        self.endpoint.health().to_be_asked = true;
                        if wait.is_zero() {
                            SubscriptionWorker::end_turn(worker, true);
                        } else {
                            SubscriptionWorker::wait_unanswered(worker, wait);
                        }
                    }
                }
            }
            // Handed over in between: whoever has the partition reads it.
            Ok(None) | Err(StoreError::NotHeld { .. }) => SubscriptionWorker::end_turn(worker, false),
            Err(error) => {
                self.endpoint.shared.note_error(&format!("partition {} cannot be read: {error}", worker.partition()));
                SubscriptionWorker::wait(worker, STORE_ERROR_PAUSE);
            }
        }
    }

    async fn send(&mut self, worker: &Arc<SubscriptionWorker>, batch: Batch, room: &mut Room) -> Next {
        self.keep_pace(worker, &batch).await;
        let is_closed = self.endpoint.closed.is_cancelled();
        let not_now = !batch.is_redelivery() && (is_closed || self.endpoint.is_away() || self.endpoint.has_too_many_senders());
        // Kept until the call is settled: the partition is not handed over before.
        let stay = self.endpoint.shared.ownership.enter(worker.partition());
        if stay.is_none() || not_now || self.endpoint.shared.is_held(worker.partition()) || !worker.is_current(&batch) {
            return worker.unsent(batch);
        }
        worker.sent(&batch, &self.endpoint.address);
        let shared = &self.endpoint.shared;
        trace::pushed(&shared.queue, &shared.name, &self.endpoint.spec.address, &batch.slices);
        let abort = self.endpoint.shared.scope.abort.clone();
        let ahead = self.reads_ahead(&batch);
        let began = Instant::now();
        let under_way = self.endpoint.health().begin();
        let call = async {
            tokio::select! {
                result = self.caller.consume(&batch.slices) => Some(result),
                () = abort.cancelled() => None,
            }
        };
        let read_ahead = async {
            match ahead {
                Ahead::Nothing => false,
                Ahead::OfItself => worker.read_ahead().await,
                Ahead::OfNext(next) => SubscriptionWorker::read_ahead_in_line(&next).await,
            }
        };
        let (result, from_disk) = tokio::join!(call, read_ahead);
        self.read_from_disk = from_disk;
        let outcome = match result {
            Some(result) => Outcome::of(result, batch.messages),
            None => Outcome::NoAnswer {
                reason: "the broker stopped during the call".to_owned(),
                silence: Silence::Unsent,
                smaller: false,
            },
        };
        match outcome {
            Outcome::Consumed(_) => room.ended(true),
            Outcome::Failed(_) | Outcome::NoAnswer { .. } => room.ended(false),
            Outcome::Refused | Outcome::Busy => {}
        }
        self.count(&outcome, began.elapsed());
        let charge = self.endpoint.health().end(under_way, end_of(&outcome), self.endpoint.line());
        if !matches!(outcome, Outcome::NoAnswer { .. }) && self.endpoint.health().say_back() {
            let endpoint = &self.endpoint.spec.address;
            tracing::info!(queue = shared.queue, subscriber = shared.name, endpoint, "back: it answers again");
        }
        let next = worker.settle(batch, outcome, charge);
        drop(stay);
        next
    }

    /// Who reads during the call. What is in memory costs nothing to read later, so who is next in line reads only while the disk is read.
    fn reads_ahead(&self, batch: &Batch) -> Ahead {
        if batch.flight.is_some() {
            return Ahead::Nothing;
        }
        if self.endpoint.is_line_empty() {
            return Ahead::OfItself;
        }
        if !batch.cold && !self.read_from_disk {
            return Ahead::Nothing;
        }
        let next = self.endpoint.peek().filter(|next| !next.is_without_order());
        next.map_or(Ahead::Nothing, Ahead::OfNext)
    }

    /// Waits as long as the subscription's rate asks for. It may be paused meanwhile, or moved.
    async fn keep_pace(&self, worker: &SubscriptionWorker, batch: &Batch) {
        let wait = self.endpoint.shared.pace(batch.messages, batch.bytes());
        if !wait.is_zero() {
            worker.set_pace(wait);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.endpoint.closed.cancelled() => {}
            }
            worker.set_pace(Duration::ZERO);
        }
    }

    fn count(&self, outcome: &Outcome, took: Duration) {
        let counters = &self.endpoint.shared.counters;
        let by_result = match outcome {
            Outcome::Consumed(_) => &counters.consumed,
            Outcome::Busy => &counters.busy,
            Outcome::Failed(_) | Outcome::Refused | Outcome::NoAnswer { .. } => &counters.failed,
        };
        by_result.fetch_add(1, Ordering::Relaxed);
        if !matches!(outcome, Outcome::NoAnswer { .. }) {
            counters.call_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

const fn end_of(outcome: &Outcome) -> End {
    match outcome {
        Outcome::NoAnswer { silence, .. } => End::Silent(*silence),
        _ => End::Answered,
    }
}

//! Without order: several calls of one partition are in flight, and a batch that fails comes back by itself while others go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_storage::store::StoreError;
use tokio::time::Instant;

use super::{Batch, Next, Progress, SubscriptionWorker, before};
use crate::partition::Fill;
use crate::subscription::backoff;
use crate::subscription::flights::Failed;
use crate::subscription::letter::DeadLetter;
use crate::subscription::options::OnPoison;
use crate::subscription::outcome::Outcome;

impl SubscriptionWorker {
    /// The next batch: one that waits no longer, or a new one if there is room.
    pub(super) async fn next_unordered(
        self: &Arc<Self>,
        mut messages: u32,
        mut bytes: usize,
    ) -> Result<Option<Batch>, StoreError> {
        let options = &self.shared.options;
        let failed_before;
        {
            let mut progress = self.lock();
            if progress.flights.in_flight() >= options.calls as usize {
                // The end of a call wakes.
                return Ok(None);
            }
            if self.shared.is_failing() && !progress.flights.is_empty() {
                return Ok(self.next_of_failing(&mut progress));
            }
            if let Some((key, slices)) = progress.flights.take_due(Instant::now()) {
                return Ok(Some(flight(key, slices, progress.generation)));
            }
            // Attempts that were made before a restart.
            failed_before = progress.flights.is_empty() && progress.checkpoint.attempts > 0;
            messages = messages.min(options.max_span.saturating_sub(progress.flights.span()));
            bytes = bytes.min((options.window_bytes as usize).saturating_sub(progress.flights.bytes()));
            if messages == 0 || bytes == 0 {
                self.wake_when_due(&mut progress);
                return Ok(None);
            }
        }
        let Some(mut scanner) = self.take_scanner() else { return Ok(None) };
        let filled = match scanner.fill(messages, bytes) {
            Ok(Fill::Cold) => scanner.fill_cold(messages, bytes).await,
            filled => filled,
        };
        let mut taken = filled.and_then(|_| scanner.take(messages, bytes));
        if failed_before {
            taken = taken.and_then(|taken| self.only_the_failed(&mut scanner, taken));
        }
        let missing = scanner.take_missing();
        let is_new = self.note_missed(&mut scanner);
        self.count_missing(missing, is_new);
        let mut progress = self.lock();
        if progress.restart {
            self.give_back(&mut progress, scanner);
            self.turn.wake();
            return Ok(None);
        }
        if taken.as_ref().is_ok_and(Vec::is_empty) && scanner.is_hand_empty() && progress.flights.is_empty() {
            // What was passed over because nobody wants it needs no call.
            self.advance(&mut progress, before(scanner.scanned_to()), scanner.number());
        }
        self.give_back(&mut progress, scanner);
        let slices = taken?;
        let (attempts, most) = (progress.checkpoint.attempts, self.shared.options.max_attempts);
        let before = if failed_before { (attempts, attempts >= most) } else { (0, false) };
        let Some(key) = progress.flights.start(slices.clone(), before) else {
            self.wake_when_due(&mut progress);
            return Ok(None);
        };
        Ok(Some(flight(key, slices, progress.generation)))
    }

    /// Of a consumer that fails at everything the oldest message alone is tried.
    fn next_of_failing(self: &Arc<Self>, progress: &mut Progress) -> Option<Batch> {
        if progress.flights.in_flight() > 0 {
            return None;
        }
        let Some((key, slices)) = progress.flights.take_oldest_due(Instant::now()) else {
            self.wake_when_due(progress);
            return None;
        };
        Some(flight(key, slices, progress.generation))
    }

    /// Takes the end of a call.
    pub(super) fn settle_unordered(
        self: &Arc<Self>,
        progress: &mut Progress,
        key: MessageId,
        outcome: Outcome,
        charge: bool,
    ) -> Next {
        let now = Instant::now();
        let mut next = Next::Again;
        match outcome {
            Outcome::Consumed(k) => {
                self.shared.counters.delivered.fetch_add(k.into(), Ordering::Relaxed);
                self.shared.succeeded();
                progress.limit = progress.limit.saturating_mul(2).min(self.shared.options.batch_messages);
                progress.busy = 0;
                progress.flights.consumed(key, k, now);
            }
            Outcome::Busy => {
                progress.busy += 1;
                progress.flights.postponed(key, now + self.backoff(progress.busy));
            }
            Outcome::Refused => {
                let reason = "the subscriber refused it for good (-3)";
                self.shared.note_error(reason);
                if let Some((message, attempts)) = progress.flights.refused(key, now) {
                    self.bury_flight(progress, message, attempts, reason, true);
                }
            }
            Outcome::Failed(reason) => self.failed_flight(progress, key, &reason, now),
            Outcome::NoAnswer { reason, silence, smaller } => {
                if smaller {
                    progress.limit = (progress.limit / 2).max(1);
                }
                if charge && silence.may_have_arrived() {
                    self.failed_flight(progress, key, &reason, now);
                } else {
                    self.shared.note_error(&reason);
                    progress.flights.postponed(key, now);
                }
                next = Next::Ask(Duration::ZERO);
            }
        }
        self.after_flights(progress);
        next
    }

    fn failed_flight(self: &Arc<Self>, progress: &mut Progress, key: MessageId, reason: &str, now: Instant) {
        self.shared.note_error(reason);
        let wait = |failures| self.backoff(failures);
        let failed = progress.flights.failed(key, self.shared.options.max_attempts, now, wait);
        if let Failed::Poison { message, attempts } = failed {
            self.bury_flight(progress, message, attempts, reason, false);
        }
    }

    fn bury_flight(self: &Arc<Self>, progress: &mut Progress, message: StoredSlice, attempts: u32, reason: &str, refused: bool) {
        let shared = &self.shared;
        let key = message.first;
        let blocks = !shared.letters.takes(&shared.queue) || (!refused && shared.options.on_poison == OnPoison::Block);
        if blocks {
            progress.flights.not_buried(key, None);
            shared.note_error(&self.blocked_by(key, reason));
            return;
        }
        if !refused && !shared.may_bury() {
            let max = shared.options.retry_max;
            progress.limit = 1;
            progress.flights.not_buried(key, Some(Instant::now() + backoff::delay(max, max, 1, fastrand::f64())));
            return;
        }
        let letter = DeadLetter {
            queue: shared.queue.clone(),
            subscriber: shared.name.clone(),
            partition: self.partition,
            message,
            attempts,
            error: reason.to_owned(),
        };
        let (worker, generation) = (Arc::clone(self), progress.generation);
        shared.scope.spawn(async move { worker.keep_flight(letter, key, generation).await });
    }

    /// Keeps a letter, however often it has to be tried; the others go on meanwhile.
    pub(super) async fn keep_flight(self: Arc<Self>, letter: DeadLetter, key: MessageId, generation: u64) {
        while let Err(reason) = self.shared.letters.keep(letter.clone()).await {
            self.shared.note_error(&format!("a dead letter cannot be kept: {reason}"));
            tokio::select! {
                () = tokio::time::sleep(self.backoff(1).max(Duration::from_millis(100))) => {}
                () = self.shared.scope.stop.cancelled() => return,
            }
            if self.lock().generation != generation || self.is_forgotten() {
                return;
            }
        }
        let mut progress = self.lock();
        if progress.closed {
            // Its heir keeps it, too, and counts it.
            return;
        }
        self.shared.counters.dead_lettered.fetch_add(1, Ordering::Relaxed);
        self.note_buried(key);
        if progress.generation == generation {
            progress.flights.buried(key);
            self.after_flights(&mut progress);
        }
        drop(progress);
        Self::wake(&self);
    }

    /// Moves the checkpoint to the end of what is done without a gap.
    fn after_flights(self: &Arc<Self>, progress: &mut Progress) {
        let done = progress.flights.take_done();
        let (attempts, to) = progress.flights.first().map_or((0, None), |(attempts, last)| (attempts, Some(last)));
        if attempts != progress.checkpoint.attempts {
            progress.checkpoint.attempts = attempts;
            progress.checkpoint.attempts_to = to.filter(|_| attempts > 0);
            self.shared.checkpoints.mark(self);
        }
        let Some(done) = done else { return };
        let at_end = progress.scanner.as_ref().filter(|scanner| scanner.is_hand_empty() && progress.flights.is_empty());
        let (to, number) = at_end.map_or((done, None), |scanner| (before(scanner.scanned_to()).max(done), scanner.number()));
        self.advance(progress, to, number);
    }

    /// Has the worker woken when the next batch waits no longer: one timer at a time.
    fn wake_when_due(self: &Arc<Self>, progress: &mut Progress) {
        let failing = self.shared.is_failing();
        let due = if failing { progress.flights.oldest_due() } else { progress.flights.next_due() };
        let Some(due) = due else { return };
        if progress.timer.is_some_and(|at| at <= due) {
            return;
        }
        progress.timer = Some(due);
        let worker = Arc::clone(self);
        let stop = self.shared.scope.stop.clone();
        self.shared.scope.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = stop.cancelled() => return,
            }
            worker.lock().timer.take_if(|at| *at == due);
            Self::wake(&worker);
        });
    }
}

fn flight(key: MessageId, slices: Vec<StoredSlice>, generation: u64) -> Batch {
    let messages = slices.iter().map(|slice| slice.count).sum();
    Batch { slices, messages, cold: false, generation, redelivery: None, flight: Some(key) }
}

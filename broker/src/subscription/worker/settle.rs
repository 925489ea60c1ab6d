//! Settling: what the end of a call means for the checkpoint, and for what comes next.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use tokio::time::Instant;

use super::redeliver::Unaccepted;
use super::{Batch, Next, Progress, SubscriptionWorker, before};
use crate::subscription::backoff;
use crate::subscription::outcome::Outcome;
use crate::subscription::policy::{self, Trouble};

impl SubscriptionWorker {
    /// Notes that a batch is on its way.
    pub(in crate::subscription) fn sent(&self, batch: &Batch, endpoint: &Arc<str>) {
        let attempts = if batch.is_redelivery() { 0 } else { self.attempts_of(batch.flight) };
        self.under_way.begin(batch, endpoint, attempts);
        self.in_flight.fetch_add(batch.messages.into(), Ordering::Relaxed);
        self.shared.counters.in_flight.fetch_add(batch.messages.into(), Ordering::Relaxed);
    }

    /// Is the batch still what comes next? Not if somebody has moved the checkpoint since it was read.
    pub(in crate::subscription) fn is_current(&self, batch: &Batch) -> bool {
        batch.redelivery.is_some() || batch.generation == self.lock().generation
    }

    /// The batch is not sent after all.
    pub(in crate::subscription) fn unsent(self: &Arc<Self>, mut batch: Batch) -> Next {
        if let Some(reply) = batch.redelivery.take() {
            // Whoever asked may have given up.
            let _ = reply.send(Err(Unaccepted::Untried("the subscription is paused, or its partition is not held".to_owned())));
            return Next::Again;
        }
        let mut progress = self.lock();
        match batch.flight {
            _ if batch.generation != progress.generation => {}
            Some(key) => progress.flights.postponed(key, Instant::now()),
            None => Self::rewind(&mut progress),
        }
        Next::Again
    }

    /// Takes the end of a call: moves the checkpoint, or keeps the batch for another call. `charge`: an end without an answer
    /// counts as an attempt.
    pub(in crate::subscription) fn settle(self: &Arc<Self>, mut batch: Batch, outcome: Outcome, charge: bool) -> Next {
        self.in_flight.fetch_sub(batch.messages.into(), Ordering::Relaxed);
        let counters = &self.shared.counters;
        counters.in_flight.fetch_sub(batch.messages.into(), Ordering::Relaxed);
        // The call is over and not noted yet, or both under the lock: nobody sees neither.
        let mut progress = self.lock();
        self.note_call(self.under_way.end(&batch), &batch, &outcome, charge);
        if let Some(reply) = batch.redelivery.take() {
            drop(progress);
            return self.redelivered(reply, batch.messages, outcome);
        }
        if let Some(key) = batch.flight {
            if batch.generation != progress.generation {
                return Next::Again;
            }
            return self.settle_unordered(&mut progress, key, outcome, charge);
        }
        if batch.generation != progress.generation {
            // Somebody moved the checkpoint during the call: it goes on from there, whatever the call did.
            self.restart_in(&mut progress);
            return Next::Again;
        }
        let next = match outcome {
            Outcome::Consumed(k) => {
                counters.delivered.fetch_add(k.into(), Ordering::Relaxed);
                self.shared.succeeded();
                self.consumed(&mut progress, batch, k);
                Next::Again
            }
            Outcome::Busy => {
                progress.busy += 1;
                let wait = self.backoff(progress.busy);
                Self::rewind(&mut progress);
                Next::Wait(wait)
            }
            Outcome::Refused => {
                let reason = "the subscriber refused it for good (-3)";
                self.shared.note_error(reason);
                self.refused(&mut progress, &batch, reason)
            }
            Outcome::Failed(reason) => {
                self.shared.note_error(&reason);
                self.attempted(&mut progress, &batch, &reason)
            }
            Outcome::NoAnswer { reason, silence, smaller } => {
                self.shared.note_error(&reason);
                let next = if charge && silence.may_have_arrived() {
                    self.attempted(&mut progress, &batch, &reason)
                } else {
                    Self::rewind(&mut progress);
                    Next::Again
                };
                if smaller {
                    progress.limit = (batch.messages / 2).max(1);
                }
                // One that answers the question and dies of the batch again must not be hammered.
                match next {
                    Next::Wait(wait) => Next::Ask(wait),
                    Next::Again | Next::Ask(_) => Next::Ask(Duration::ZERO),
                }
            }
        };
        if progress.restart {
            self.restart_in(&mut progress);
        }
        next
    }

    fn consumed(self: &Arc<Self>, progress: &mut Progress, batch: Batch, k: u32) {
        let Some(scanner) = progress.scanner.as_mut() else { return };
        let mut last = None;
        let mut left = k;
        let mut rest = Vec::new();
        for slice in batch.slices {
            if left == 0 {
                rest.push(slice);
                continue;
            }
            // The bytes were stepped over when they were stored; were they not, they would count as not consumed.
            let Ok((front, behind)) = slice.clone().split_front(left, usize::MAX) else {
                left = 0;
                rest.push(slice);
                continue;
            };
            left = left.saturating_sub(front.count);
            last = Some(front.last);
            rest.extend(behind);
        }
        let all = rest.is_empty();
        scanner.put_back(rest);
        let to = if all && scanner.is_hand_empty() { Some(before(scanner.scanned_to())) } else { last };
        progress.busy = 0;
        progress.limit = progress.limit.saturating_mul(2).min(self.shared.options.batch_messages);
        let number = scanner.number();
        if let Some(to) = to.max(last) {
            self.advance(progress, to, number);
        }
        Self::after_progress(progress, k);
    }

    /// The front of the partition has moved by `messages`: the trouble is over, or it is still looked for what makes it.
    pub(super) fn after_progress(progress: &mut Progress, messages: u32) {
        let checkpoint = &mut progress.checkpoint;
        let is_over = checkpoint.attempts_to.is_none_or(|to| checkpoint.id >= to);
        match progress.hunt {
            Some(_) if !is_over => progress.hunt = Some(policy::after_success(messages)),
            _ => {
                progress.hunt = None;
                checkpoint.attempts = 0;
                checkpoint.attempts_to = None;
            }
        }
    }

    /// An attempt failed: again, with less, or the message is poison.
    fn attempted(self: &Arc<Self>, progress: &mut Progress, batch: &Batch, reason: &str) -> Next {
        let checkpoint = &mut progress.checkpoint;
        checkpoint.attempts = checkpoint.attempts.saturating_add(1);
        if checkpoint.attempts_to.is_none() {
            checkpoint.attempts_to = batch.slices.last().map(|s| s.last);
        }
        let trouble = Trouble {
            attempts: checkpoint.attempts,
            max_attempts: self.shared.options.max_attempts,
            messages: batch.messages,
            hunting: progress.hunt.is_some(),
        };
        self.shared.checkpoints.mark(self);
        let next = match policy::after_failure(trouble) {
            policy::Next::Again { attempts } => Next::Wait(self.backoff(attempts)),
            policy::Next::Hunt { messages } => {
                progress.hunt = Some(messages);
                Next::Wait(self.backoff(1))
            }
            policy::Next::Poison => self.poisoned(progress, batch, reason),
        };
        Self::rewind(progress);
        next
    }

    /// Lets go of everything that was read: a failing endpoint must not hold memory.
    pub(super) fn rewind(progress: &mut Progress) {
        let from = progress.checkpoint.id.successor();
        if let Some(scanner) = progress.scanner.as_mut() {
            scanner.reset(from, progress.checkpoint.number);
        }
    }

    pub(super) fn backoff(&self, failures: u32) -> Duration {
        let options = &self.shared.options;
        backoff::delay(options.retry_min, options.retry_max, failures.max(1), fastrand::f64())
    }

    pub(super) fn advance(self: &Arc<Self>, progress: &mut Progress, to: MessageId, number: Option<u64>) {
        if to > progress.checkpoint.id {
            progress.checkpoint.id = to;
            progress.checkpoint.number = number;
            self.shared.checkpoints.mark(self);
        }
    }
}

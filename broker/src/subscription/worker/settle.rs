//! Settling: what the end of a call means for the checkpoint, and for what comes next.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hqueue_protocol::id::MessageId;

use super::{Batch, Next, Progress, SubscriptionWorker, before};
use crate::subscription::backoff;
use crate::subscription::outcome::Outcome;

impl SubscriptionWorker {
    /// Notes that a batch is on its way.
    pub(in crate::subscription) fn sent(&self, batch: &Batch) {
        self.in_flight.store(batch.messages.into(), Ordering::Relaxed);
        self.shared.counters.in_flight.fetch_add(batch.messages.into(), Ordering::Relaxed);
    }

    /// Takes the end of a call: moves the checkpoint, or keeps the batch for another call. `charge`: an end without an answer
    /// counts as an attempt.
    pub(in crate::subscription) fn settle(self: &Arc<Self>, batch: Batch, outcome: Outcome, charge: bool) -> Next {
        self.in_flight.store(0, Ordering::Relaxed);
        let counters = &self.shared.counters;
        counters.in_flight.fetch_sub(batch.messages.into(), Ordering::Relaxed);
        let mut progress = self.lock();
        if batch.generation != progress.generation {
            // Somebody moved the checkpoint during the call: it goes on from there, whatever the call did.
            self.restart_in(&mut progress);
            return Next::Again;
        }
        let next = match outcome {
            Outcome::Consumed(k) => {
                counters.delivered.fetch_add(k.into(), Ordering::Relaxed);
                self.consumed(&mut progress, batch, k);
                Next::Again
            }
            Outcome::Busy => {
                progress.busy += 1;
                let wait = self.backoff(progress.busy);
                Self::rewind(&mut progress);
                Next::Wait(wait)
            }
            Outcome::Failed(reason) => {
                self.failed(&mut progress, &batch, &reason, true);
                let wait = self.backoff(progress.checkpoint.attempts);
                Next::Wait(wait)
            }
            Outcome::NoAnswer { reason, sent, timeout } => {
                self.failed(&mut progress, &batch, &reason, charge && sent);
                if timeout {
                    progress.limit = (batch.messages / 2).max(1);
                }
                Next::Ask
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
        progress.checkpoint.attempts = 0;
        progress.checkpoint.attempts_to = None;
        let number = scanner.number();
        if let Some(to) = to.max(last) {
            self.advance(progress, to, number);
        }
    }

    fn failed(self: &Arc<Self>, progress: &mut Progress, batch: &Batch, reason: &str, attempt: bool) {
        self.shared.note_error(reason);
        if attempt {
            progress.checkpoint.attempts = progress.checkpoint.attempts.saturating_add(1);
            progress.checkpoint.attempts_to = batch.slices.last().map(|s| s.last);
            self.shared.checkpoints.mark(self);
        }
        Self::rewind(progress);
    }

    /// Lets go of everything that was read: a failing endpoint must not hold memory.
    fn rewind(progress: &mut Progress) {
        let from = progress.checkpoint.id.successor();
        if let Some(scanner) = progress.scanner.as_mut() {
            scanner.reset(from, progress.checkpoint.number);
        }
    }

    fn backoff(&self, failures: u32) -> Duration {
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

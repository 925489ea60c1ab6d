//! A message that cannot be consumed: buried as a dead letter, or in the way until somebody says go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;

use super::{Batch, Next, Progress, SubscriptionWorker};
use crate::subscription::backoff;
use crate::subscription::letter::DeadLetter;
use crate::subscription::options::OnPoison;

impl SubscriptionWorker {
    /// The first message of the batch, alone in it, has failed for the last time.
    pub(super) fn poisoned(&self, progress: &mut Progress, batch: &Batch, reason: &str) -> Next {
        let shared = &self.shared;
        if shared.options.on_poison == OnPoison::Block || !shared.letters.takes(&shared.queue) {
            progress.blocked = true;
            let first = batch.slices.first().map_or(MessageId::MAX, |slice| slice.first);
            shared.note_error(&self.blocked_by(first, reason));
            return Next::Again;
        }
        if !shared.may_bury() {
            // It fails at everything: that is not the messages' fault.
            progress.hunt = Some(1);
            progress.limit = 1;
            let max = shared.options.retry_max;
            return Next::Wait(backoff::delay(max, max, 1, fastrand::f64()));
        }
        self.prepare_letter(progress, batch, reason)
    }

    pub(super) fn blocked_by(&self, id: MessageId, reason: &str) -> String {
        format!("partition {} is blocked by message {id}: {reason}", self.partition)
    }

    /// The subscriber refuses the first message, whatever is to become of poison.
    pub(super) fn refused(&self, progress: &mut Progress, batch: &Batch, reason: &str) -> Next {
        let next = if self.shared.letters.takes(&self.shared.queue) {
            self.prepare_letter(progress, batch, reason)
        } else {
            progress.blocked = true;
            Next::Again
        };
        Self::rewind(progress);
        next
    }

    fn prepare_letter(&self, progress: &mut Progress, batch: &Batch, reason: &str) -> Next {
        let first = batch.slices.first().cloned().and_then(|slice| slice.split_front(1, usize::MAX).ok());
        if let Some((message, _)) = first {
            progress.letter = Some(DeadLetter {
                queue: self.shared.queue.clone(),
                subscriber: self.shared.name.clone(),
                partition: self.partition,
                message,
                attempts: progress.checkpoint.attempts.max(1),
                error: reason.to_owned(),
            });
        }
        Next::Again
    }

    /// The letter that has to be kept before anything else is sent.
    pub(in crate::subscription) fn letter(&self) -> Option<DeadLetter> {
        self.lock().letter.clone()
    }

    /// Keeps the letter, beside other work; the worker's next turn comes when that has succeeded or is to be tried again.
    pub(in crate::subscription) fn bury(worker: &Arc<Self>, letter: DeadLetter) {
        worker.turn.wait();
        let worker = Arc::clone(worker);
        let scope = worker.shared.scope.clone();
        scope.spawn(async move {
            let message = letter.message.clone();
            match worker.shared.letters.keep(letter).await {
                Ok(()) => worker.buried(&message),
                Err(reason) => {
                    worker.shared.note_error(&format!("a dead letter cannot be kept, its partition waits: {reason}"));
                    let pause = worker.backoff(1).max(Duration::from_millis(100));
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = worker.shared.scope.stop.cancelled() => return,
                    }
                }
            }
            if worker.turn.wait_over() {
                worker.shared.enqueue(&worker);
            }
        });
    }

    fn buried(self: &Arc<Self>, message: &StoredSlice) {
        let mut progress = self.lock();
        let Some(letter) = progress.letter.take_if(|letter| letter.message.first == message.first) else { return };
        self.shared.counters.dead_lettered.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            queue = self.shared.queue,
            subscriber = self.shared.name,
            partition = self.partition,
            id = %message.first,
            attempts = letter.attempts,
            "dead-lettered: {}",
            letter.error
        );
        self.note_buried(message.first);
        let number = progress.checkpoint.number.filter(|_| self.shared.filter().is_all()).map(|number| number + 1);
        self.advance(&mut progress, message.first, number);
        Self::after_progress(&mut progress, 1);
        if let Some(hunt) = &mut progress.hunt {
            // The next one may be as bad.
            *hunt = 1;
        }
        self.restart_in(&mut progress);
    }

    /// Its next message is in the way.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        let progress = self.lock();
        progress.blocked || progress.flights.is_blocked()
    }

    /// What is in the way is tried again, as if for the first time.
    pub fn resume(self: &Arc<Self>) {
        let mut progress = self.lock();
        progress.flights.resume(tokio::time::Instant::now());
        progress.not_before = None;
        if progress.blocked || progress.hunt.is_some() || progress.checkpoint.attempts > 0 {
            progress.blocked = false;
            progress.hunt = None;
            progress.checkpoint.attempts = 0;
            progress.checkpoint.attempts_to = None;
            self.shared.checkpoints.mark(self);
        }
        drop(progress);
        Self::hurry(self);
    }
}

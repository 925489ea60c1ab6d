//! Reading: the next batch of a worker, and what was found missing on the way.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hqueue_storage::store::StoreError;

use super::{Batch, Progress, SubscriptionWorker, before};
use crate::partition::{Fill, MessageScanner, MissingCounts};
use crate::subscription::Checkpoint;

impl SubscriptionWorker {
    /// The next batch, from memory or disk; `None` if there is nothing to send now.
    pub(in crate::subscription) async fn next_batch(self: &Arc<Self>) -> Result<Option<Batch>, StoreError> {
        let (messages, bytes) = self.limits();
        let Some(mut scanner) = self.take_scanner() else { return Ok(None) };
        let filled = match scanner.fill(messages, bytes) {
            Ok(Fill::Cold) => scanner.fill_cold(messages, bytes).await,
            filled => filled,
        };
        let batch = filled.and_then(|_| scanner.take(messages, bytes));
        let missing = scanner.take_missing();
        self.count_missing(missing);
        let mut progress = self.lock();
        if progress.restart {
            self.give_back(&mut progress, scanner);
            self.turn.wake();
            return Ok(None);
        }
        if missing.expired_to.is_some() {
            // Counted once, however often what follows has to be sent.
            progress.checkpoint.number = missing.expired_to;
            self.shared.checkpoints.mark(self);
        }
        // What was passed over because nobody wants it needs no call.
        if batch.as_ref().is_ok_and(Vec::is_empty) && scanner.is_hand_empty() {
            self.advance(&mut progress, before(scanner.scanned_to()), scanner.number());
        }
        let generation = progress.generation;
        self.give_back(&mut progress, scanner);
        drop(progress);
        let slices = batch?;
        let messages = slices.iter().map(|s| s.count).sum();
        Ok((messages > 0).then_some(Batch { slices, messages, generation }))
    }

    /// Reads ahead while a call is under way, so that the next batch need not wait for the disk.
    pub(in crate::subscription) async fn read_ahead(&self) {
        let (messages, bytes) = self.limits();
        let Some(mut scanner) = self.take_scanner() else { return };
        if let Ok(Fill::Cold) = scanner.fill(messages, bytes)
            && let Err(error) = scanner.fill_cold(messages, bytes).await
        {
            // The same read comes again before the next batch, and its error is handled there.
            tracing::debug!(queue = self.shared.queue, partition = self.partition, "reading ahead: {error}");
        }
        self.give_back(&mut self.lock(), scanner);
    }

    fn give_back(&self, progress: &mut Progress, mut scanner: MessageScanner) {
        if std::mem::take(&mut progress.restart) {
            let checkpoint = progress.checkpoint;
            scanner.restart(self.shared.filter(), checkpoint.id.successor(), checkpoint.number);
        }
        progress.scanner = Some(scanner);
    }

    /// Begins to read anew behind the checkpoint, for the topics wanted now. `recount`: what lies there was removed by command, and
    /// has not expired.
    pub(in crate::subscription) fn restart(&self, recount: bool) {
        let mut progress = self.lock();
        if recount {
            progress.checkpoint.number = None;
        }
        self.restart_in(&mut progress);
    }

    pub(super) fn restart_in(&self, progress: &mut Progress) {
        let from = progress.checkpoint.id.successor();
        // A batch under way was read before: what is left of it must not come back into the hand.
        progress.restart = self.in_flight() > 0 || progress.scanner.is_none();
        if let Some(scanner) = progress.scanner.as_mut() {
            scanner.restart(self.shared.filter(), from, progress.checkpoint.number);
        }
    }

    /// Goes on behind a checkpoint that somebody else wrote.
    pub(in crate::subscription) fn moved(self: &Arc<Self>, checkpoint: Checkpoint) {
        let mut progress = self.lock();
        progress.checkpoint = checkpoint;
        progress.generation += 1;
        self.restart_in(&mut progress);
        drop(progress);
        Self::hurry(self);
    }

    fn limits(&self) -> (u32, usize) {
        (self.lock().limit, self.shared.options.batch_bytes as usize)
    }

    fn take_scanner(&self) -> Option<MessageScanner> {
        let mut progress = self.lock();
        if progress.closed { None } else { progress.scanner.take() }
    }

    fn count_missing(&self, missing: MissingCounts) {
        let (queue, subscriber, partition) = (&self.shared.queue, &self.shared.name, self.partition);
        if missing.expired > 0 {
            self.shared.counters.expired.fetch_add(missing.expired, Ordering::Relaxed);
            let behind = self.checkpoint().id;
            tracing::warn!(
                queue,
                subscriber,
                partition,
                "{} messages expired unread, the first ones behind {behind}",
                missing.expired
            );
        }
        if missing.damaged > 0 {
            self.shared.counters.damaged.fetch_add(missing.damaged, Ordering::Relaxed);
            tracing::error!(queue, subscriber, partition, "{} messages are damaged and are not delivered", missing.damaged);
        }
    }
}

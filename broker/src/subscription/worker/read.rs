//! Reading: the next batch of a worker, and what was found missing on the way.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_protocol::wire::WireError;
use hqueue_storage::store::StoreError;

use super::{Batch, Progress, SubscriptionWorker, before};
use crate::partition::{Fill, MessageScanner, MissingCounts};
use crate::subscription::call_log::Mover;
use crate::subscription::{Checkpoint, options};

impl SubscriptionWorker {
    /// The next batch of at most so much, from memory or disk; `None` if there is nothing to send now.
    pub(in crate::subscription) async fn next_batch(
        self: &Arc<Self>,
        messages: u32,
        bytes: usize,
    ) -> Result<Option<Batch>, StoreError> {
        if let Some(batch) = self.redelivery_batch(messages, bytes) {
            return Ok(Some(batch));
        }
        if self.is_without_order() {
            return self.next_unordered(messages, bytes).await;
        }
        if self.is_blocked() {
            return Ok(None);
        }
        let Some(mut scanner) = self.take_scanner() else { return Ok(None) };
        let filled = scanner.fill(messages, bytes);
        let cold = matches!(filled, Ok(Fill::Cold));
        let filled = if cold { scanner.fill_cold(messages, bytes).await } else { filled };
        let batch =
            filled.and_then(|_| scanner.take(messages, bytes)).and_then(|taken| self.only_the_failed(&mut scanner, taken));
        let missing = scanner.take_missing();
        let is_new = self.note_missed(&mut scanner);
        self.count_missing(missing, is_new);
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
        Ok((messages > 0).then_some(Batch { slices, messages, cold, generation, redelivery: None, flight: None }))
    }

    pub(in crate::subscription) fn is_without_order(&self) -> bool {
        self.shared.options.ordering == options::Ordering::None
    }

    /// Attempts are those of a batch: nothing that came behind it is sent along, to be blamed for what is not its fault.
    pub(super) fn only_the_failed(
        &self,
        scanner: &mut MessageScanner,
        taken: Vec<StoredSlice>,
    ) -> Result<Vec<StoredSlice>, StoreError> {
        let Some(to) = self.lock().checkpoint.attempts_to else { return Ok(taken) };
        if taken.last().is_none_or(|slice| slice.last <= to) {
            return Ok(taken);
        }
        if taken.first().is_some_and(|slice| slice.first > to) {
            // Nothing is left of it.
            let mut progress = self.lock();
            progress.checkpoint.attempts = 0;
            progress.checkpoint.attempts_to = None;
            progress.hunt = None;
            return Ok(taken);
        }
        let damaged = |error: WireError| StoreError::Damaged {
            path: format!("partition {}", self.partition).into(),
            reason: error.to_string(),
        };
        let (mut within, mut behind) = (Vec::new(), Vec::new());
        for slice in taken {
            if slice.last <= to {
                within.push(slice);
            } else if slice.first > to {
                behind.push(slice);
            } else {
                within.extend(slice.runs(|message| message.id <= to).map_err(damaged)?);
                behind.extend(slice.runs(|message| message.id > to).map_err(damaged)?);
            }
        }
        scanner.put_back(behind);
        Ok(within)
    }

    /// Reads ahead while a call is under way, so that the next batch need not wait for the disk. True: it came from there.
    pub(in crate::subscription) async fn read_ahead(&self) -> bool {
        let (messages, bytes) = self.limits();
        let Some(mut scanner) = self.take_scanner() else { return false };
        let cold = matches!(scanner.fill(messages, bytes), Ok(Fill::Cold));
        if cold && let Err(error) = scanner.fill_cold(messages, bytes).await {
            // The same read comes again before the next batch, and its error is handled there.
            tracing::debug!(queue = self.shared.queue, partition = self.partition, "reading ahead: {error}");
        }
        self.give_back(&mut self.lock(), scanner);
        cold
    }

    /// The same for one that stands in line. Its turn may come meanwhile, and find nothing to read with.
    pub(in crate::subscription) async fn read_ahead_in_line(worker: &Arc<Self>) -> bool {
        let cold = worker.read_ahead().await;
        Self::wake(worker);
        cold
    }

    pub(super) fn give_back(&self, progress: &mut Progress, mut scanner: MessageScanner) {
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
        progress.not_before = None;
        // A batch under way was read before: what is left of it must not come back into the hand.
        if self.is_without_order() {
            // Calls under way are nobody's any more.
            progress.flights.clear();
            progress.generation += 1;
            progress.restart = progress.scanner.is_none();
        } else {
            progress.restart = self.in_flight() > 0 || progress.scanner.is_none();
        }
        if let Some(scanner) = progress.scanner.as_mut() {
            scanner.restart(self.shared.filter(), from, progress.checkpoint.number);
        }
    }

    /// Goes on behind a checkpoint that somebody else wrote.
    pub fn moved(self: &Arc<Self>, checkpoint: Checkpoint) {
        let mut progress = self.lock();
        self.shared.stored(self.partition, checkpoint.id);
        self.note_moved(Mover::Hand, progress.checkpoint.id, checkpoint.id);
        progress.checkpoint = progress.checkpoint.moved_to(checkpoint);
        progress.generation += 1;
        progress.missed_to = MessageId::MIN;
        progress.letter = None;
        progress.blocked = false;
        progress.hunt = None;
        self.restart_in(&mut progress);
        drop(progress);
        Self::hurry(self);
    }

    /// Most messages and bytes of the next call.
    pub(in crate::subscription) fn limits(&self) -> (u32, usize) {
        let (limit, hunt) = {
            let progress = self.lock();
            (progress.limit, progress.hunt)
        };
        let options = &self.shared.options;
        let mut messages = limit.min(hunt.unwrap_or(u32::MAX));
        if options.rate_messages > 0 {
            messages = messages.min(options.rate_messages);
        }
        let mut bytes = options.batch_bytes;
        if options.rate_bytes > 0 {
            bytes = bytes.min(options.rate_bytes);
        }
        (messages.max(1), bytes as usize)
    }

    pub(super) fn take_scanner(&self) -> Option<MessageScanner> {
        let mut progress = self.lock();
        if progress.closed { None } else { progress.scanner.take() }
    }

    /// `is_new`: it was not found before. What has expired is told by the running numbers, which go on.
    pub(super) fn count_missing(&self, missing: MissingCounts, is_new: bool) {
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
        if missing.damaged > 0 && is_new {
            self.shared.counters.damaged.fetch_add(missing.damaged, Ordering::Relaxed);
            tracing::error!(queue, subscriber, partition, "{} messages are damaged and are not delivered", missing.damaged);
        }
    }
}

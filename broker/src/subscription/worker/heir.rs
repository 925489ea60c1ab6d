//! A worker takes over from one whose subscription had other options.

use std::sync::Arc;

use tokio::time::Instant;

use super::SubscriptionWorker;
use crate::subscription::letter::DeadLetter;
use crate::subscription::options::OnPoison;

impl SubscriptionWorker {
    /// Goes on where a former worker was, which has no call under way and does nothing more: what failed waits as long as it had to, unless
    /// the new options ask for less; what is on its way to become a dead letter still is. Nothing is tried once more just because options
    /// were set. To be called before anybody knows of this worker.
    pub(in crate::subscription) fn inherit(self: &Arc<Self>, former: &Self) {
        let (options, now) = (&self.shared.options, Instant::now());
        let poison_blocks = options.on_poison == OnPoison::Block || !self.shared.letters.takes(&self.shared.queue);
        let (mut old, mut new) = (former.lock(), self.lock());
        (new.busy, new.missed_to) = (old.busy, old.missed_to);
        if old.limit < former.shared.options.batch_messages {
            // It was lowered by a timeout.
            new.limit = old.limit.min(options.batch_messages);
        }
        new.hunt = new.hunt.map(|whole| old.hunt.unwrap_or(whole).min(new.limit));
        new.letter = old.letter.take();
        new.blocked = old.blocked && poison_blocks;
        let is_released = old.blocked && !new.blocked;
        if let Some(at) = old.not_before.filter(|_| !is_released) {
            let most = self.backoff(new.checkpoint.attempts.max(new.busy));
            new.not_before = Some(at.min(now + most));
        }
        let goes_on = self.is_without_order() && former.is_without_order() && self.shared.filter() == former.shared.filter();
        if goes_on && let Some(scanner) = old.scanner.take() {
            new.scanner = Some(scanner);
            new.flights = std::mem::take(&mut old.flights);
            let most = |attempts| self.backoff(attempts);
            new.flights.handed_over(now, poison_blocks, most);
        }
        drop(old);
        let burying = new.flights.burying();
        let generation = new.generation;
        drop(new);
        for (key, message, attempts) in burying {
            // The former one may be about to keep it, too: it is kept once.
            let error = self.shared.last_error().map(|error| error.text).unwrap_or_default();
            let (queue, subscriber) = (self.shared.queue.clone(), self.shared.name.clone());
            let letter = DeadLetter { queue, subscriber, partition: self.partition, message, attempts, error };
            let worker = Arc::clone(self);
            self.shared.scope.spawn(async move { worker.keep_flight(letter, key, generation).await });
        }
    }
}

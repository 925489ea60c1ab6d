//! What goes wrong silently: a worker that rests although there is work, and messages that are about to expire unread. And what nobody
//! else would tidy up: what is known of dead letters that have expired.
//!
//! One task for the broker looks now and then.

use std::sync::Arc;
use std::time::Duration;

use super::catalog::Catalog;
use super::queue::Queue;
use super::status::oldest_unfinished;
use crate::subscription::{Subscription, SubscriptionWorker};
use crate::time::Moment;

/// Between two looks. A worker that rests over two of them although there is work is started again.
const INTERVAL: Duration = Duration::from_secs(30);
/// Who is behind by so much of the time to live is warned of. Percent.
const WARN_AT: i64 = 80;

/// Looks until the broker stops.
pub(super) async fn watch(catalog: Arc<Catalog>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = catalog.scope.stop.cancelled() => return,
        }
        for queue in catalog.queues() {
            if let Some(letters) = &queue.letters
                && let Err(error) = letters.forget_gone(&queue.store).await
            {
                tracing::warn!(queue = %queue.name, "what has expired of it is not forgotten: {error}");
            }
            for subscription in queue.subscriptions() {
                look(&queue, &subscription).await;
            }
        }
    }
}

async fn look(queue: &Queue, subscription: &Subscription) {
    let mut oldest: Option<Moment> = None;
    for worker in subscription.workers() {
        let last = queue.store.committed(worker.partition()).ok().and_then(|committed| committed.last);
        let is_behind = last.is_some_and(|last| last > worker.checkpoint().id);
        let rests = SubscriptionWorker::rests_on_work(&worker, last);
        // What was truncated lies behind the checkpoint too, and is no work. An error of the store is seen by whoever reads next.
        let first = if is_behind { oldest_unfinished(queue, &worker).await.ok().flatten() } else { None };
        if rests && first.is_some() {
            tracing::error!(
                queue = %queue.name,
                subscriber = subscription.shared().name,
                partition = worker.partition(),
                "it rested although there are messages for it, and is started again"
            );
            SubscriptionWorker::wake(&worker);
        }
        oldest = [oldest, first].into_iter().flatten().min();
    }
    warn_of_expiry(queue, subscription, oldest);
}

fn warn_of_expiry(queue: &Queue, subscription: &Subscription, oldest: Option<Moment>) {
    let ttl = queue.record().0.ttl_seconds;
    let behind = oldest.map_or(0, |moment| Moment::now().0.saturating_sub(moment.0) / 1000);
    let is_late = is_late(behind, ttl);
    if subscription.warned_of_expiry(is_late) {
        tracing::warn!(
            queue = %queue.name,
            subscriber = subscription.shared().name,
            behind_seconds = behind,
            ttl_seconds = ttl,
            "it is so far behind that messages are about to expire unread"
        );
    }
}

const fn is_late(behind_seconds: i64, ttl_seconds: i64) -> bool {
    behind_seconds.saturating_mul(100) >= ttl_seconds.saturating_mul(WARN_AT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_eighty_percent_of_the_time_to_live() {
        assert!(!is_late(0, 1) && !is_late(79, 100) && is_late(80, 100) && is_late(i64::MAX, i64::MAX));
    }
}

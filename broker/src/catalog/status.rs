//! What a queue and its subscriptions look like at the moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hqueue_protocol::generated::{TCheckpoint, TPartitionStatus, TQueueStatus, TQueueSummary, TSubscriptionStatus};
use hqueue_protocol::id::MessageId;
use hqueue_storage::store::{PartitionStatistics, StoreError};

use super::catalog::Catalog;
use super::elsewhere::Route;
use super::queue::Queue;
use crate::partition::{Fill, MessageScanner};
use crate::refusal::Refusal;
use crate::subscription::{Subscription, SubscriptionWorker};
use crate::time::Moment;

/// With a topic filter at most so many messages are looked at for a subscription's lag.
const LOOK_AT_MOST: u64 = 100_000;

/// The lag of a subscription over its partitions.
#[derive(Clone, Copy, Debug)]
struct Lag {
    messages: u64,
    exact: bool,
    /// When the oldest message came that is not finished.
    oldest: Option<Moment>,
    /// Messages that have expired behind the checkpoints, and that nobody has counted yet.
    expired: u64,
}

/// What this broker knows of `status QUEUE`: its own partitions, and subscriptions as far as they are served here.
pub async fn queue_status(catalog: &Catalog, queue: &Queue, broker: &str) -> Result<TQueueStatus, Refusal> {
    let mut partitions = Vec::new();
    for partition in 0..queue.partitions() {
        partitions.push(partition_status(catalog, queue, partition, broker).await?);
    }
    let mut subscriptions = Vec::new();
    for subscription in queue.subscriptions() {
        subscriptions.push(subscription_status(queue, &subscription).await?);
    }
    Ok(TQueueStatus {
        name: Some(queue.name.as_str().as_bytes().to_vec()),
        state: Some(queue.record().0.state.name().to_owned()),
        partitions: Some(partitions),
        subscriptions: Some(subscriptions),
    })
}

/// One line of `status`, of what is here.
pub async fn queue_summary(catalog: &Catalog, queue: &Queue) -> Result<TQueueSummary, Refusal> {
    let subscriptions = queue.subscriptions();
    let mut lag_messages = 0;
    for subscription in &subscriptions {
        lag_messages += lag(queue, subscription).await?.messages;
    }
    let offline = (0..queue.partitions()).filter(|p| matches!(catalog.route(queue, *p), Route::Offline(_))).count();
    Ok(TQueueSummary {
        name: Some(queue.name.as_str().as_bytes().to_vec()),
        partitions: Some(queue.partitions().into()),
        offline: Some(i32::try_from(offline).unwrap_or(i32::MAX)),
        subscriptions: Some(i32::try_from(subscriptions.len()).unwrap_or(i32::MAX)),
        lag_messages: Some(signed(lag_messages)),
    })
}

async fn partition_status(catalog: &Catalog, queue: &Queue, partition: i16, broker: &str) -> Result<TPartitionStatus, Refusal> {
    let is_online = queue.ownership.held(partition).is_some();
    // In a store that is shared, whoever does not hold a partition knows nothing of it.
    let is_known = catalog.is_here(queue, partition) && (is_online || !catalog.is_shared());
    let owner = match catalog.is_here(queue, partition) {
        true => Some(broker.to_owned()),
        false => queue.assignment().and_then(|a| a.broker_of(partition).map(|b| b.to_string())),
    };
    let statistics = match is_known {
        true => or_nothing(queue.store.statistics(partition).await)?,
        false => PartitionStatistics::default(),
    };
    Ok(TPartitionStatus {
        partition: Some(partition),
        owner: Some(owner.unwrap_or_default()),
        state: Some(if is_online { "online" } else { "offline" }.to_owned()),
        first_i_d: statistics.first.map(|id| id.to_string()),
        last_i_d: statistics.last.map(|id| id.to_string()),
        messages: Some(signed(statistics.messages)),
        bytes: Some(signed(statistics.bytes)),
    })
}

/// What a partition that is not held has: nothing that is known here.
fn or_nothing<T: Default>(found: Result<T, StoreError>) -> Result<T, StoreError> {
    match found {
        Err(StoreError::NotHeld { .. }) => Ok(T::default()),
        other => other,
    }
}

/// One subscription, as `status` and `list_subscribers` show it.
pub async fn subscription_status(queue: &Queue, subscription: &Subscription) -> Result<TSubscriptionStatus, Refusal> {
    let lag = lag(queue, subscription).await?;
    let shared = subscription.shared();
    let counters = &shared.counters;
    let read = |counter: &std::sync::atomic::AtomicU64| Some(signed(counter.load(Ordering::Relaxed)));
    let workers = subscription.workers();
    let checkpoints =
        workers.iter().map(|w| TCheckpoint { partition: Some(w.partition()), id: Some(w.checkpoint().id.to_string()) }).collect();
    let last_error = shared.last_error();
    Ok(TSubscriptionStatus {
        name: Some(shared.name.as_bytes().to_vec()),
        state: Some(subscription.state().name().to_owned()),
        endpoints: Some(subscription.endpoint_addresses()),
        topics: Some(subscription.record().topics),
        lag_messages: Some(signed(lag.messages)),
        lag_exact: Some(lag.exact),
        lag_seconds: Some(lag.oldest.map_or(0.0, seconds_since).into()),
        in_flight: Some(signed(workers.iter().map(|w| w.in_flight()).sum())),
        attempts: Some(workers.iter().map(|w| i32::try_from(w.checkpoint().attempts).unwrap_or(i32::MAX)).max().unwrap_or(0)),
        delivered: read(&counters.delivered),
        failed: read(&counters.failed),
        expired_messages: Some(signed(counters.expired.load(Ordering::Relaxed) + lag.expired)),
        dead_lettered: Some(signed(counters.dead_lettered.load(Ordering::Relaxed))),
        last_error: last_error.as_ref().map(|e| e.text.clone()),
        last_error_time: last_error.map(|e| e.at.to_string()),
        checkpoints: Some(checkpoints),
    })
}

async fn lag(queue: &Queue, subscription: &Subscription) -> Result<Lag, Refusal> {
    let filter = subscription.shared().filter();
    let mut sum = Lag { messages: 0, exact: true, oldest: None, expired: 0 };
    let mut look = LOOK_AT_MOST;
    for worker in subscription.workers() {
        let checkpoint = worker.checkpoint();
        let from = checkpoint.id.successor();
        // One that is handed over at this moment is counted by whoever has it then.
        let committed = or_nothing(queue.store.committed(worker.partition()))?;
        if committed.last.is_none_or(|last| last < from) {
            continue;
        }
        if let Some(number) = checkpoint.number
            && let Some(first) = queue.number_behind(worker.partition(), checkpoint.id).await?
        {
            sum.expired += first.saturating_sub(number);
        }
        let count = queue.store.count_from(worker.partition(), from, Arc::clone(filter.topics()), look).await?;
        if count.messages == 0 {
            continue;
        }
        sum.messages += count.messages;
        sum.exact &= count.exact;
        if !filter.is_all() {
            look = look.saturating_sub(count.messages);
        }
        let oldest = oldest_unfinished(queue, &worker).await?;
        sum.oldest = [sum.oldest, oldest].into_iter().flatten().min();
    }
    Ok(sum)
}

/// When the first message came that the worker has not finished; ids begin with that time.
pub(super) async fn oldest_unfinished(queue: &Queue, worker: &SubscriptionWorker) -> Result<Option<Moment>, StoreError> {
    let from = worker.checkpoint().id.successor();
    let filter = worker.shared().filter();
    let mut scanner = MessageScanner::new(Arc::clone(&queue.store), worker.partition(), filter, from, MessageId::MAX);
    if scanner.fill(1, 1)? == Fill::Cold {
        scanner.fill_cold(1, 1).await?;
    }
    Ok(scanner.take(1, usize::MAX)?.first().map(|slice| Moment(slice.first.timestamp)))
}

fn seconds_since(moment: Moment) -> f64 {
    let milliseconds = Moment::now().0.saturating_sub(moment.0).max(0);
    std::time::Duration::from_millis(milliseconds.unsigned_abs()).as_secs_f64()
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

//! Making a queue's subscriptions what coordination says.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::Node;
use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::position::Position;

use super::catalog::{Catalog, DELETE_PATIENCE};
use super::desired::{Desired, DesiredSubscriber};
use super::queue::Queue;
use super::subscribers;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{Checkpoint, EndpointSpec, Subscription};
use crate::time::Moment;

/// A checkpoint may lie so far ahead of the clock and of the last id: ids would have to rise above it. Milliseconds.
const CHECKPOINT_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;

/// Checkpoints are loaded for so many partitions at once.
const CONCURRENT_LOADS: usize = 24;

/// Adds, changes and ends subscriptions. Of what cannot be done now all the rest is done; the first reason is returned.
pub(super) async fn apply(catalog: &Catalog, queue: &Arc<Queue>, desired: Desired, ours: &[i16]) -> Result<(), Refusal> {
    queue.deleted_are_gone(|name| !desired.contains_key(name));
    for subscription in queue.subscriptions() {
        let name = &subscription.shared().name;
        if !desired.contains_key(name) && !queue.is_hidden(name) {
            end(catalog, queue, subscription);
        }
    }
    let mut outcome = Ok(());
    for (name, subscriber) in desired {
        if !queue.is_hidden(&name)
            && let Err(refusal) = apply_one(catalog, queue, &name, subscriber, ours).await
        {
            outcome = Err(refusal);
        }
    }
    outcome
}

/// Ends a subscription whose nodes are gone, beside what goes on.
fn end(catalog: &Catalog, queue: &Queue, subscription: Arc<Subscription>) {
    queue.subscriptions.write().unwrap_or_else(PoisonError::into_inner).remove(&subscription.shared().name);
    subscription.forget();
    catalog.scope.spawn(async move { subscription.stop(DELETE_PATIENCE).await });
}

/// Ends all subscriptions of a queue, and waits for the calls under way.
pub(super) async fn end_all(catalog: &Catalog, queue: &Queue) {
    let all = std::mem::take(&mut *queue.subscriptions.write().unwrap_or_else(PoisonError::into_inner));
    let stops = all.into_values().map(|subscription| async move {
        subscription.stop(DELETE_PATIENCE).await;
        subscription.forget();
    });
    stream::iter(stops).for_each_concurrent(None, |stop| stop).await;
    catalog.registrations.forget(queue, None);
}

async fn apply_one(
    catalog: &Catalog,
    queue: &Arc<Queue>,
    name: &str,
    desired: DesiredSubscriber,
    ours: &[i16],
) -> Result<(), Refusal> {
    let record = desired.record.unwrap_or_default();
    let subscription = match queue.subscription(name) {
        Ok(subscription) if subscription.record().options == record.options => {
            subscription.set_record(record.clone());
            subscription.stay();
            subscription
        }
        // Options are fixed for the life of a subscription: one with the new ones takes its place.
        Ok(changed) if changed.retire() => subscribers::replace(catalog, queue, &changed, record.clone()).await,
        Ok(changed) => {
            // Others of the queue do not wait for its calls.
            look_when_idle(catalog, queue, changed);
            return Ok(());
        }
        Err(_) => subscribers::begin(catalog, queue, name, record.clone()),
    };
    subscription.set_paused(record.paused);
    let mut faults = desired.faults;
    // What to want comes before where to go: nothing is pushed that was not asked for.
    if let Some(topics) = desired.topics {
        subscription.set_topics(&topics);
    } else if !record.topics.is_empty() {
        subscription.set_topics(&record.topics);
    }
    let fixed = record.addresses.iter().map(|address| (EndpointSpec::fixed(address.clone()), None));
    let endpoints = if record.addresses.is_empty() { desired.endpoints } else { fixed.collect() };
    // An endpoint has to be there before its partitions are read.
    subscription.set_endpoints(endpoints);
    for worker in subscription.workers() {
        if !desired.checkpoints.contains_key(&worker.partition()) || !ours.contains(&worker.partition()) {
            subscription.end(worker.partition());
        }
    }
    let outcome = apply_checkpoints(catalog, queue, &subscription, desired.checkpoints, &mut faults).await;
    subscription.set_faults(faults);
    outcome
}

/// Has the queue looked at again when no call of a subscription that is to be replaced is under way any more.
fn look_when_idle(catalog: &Catalog, queue: &Arc<Queue>, retiring: Arc<Subscription>) {
    if !retiring.is_awaited() {
        let (queue, stop) = (Arc::clone(queue), catalog.scope.stop.clone());
        catalog.scope.spawn(async move {
            tokio::select! {
                () = retiring.idle() => {}
                () = stop.cancelled() => return,
            }
            retiring.awaited();
            queue.nudge.notify_one();
        });
    }
}

/// Begins to push where that is new, and goes on from where somebody has moved a checkpoint to.
async fn apply_checkpoints(
    catalog: &Catalog,
    queue: &Arc<Queue>,
    subscription: &Subscription,
    checkpoints: BTreeMap<i16, Option<Node>>,
    faults: &mut BTreeMap<String, String>,
) -> Result<(), Refusal> {
    let name = &subscription.shared().name;
    let (mut missing, mut fresh) = (Vec::new(), Vec::new());
    for (partition, node) in checkpoints {
        let worker = subscription.worker(partition);
        let Some(node) = node.filter(|node| !node.payload.is_empty()) else {
            missing.push(partition);
            continue;
        };
        match read_checkpoint(queue, partition, &node) {
            Ok(checkpoint) => match worker {
                Some(worker) => drop(worker.seen(checkpoint)),
                None if catalog.is_shared() => fresh.push(partition),
                None => subscription.start(partition, checkpoint),
            },
            Err(reason) => {
                faults.insert(paths::checkpoint(queue.name.as_str(), partition, name), reason);
                subscription.end(partition);
            }
        }
    }
    begin_fresh(catalog, queue, subscription, fresh).await?;
    let fix = |partition| async move { (partition, fix_latest(catalog, queue, name, partition).await) };
    let fixed: Vec<_> = stream::iter(missing).map(fix).buffer_unordered(CONCURRENT_LOADS).collect().await;
    for (partition, checkpoint) in fixed {
        match (subscription.worker(partition), checkpoint?) {
            (_, Fixed::Nothing) => {}
            (Some(worker), Fixed::Written(checkpoint)) => worker.moved(checkpoint),
            (Some(worker), Fixed::Found(checkpoint)) => drop(worker.seen(checkpoint)),
            (None, Fixed::Written(checkpoint) | Fixed::Found(checkpoint)) => subscription.start(partition, checkpoint),
        }
    }
    Ok(())
}

/// Begins to push partitions that another broker may have pushed a moment ago: what was seen of their checkpoints may be older than his
/// last word.
async fn begin_fresh(catalog: &Catalog, queue: &Queue, subscription: &Subscription, fresh: Vec<i16>) -> Result<(), Refusal> {
    let name = &subscription.shared().name;
    let reads = fresh.into_iter().map(|partition| async move {
        let path = paths::checkpoint(queue.name.as_str(), partition, name);
        catalog.coordinator.get(&path).await.map(|node| (partition, node))
    });
    let read: Vec<_> = stream::iter(reads).buffer_unordered(CONCURRENT_LOADS).collect().await;
    for read in read {
        let (partition, node) = read?;
        // If it is gone or cannot be read, the look that sees it does what that asks for.
        if let Some(Ok(checkpoint)) = node.map(|node| read_checkpoint(queue, partition, &node)) {
            subscription.start(partition, checkpoint);
        }
    }
    Ok(())
}

/// What became of a checkpoint that was seen missing or empty.
enum Fixed {
    Written(Checkpoint),
    /// It says something by now.
    Found(Checkpoint),
    /// The subscriber is gone.
    Nothing,
}

/// An absent or empty node means `latest`: what that is now is written there, before anything is pushed.
///
/// What was seen may be old. Deleting a subscriber removes the options before the checkpoints: so if the options are found after the
/// checkpoint was found missing, the subscriber is there.
async fn fix_latest(catalog: &Catalog, queue: &Arc<Queue>, name: &str, partition: i16) -> Result<Fixed, Refusal> {
    let path = paths::checkpoint(queue.name.as_str(), partition, name);
    let options = paths::subscriber(queue.name.as_str(), name);
    let is_missing = match catalog.coordinator.get(&path).await? {
        Some(node) if !node.payload.is_empty() => {
            // If it cannot be read, the look that sees it says so.
            return Ok(read_checkpoint(queue, partition, &node).map_or(Fixed::Nothing, Fixed::Found));
        }
        node => node.is_none(),
    };
    if is_missing && catalog.coordinator.get(&options).await?.is_none() {
        return Ok(Fixed::Nothing);
    }
    if queue.ownership.held(partition).is_none() {
        let message =
            format!("partition {partition} of queue {} is not held now: where {name} begins is not fixed yet", queue.name);
        return Err(Refusal::new(TErrorCode::OFFLINE, message));
    }
    let id = queue.checkpoint_at(partition, &Position::Latest)?;
    let checkpoint = subscribers::write_checkpoint(catalog, queue, name, partition, id).await?;
    if is_missing && catalog.coordinator.get(&options).await?.is_none() {
        // Deleted in between.
        catalog.coordinator.delete(&path, Some(checkpoint.version)).await?;
        return Ok(Fixed::Nothing);
    }
    Ok(Fixed::Written(checkpoint))
}

fn read_checkpoint(queue: &Queue, partition: i16, node: &Node) -> Result<Checkpoint, String> {
    let checkpoint = Checkpoint::from_payload(&node.payload, node.version)?;
    let last = queue.store.committed(partition).map_err(|error| error.to_string())?.last;
    let now = Moment::now().0.max(last.map_or(0, |id| id.timestamp));
    if checkpoint.id.timestamp > now.saturating_add(CHECKPOINT_AHEAD_MS) {
        return Err(format!("the checkpoint {} lies more than a day in the future", checkpoint.id));
    }
    // Ids that are still to come must lie above what counts as consumed.
    queue.store.raise_ids(partition, checkpoint.id).map_err(|error| error.to_string())?;
    Ok(checkpoint)
}

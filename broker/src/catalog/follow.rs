//! Following coordination: what stands there is what this broker does.
//!
//! One task follows the list of queues and every queue. For each it reads all that concerns it, makes it so, and waits until something
//! of what it has read has changed. Commands write nodes and wait until this has caught up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hqueue_coordination::{CoordinationError, Node, Watched};
use hqueue_hbase::store::HBaseStore;
use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::names::QueueName;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;
use super::queue::Queue;
use super::record::{QueueRecord, QueueState};
use super::{apply, desired, empty, hand_over};
use crate::cluster::{Assignment, Pace, release, remove_queue_nodes};
use crate::paths;
use crate::refusal::Refusal;

/// Between two looks at a queue lies at least so many times what the last one took: many changes at once are looked at together.
const REST: u32 = 2;
const MAX_REST: Duration = Duration::from_secs(1);

/// How long a list that lacks a queue that is there may take to be read again.
const LIST_IS_OLD: Duration = Duration::from_millis(200);

/// Follows the list of queues, and each of them, until the broker stops.
pub(super) async fn follow_queues(catalog: Arc<Catalog>) {
    let mut watched = Watched::until(Arc::clone(&catalog.coordinator), catalog.scope.stop.clone());
    let mut running: FuturesUnordered<BoxFuture<'static, String>> = FuturesUnordered::new();
    // Those that run, each with what tells it that its queue is gone. One name has one at a time.
    let mut followed: HashMap<String, CancellationToken> = HashMap::new();
    let stop = catalog.scope.stop.clone();
    loop {
        watched.begin();
        let Ok(names) = watched.children(paths::QUEUES).await else { break };
        watched.end();
        let names = names.unwrap_or_default();
        let is_listed = |name: &str| names.binary_search_by(|listed| listed.as_str().cmp(name)).is_ok();
        followed.iter().filter(|(name, _)| !is_listed(name)).for_each(|(_, gone)| gone.cancel());
        for queue in catalog.queues() {
            let name = queue.name.as_str();
            if !is_listed(name) && !followed.contains_key(name) {
                followed.insert(name.to_owned(), CancellationToken::new());
                running.push(Box::pin(close_if_gone(Arc::clone(&catalog), name.to_owned())));
            }
        }
        // One that was made anew while the old one is being cleaned up has its turn when that has ended.
        for name in names {
            if !followed.contains_key(&name) {
                let gone = CancellationToken::new();
                followed.insert(name.clone(), gone.clone());
                catalog.begin_look();
                running.push(Box::pin(follow_queue(Arc::clone(&catalog), name, gone)));
            }
        }
        catalog.list_seen();
        tokio::select! {
            changed = watched.changed() => if changed.is_err() { break },
            Some(name) = running.next() => drop(followed.remove(&name)),
            () = stop.cancelled() => break,
        }
    }
    while running.next().await.is_some() {}
}

/// Follows one queue until it is seen no more. Returns its name.
async fn follow_queue(catalog: Arc<Catalog>, name: String, gone: CancellationToken) -> String {
    keep_as_it_should_be(&catalog, &name, &gone).await;
    name
}

async fn keep_as_it_should_be(catalog: &Catalog, name: &str, gone: &CancellationToken) {
    let mut watched = Watched::until(Arc::clone(&catalog.coordinator), catalog.scope.stop.clone());
    let mut pace = Pace::new("following a queue");
    let mut first = true;
    loop {
        let began = Instant::now();
        watched.begin();
        let session = catalog.lease.last_session();
        let tried = tokio::select! {
            tried = look(catalog, name, &mut watched) => tried,
            // HBase may take its time. What is half done goes with our session, or is found by the next owner.
            () = catalog.scope.stop.cancelled(), if catalog.hbase.is_some() => return,
        };
        watched.end();
        let rest = (began.elapsed() * REST).min(MAX_REST);
        catalog.looked(name, tried.as_ref().err(), std::mem::take(&mut first));
        let again = pace.after(&tried.map_err(|refusal| format!("queue {name}: {refusal}")));
        let queue = catalog.queue(name.as_bytes()).ok();
        tokio::select! {
            changed = watched.changed() => if changed.is_err() { return },
            () = nudged(queue.as_deref()) => {}
            () = catalog.lease.other_than(session) => {}
            () = tokio::time::sleep(again.unwrap_or(Duration::MAX)), if again.is_some() => {}
            () = catalog.scope.stop.cancelled() => return,
            () = gone.cancelled() => return catalog.looked(name, None, false),
        }
        tokio::time::sleep(rest.saturating_sub(began.elapsed())).await;
    }
}

async fn nudged(queue: Option<&Queue>) {
    match queue {
        Some(queue) => queue.nudge.notified().await,
        None => std::future::pending().await,
    }
}

/// Ends what is served of a queue that the list does not have, if its node is gone. The list may be older than the queue: then it is left
/// alone, and followed when the list has it. Returns its name.
async fn close_if_gone(catalog: Arc<Catalog>, name: String) -> String {
    let is_gone = match (catalog.coordinator.get(&paths::queue(&name)).await, catalog.queue(name.as_bytes())) {
        (Ok(None), Ok(_)) => true,
        (Ok(Some(node)), Ok(queue)) => {
            let record = serde_json::from_slice::<QueueRecord>(&node.payload);
            record.is_ok_and(|record| record.uid != queue.record().0.uid)
        }
        (Err(_), _) | (_, Err(_)) => false,
    };
    if is_gone {
        close(&catalog, &name).await;
    } else {
        tokio::select! {
            () = tokio::time::sleep(LIST_IS_OLD) => {}
            () = catalog.scope.stop.cancelled() => {}
        }
    }
    name
}

/// Its node is gone: it is served no more.
async fn close(catalog: &Catalog, name: &str) {
    if let Some(queue) = catalog.take(name) {
        let (record, _) = queue.record();
        let kept = match &catalog.hbase {
            Some(hbase) => {
                hand_over::give_all_away(catalog, &queue).await;
                apply::end_all(catalog, &queue).await;
                hbase.close_queue(name, record.uid).await;
                "in HBase"
            }
            None => {
                apply::end_all(catalog, &queue).await;
                "in the data folder"
            }
        };
        release_all(catalog, &queue).await;
        if record.state != QueueState::Dropping {
            tracing::error!(
                queue = name,
                kept,
                "its node is gone although nobody dropped it: it is not served any more; its messages are kept"
            );
        }
    }
}

async fn release_all(catalog: &Catalog, queue: &Queue) {
    if let Some(cluster) = &catalog.cluster {
        release(&cluster.claims, queue.name.as_str(), &queue.ownership, 0..queue.partitions()).await;
    }
}

/// Looks at a queue once and makes it so.
async fn look(catalog: &Catalog, name: &str, watched: &mut Watched) -> Result<(), Refusal> {
    let Some(node) = watched.node(&paths::queue(name)).await.map_err(|_| closed())? else { return Ok(()) };
    if node.payload.is_empty() {
        // No queue: a node that came with one below it, made by hand.
        return Ok(());
    }
    let record: QueueRecord = match serde_json::from_slice::<QueueRecord>(&node.payload) {
        Ok(record) if record.partitions < 1 => {
            let message = format!("its node {} is wrong: it has {} partitions", paths::queue(name), record.partitions);
            return Err(Refusal::new(TErrorCode::FAILED, message));
        }
        Ok(record) => record,
        Err(error) => {
            // Nothing can be said of what it should be: what it was goes on, if it is served.
            let message = format!("its node {} cannot be read: {error}", paths::queue(name));
            return Err(Refusal::new(TErrorCode::FAILED, message));
        }
    };
    if record.state == QueueState::Dropping {
        return match &catalog.hbase {
            Some(hbase) if catalog.cluster.is_some() => {
                let_go(catalog, hbase, name, &record, node.version).await;
                empty::remove_shared(catalog, hbase, name, &record, &node, watched).await
            }
            _ => drop_data(catalog, name, record, &node).await,
        };
    }
    let queue = open(catalog, name, record, &node).await?;
    let (ours, claimed) = match &catalog.cluster {
        Some(cluster) if catalog.hbase.is_some() => hand_over::settle(catalog, cluster, &queue, watched).await?,
        _ => (claim(catalog, &queue, watched).await?, Ok(())),
    };
    let stamp = queue.unread.as_ref().map(|unread| unread.stamp());
    let desired = desired::read(watched, name, queue.partitions(), &ours).await.map_err(|_| closed())?;
    if let (Some(unread), Some(stamp)) = (&queue.unread, stamp) {
        queue.deleted_are_gone(|name| !desired.contains_key(name));
        unread.seen(&desired::readers(&desired, &ours), stamp, |name| queue.is_hidden(name));
    }
    // Partitions that cannot be ours yet hold up no others.
    apply::apply(catalog, &queue, desired, &ours).await.and(claimed)
}

pub(super) fn closed() -> Refusal {
    CoordinationError::Closed.into()
}

/// The open queue of this record, with what has changed of it.
async fn open(catalog: &Catalog, name: &str, record: QueueRecord, node: &Node) -> Result<Arc<Queue>, Refusal> {
    if let Ok(queue) = catalog.queue(name.as_bytes()) {
        let (known, version) = queue.record();
        if known.uid == record.uid {
            if known.partitions != record.partitions {
                let message = format!(
                    "its node {} says {} partitions, but it has {}: that never changes",
                    paths::queue(name),
                    record.partitions,
                    known.partitions
                );
                return Err(Refusal::new(TErrorCode::FAILED, message));
            }
            if version != node.version {
                queue.set_record(record, node.version);
            }
            return Ok(queue);
        }
        // Dropped and made anew so fast that only the new one was seen.
        match &catalog.hbase {
            Some(hbase) if catalog.cluster.is_some() => let_go(catalog, hbase, name, &known, version).await,
            _ => {
                catalog.take(name);
                apply::end_all(catalog, &queue).await;
            }
        }
    }
    let queue_name = QueueName::from_bytes(name.as_bytes()).map_err(|e| Refusal::invalid(e.to_string()))?;
    let queue = catalog.open_queue(queue_name, record, node.version).await?;
    catalog.insert(Arc::clone(&queue));
    Ok(queue)
}

/// Claims what is given to us. Returns the partitions that we serve.
async fn claim(catalog: &Catalog, queue: &Arc<Queue>, watched: &mut Watched) -> Result<Vec<i16>, Refusal> {
    let name = queue.name.as_str();
    let Some(cluster) = &catalog.cluster else {
        let all: Vec<i16> = (0..queue.partitions()).collect();
        if let Some(session) = catalog.lease.last_session() {
            all.iter().for_each(|p| queue.ownership.claimed(*p, session));
        }
        return Ok(all);
    };
    let Some(assignment) = assigned(queue, watched).await? else { return Ok(Vec::new()) };
    let ours: Vec<i16> = assignment.partitions_of(&cluster.claims.broker).collect();
    ours.iter().for_each(|p| watched.expect_node(&paths::owner(name, *p)));
    let mut wanted = Vec::with_capacity(ours.len());
    for &p in &ours {
        wanted.push((p, watched.node(&paths::owner(name, p)).await.map_err(|_| closed())?));
    }
    let before: Vec<Option<i64>> = ours.iter().map(|p| queue.ownership.claim_of(*p)).collect();
    // The limit of its size counts here in proportion.
    queue.store.set_share(i16::try_from(ours.len()).unwrap_or(i16::MAX));
    if let Some(unread) = &queue.unread {
        ours.iter().zip(&before).filter(|(_, before)| before.is_none()).for_each(|(p, _)| unread.unknown(*p));
    }
    let claimed = cluster.claims.claim_all(name, &queue.ownership, wanted).await;
    for (&p, before) in ours.iter().zip(before) {
        let now = queue.ownership.claim_of(p);
        if now.is_some() && now != before {
            queue.subscriptions().iter().for_each(|s| s.wake(p));
        }
    }
    claimed?;
    Ok(ours)
}

/// Who has which partition, as far as that can be read.
pub(super) async fn assigned(queue: &Queue, watched: &mut Watched) -> Result<Option<Arc<Assignment>>, Refusal> {
    let path = paths::assignment(queue.name.as_str());
    let Some(node) = watched.node(&path).await.map_err(|_| closed())? else { return Ok(None) };
    match Assignment::from_payload(&node.payload, queue.partitions()) {
        Ok(assignment) => queue.set_assignment(Some(assignment)),
        Err(reason) => tracing::error!(queue = %queue.name, "its node {path} cannot be read: {reason}"),
    }
    Ok(queue.assignment())
}

/// The queue is dropped: ends everything of it here. Its table goes when no broker has a partition any more.
async fn let_go(catalog: &Catalog, hbase: &HBaseStore, name: &str, record: &QueueRecord, version: i32) {
    if let Ok(queue) = catalog.queue(name.as_bytes()) {
        queue.set_record(QueueRecord { state: QueueState::Dropping, ..record.clone() }, version);
        catalog.take(name);
        hand_over::give_all_away(catalog, &queue).await;
        apply::end_all(catalog, &queue).await;
        tracing::info!(queue = name, "dropped");
    }
    hbase.close_queue(name, record.uid).await;
}

/// The queue is dropped: ends everything of it here and removes its messages. Its nodes go when no broker has a partition any more.
async fn drop_data(catalog: &Catalog, name: &str, record: QueueRecord, node: &Node) -> Result<(), Refusal> {
    if let Ok(queue) = catalog.queue(name.as_bytes()) {
        queue.set_record(record.clone(), node.version);
        catalog.take(name);
        apply::end_all(catalog, &queue).await;
        catalog.store.remove_queue(name, record.uid).await?;
        release_all(catalog, &queue).await;
        tracing::info!(queue = name, "dropped");
    } else {
        catalog.store.remove_queue(name, record.uid).await?;
    }
    if catalog.cluster.is_none() {
        remove_queue_nodes(&*catalog.coordinator, name, node).await?;
    }
    Ok(())
}

//! Partitions that come and go, where brokers share the store and any of them can own any partition.
//!
//! **Going**: nothing new begins; puts and calls to subscribers that are under way end; checkpoints are written; the store lets go; then the
//! owner node goes, and the next owner begins. So nothing is pushed twice.
//!
//! **Coming**: the owner node is made; nobody empties the queue meanwhile; the store finds out what there is; then the partition is ours.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{Node, Watched};
use hqueue_protocol::generated::TErrorCode;

use super::catalog::Catalog;
use super::follow::{assigned, closed};
use super::queue::Queue;
use crate::cluster::{Claimed, Cluster, release};
use crate::paths;
use crate::refusal::Refusal;

/// How long what is under way in a partition may hold up its hand-over: then what is not answered yet comes again at the next owner.
const PATIENCE: Duration = Duration::from_secs(8);
/// So many partitions are handed over at once.
const CONCURRENT: usize = 32;

/// Takes what is given to us and gives away what is not. Returns the partitions that we serve, and what kept others from being ours.
pub(super) async fn settle(
    catalog: &Catalog,
    cluster: &Cluster,
    queue: &Arc<Queue>,
    watched: &mut Watched,
) -> Result<(Vec<i16>, Result<(), Refusal>), Refusal> {
    let name = queue.name.as_str();
    let is_emptied = watched.node(&paths::emptying(name)).await.map_err(|_| closed())?.is_some();
    let assignment = assigned(queue, watched).await?;
    let ours = assignment.iter().flat_map(|given| given.partitions_of(&cluster.claims.broker));
    let given: BTreeSet<i16> = ours.filter(|_| !is_emptied).collect();
    given.iter().for_each(|p| watched.expect_node(&paths::owner(name, *p)));
    let session = catalog.lease.last_session();
    let mut free = Vec::with_capacity(given.len());
    let mut going: Vec<i16> = Vec::new();
    for &p in &given {
        let node = watched.node(&paths::owner(name, p)).await.map_err(|_| closed())?;
        if is_anothers(cluster, session, node.as_ref()) {
            // He is still at it: that his node goes tells us when he is done.
            going.push(p);
        } else {
            free.push((p, node));
        }
    }
    let is_held = |p: i16| queue.ownership.claim_of(p).or_else(|| queue.ownership.node_of(p)).is_some();
    going.extend((0..queue.partitions()).filter(|p| !given.contains(p)));
    going.retain(|p| is_held(*p));
    let (_, claimed) = tokio::join!(give_away(catalog, cluster, queue, going), take(catalog, cluster, queue, free));
    let serves = |p: &i16| session.is_some() && queue.ownership.claim_of(*p) == session;
    Ok((given.into_iter().filter(serves).collect(), claimed))
}

fn is_anothers(cluster: &Cluster, session: Option<i64>, node: Option<&Node>) -> bool {
    node.and_then(|node| node.owner_session).is_some_and(|s| Some(s) != session && !cluster.claims.book.contains(s))
}

async fn take(catalog: &Catalog, cluster: &Cluster, queue: &Arc<Queue>, free: Vec<(i16, Option<Node>)>) -> Result<(), Refusal> {
    let before: Vec<(i16, Option<i64>)> = free.iter().map(|(p, _)| (*p, queue.ownership.claim_of(*p))).collect();
    let session = catalog.lease.last_session();
    if before.iter().any(|(_, claim)| *claim != session)
        && let Some(hbase) = &catalog.hbase
    {
        hbase.enable(queue.name.as_str()).await?;
    }
    let prepare = |claimed| acquire(catalog, cluster, queue, claimed);
    let outcome = cluster.claims.claim_all_with(queue.name.as_str(), &queue.ownership, free, prepare).await;
    for (p, before) in before {
        let now = queue.ownership.claim_of(p);
        if now.is_some() && now != before {
            queue.subscriptions().iter().for_each(|s| s.wake(p));
        }
    }
    outcome
}

/// The owner node is ours: finds out what is in the partition.
async fn acquire(catalog: &Catalog, cluster: &Cluster, queue: &Arc<Queue>, claimed: Claimed) -> Result<(), Refusal> {
    let p = claimed.partition;
    // Read behind our claim: whoever empties the queue sees the claim, or we see him.
    if catalog.coordinator.get(&paths::emptying(queue.name.as_str())).await?.is_some() {
        release(&cluster.claims, queue.name.as_str(), &queue.ownership, [p]).await;
        return Err(is_being_emptied(queue));
    }
    if !queue.ownership.note_epoch(p, claimed.epoch) {
        // Somebody else has pushed it meanwhile, or may have: his checkpoints count.
        queue.subscriptions().iter().for_each(|subscription| subscription.end(p));
    }
    queue.store.acquire(p).await?;
    if let Some(letters) = &queue.letters {
        letters.reload(&queue.store).await?;
    }
    Ok(())
}

pub(super) fn is_being_emptied(queue: &Queue) -> Refusal {
    Refusal::new(TErrorCode::OFFLINE, format!("queue {} is being truncated or dropped", queue.name))
}

/// Hands partitions over to whoever comes next.
pub(super) async fn give_away(catalog: &Catalog, cluster: &Cluster, queue: &Arc<Queue>, going: Vec<i16>) {
    let all = going.into_iter().map(|p| async move {
        end_work(catalog, queue, p).await;
        release(&cluster.claims, queue.name.as_str(), &queue.ownership, [p]).await;
    });
    stream::iter(all).buffer_unordered(CONCURRENT).collect::<()>().await;
}

/// Ends what we do in a partition, in order.
async fn end_work(catalog: &Catalog, queue: &Arc<Queue>, p: i16) {
    let (name, ownership) = (queue.name.as_str(), &queue.ownership);
    ownership.leave(p);
    if ownership.owned(p).is_some() {
        if tokio::time::timeout(PATIENCE, ownership.left(p)).await.is_err() {
            tracing::warn!(
                queue = name,
                partition = p,
                "handed over before all calls and puts under way had ended: what they carried may come again"
            );
        }
        for worker in queue.subscriptions().iter().filter_map(|subscription| subscription.worker(p)) {
            catalog.checkpoints.write_now(&worker).await;
        }
    }
    queue.subscriptions().iter().for_each(|subscription| subscription.end(p));
    if let Err(error) = queue.store.release(p).await {
        tracing::warn!(queue = name, partition = p, "handed over, but the next owner has to look for the last messages: {error}");
    }
}

/// Ends what is here of a queue that is dropped, or whose node is gone.
pub(super) async fn give_all_away(catalog: &Catalog, queue: &Arc<Queue>) {
    if let Some(cluster) = &catalog.cluster {
        give_away(catalog, cluster, queue, (0..queue.partitions()).collect()).await;
    }
}

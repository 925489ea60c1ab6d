//! What needs that no broker owns a partition of a queue, where brokers share the store: emptying its table, and removing it.
//!
//! Whoever does it makes a node, in his session. While it stands all brokers give the queue's partitions away and take none: each looks for
//! the node behind its own claim. When no owner is left, he is alone with the table. If he ends in the middle, his node goes, and the
//! brokers go on with what is there.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{Claim, CoordinationError, Node, Observed, Watched, claim, create_all};
use hqueue_hbase::store::HBaseStore;
use hqueue_protocol::generated::TErrorCode;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::follow::closed;
use super::queue::Queue;
use super::record::QueueRecord;
use crate::cluster::remove_queue_nodes;
use crate::paths;
use crate::refusal::Refusal;

/// How long it is waited for the owners; more for each partition.
const OWNERS_PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_PER_PARTITION: Duration = Duration::from_millis(5);
/// So many owner nodes are read at once.
const CONCURRENT_READS: usize = 32;

impl Catalog {
    /// Removes all messages of a queue in the shared store. Its partitions are offline meanwhile.
    pub(super) async fn empty_shared(&self, hbase: &HBaseStore, queue: &Arc<Queue>) -> Result<(), Refusal> {
        let _one = queue.changes.lock().await;
        let path = paths::emptying(queue.name.as_str());
        let Some(session) = self.claim_emptying(&path).await? else {
            let message = format!("queue {} is being truncated or dropped by another command", queue.name);
            return Err(Refusal::new(TErrorCode::BUSY, message));
        };
        let emptied = self.empty_alone(hbase, queue, session).await;
        match self.coordinator.delete(&path, None).await {
            Ok(()) | Err(CoordinationError::NoNode(_)) => {}
            Err(error) => tracing::debug!(path, "not removed, it goes with our session: {error}"),
        }
        emptied?;
        tracing::info!(queue = %queue.name, "truncated");
        Ok(())
    }

    async fn empty_alone(&self, hbase: &HBaseStore, queue: &Arc<Queue>, session: i64) -> Result<(), Refusal> {
        self.until_nobody_owns(queue).await?;
        let uid = queue.record().0.uid;
        let may_go_on = || self.lease.session() == Some(session);
        hbase.empty(queue.name.as_str(), uid, &may_go_on).await.map_err(|error| {
            let refusal = Refusal::from(error);
            Refusal::new(refusal.code, format!("some or all messages may be gone: {}", refusal.message))
        })
    }

    /// The session in which the node is ours; `None`: it is somebody else's.
    async fn claim_emptying(&self, path: &str) -> Result<Option<i64>, Refusal> {
        let Some(cluster) = &self.cluster else { return Err(closed()) };
        let is_left = |node: &Node| {
            let ours = self.lease.last_session();
            node.owner_session != ours && node.owner_session.is_none_or(|s| cluster.claims.book.contains(s))
        };
        let ours = cluster.claims.broker.as_bytes();
        let claimed = match claim(&*self.coordinator, path, ours, is_left).await {
            Err(CoordinationError::NoNode(_)) => {
                create_all(&*self.coordinator, paths::EMPTYING).await?;
                claim(&*self.coordinator, path, ours, is_left).await?
            }
            other => other?,
        };
        match claimed {
            Claim::Held { session } => Ok(Some(session)),
            // Of an earlier try whose answer was lost, or whose end failed.
            Claim::Taken(node) => Ok(node.owner_session.filter(|session| Some(*session) == self.lease.last_session())),
        }
    }

    async fn until_nobody_owns(&self, queue: &Queue) -> Result<(), Refusal> {
        let deadline = Instant::now() + OWNERS_PATIENCE + PATIENCE_PER_PARTITION * u32::from(queue.partitions().unsigned_abs());
        for p in 0..queue.partitions() {
            let mut owner = self.coordinator.watch_node(&paths::owner(queue.name.as_str(), p));
            let is_gone = owner.wait_for(|seen| matches!(seen, Observed::Seen(None)));
            if tokio::time::timeout_at(deadline, is_gone).await.is_err() {
                let broker = queue.assignment().and_then(|a| a.broker_of(p).cloned());
                let broker = broker.as_deref().unwrap_or("its broker").to_owned();
                let message = format!(
                    "nothing is truncated: partition {p} of queue {} is not given up by {broker}: a call to a subscriber takes long, or \
                     the broker is cut off",
                    queue.name
                );
                return Err(Refusal::new(TErrorCode::BUSY, message));
            }
        }
        // What a watch shows may be old: these reads come behind our node.
        match self.any_owner(queue.name.as_str(), queue.partitions()).await? {
            false => Ok(()),
            true => Err(Refusal::new(
                TErrorCode::BUSY,
                format!("nothing is truncated: partitions of queue {} have just been claimed", queue.name),
            )),
        }
    }

    async fn any_owner(&self, queue: &str, partitions: i16) -> Result<bool, CoordinationError> {
        let reads = (0..partitions).map(|p| async move { self.coordinator.get(&paths::owner(queue, p)).await });
        let mut reads = stream::iter(reads).buffer_unordered(CONCURRENT_READS);
        while let Some(owner) = reads.next().await {
            if owner?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The queue is dropped, and nothing of it is served here any more: whoever comes first when no owner is left removes its table, and then
/// its nodes.
pub(super) async fn remove_shared(
    catalog: &Catalog,
    hbase: &HBaseStore,
    name: &str,
    record: &QueueRecord,
    node: &Node,
    watched: &mut Watched,
) -> Result<(), Refusal> {
    let owners: Vec<String> = (0..record.partitions).map(|p| paths::owner(name, p)).collect();
    owners.iter().for_each(|path| watched.expect_node(path));
    for path in &owners {
        if watched.node(path).await.map_err(|_| closed())?.is_some() {
            return Ok(());
        }
    }
    let path = paths::emptying(name);
    // Watched, so that it is looked again if whoever has it ends before the queue is gone.
    watched.node(&path).await.map_err(|_| closed())?;
    if catalog.claim_emptying(&path).await?.is_none() {
        return Ok(());
    }
    // Another broker may have removed it since we looked, and a queue of its name been made. From here on nobody else removes nodes of it.
    let now = catalog.coordinator.get(&paths::queue(name)).await?;
    let is_it = now.is_some_and(|now| now.version == node.version && now.payload == node.payload);
    if is_it {
        hbase.remove_table(name, record.uid, record.partitions).await?;
        if remove_queue_nodes(&*catalog.coordinator, name, node).await? {
            tracing::info!(queue = name, "removed");
        }
    }
    match catalog.coordinator.delete(&path, None).await {
        Ok(()) | Err(CoordinationError::NoNode(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

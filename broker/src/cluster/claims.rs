//! Claiming partitions: the owner nodes of our session.

use std::future::{Future, ready};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{Claim, CoordinationError, Node, NodeKind, SharedCoordinator, claim};
use serde::{Deserialize, Serialize};

use super::lease::Lease;
use super::members::hex;
use super::ownership::Ownership;
use crate::data_folder::SessionBook;
use crate::paths;

/// So many partitions are claimed at once.
const CONCURRENT_CLAIMS: usize = 24;

/// The payload of an owner node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    pub broker: String,
    /// Rises with every claim of the partition, by whomever: the version of the partition's own node after the claim wrote it.
    pub epoch: i32,
}

/// A partition whose owner node is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub partition: i16,
    pub session: i64,
    pub epoch: i32,
}

/// Makes and removes owner nodes.
#[derive(Clone, Debug)]
pub struct Claims {
    pub coordinator: SharedCoordinator,
    pub lease: Lease,
    pub book: Arc<SessionBook>,
    /// Our name.
    pub broker: String,
}

impl Claims {
    /// Claims these partitions, each with the owner node as it was seen. All are tried; the first error is returned.
    pub async fn claim_all(
        &self,
        queue: &str,
        ownership: &Ownership,
        partitions: Vec<(i16, Option<Node>)>,
    ) -> Result<(), CoordinationError> {
        self.claim_all_with(queue, ownership, partitions, |_| ready(Ok(()))).await
    }

    /// The same; `prepare` is asked for each partition once its owner node is ours, and before we act for it.
    pub async fn claim_all_with<E, F>(
        &self,
        queue: &str,
        ownership: &Ownership,
        partitions: Vec<(i16, Option<Node>)>,
        prepare: impl Fn(Claimed) -> F,
    ) -> Result<(), E>
    where
        E: From<CoordinationError>,
        F: Future<Output = Result<(), E>>,
    {
        let Some(session) = self.lease.last_session() else { return Ok(()) };
        let prepare = &prepare;
        let tries = stream::iter(partitions).map(|(partition, seen)| async move {
            let Some(claimed) = self.claim_one(queue, ownership, partition, seen, session).await? else { return Ok(()) };
            prepare(claimed).await?;
            ownership.claimed(partition, claimed.session);
            Ok(())
        });
        let results: Vec<_> = tries.buffer_unordered(CONCURRENT_CLAIMS).collect().await;
        results.into_iter().collect()
    }

    /// `None`: it is ours already.
    async fn claim_one(
        &self,
        queue: &str,
        ownership: &Ownership,
        partition: i16,
        seen: Option<Node>,
        session: i64,
    ) -> Result<Option<Claimed>, CoordinationError> {
        if let Some(node) = seen.filter(|node| node.owner_session == Some(session))
            && let Some(epoch) = self.complete(&node)
        {
            let is_known = ownership.claim_of(partition) == Some(session);
            return Ok((!is_known).then_some(Claimed { partition, session, epoch }));
        }
        // Whatever stands there is not ours: until that is settled nothing is.
        ownership.gave_up(partition);
        ownership.claiming(partition, session);
        let taken = match self.take(queue, partition, session).await {
            Err(CoordinationError::NoNode(_)) => {
                self.make_partition(&paths::partition(queue, partition)).await?;
                self.take(queue, partition, session).await
            }
            other => other,
        };
        taken.map(Some)
    }

    async fn take(&self, queue: &str, partition: i16, session: i64) -> Result<Claimed, CoordinationError> {
        let path = paths::owner(queue, partition);
        let is_left = |node: &Node| node.owner_session.is_none_or(|s| s != session && self.book.contains(s));
        let held = match claim(&*self.coordinator, &path, &self.payload(0), is_left).await? {
            Claim::Held { session } => session,
            // Made by an earlier try whose answer was lost.
            Claim::Taken(node) if node.owner_session == Some(session) => session,
            Claim::Taken(node) => {
                let by = node.owner_session.unwrap_or_default();
                return Err(CoordinationError::NodeExists(format!("{path}, held by session {}", hex(by))));
            }
        };
        // Only who holds the owner node writes here: so the epoch rises from owner to owner.
        let epoch = self.coordinator.set(&paths::partition(queue, partition), self.broker.as_bytes(), None).await?;
        self.coordinator.set(&path, &self.payload(epoch), None).await?;
        Ok(Claimed { partition, session: held, epoch })
    }

    /// The epoch of a claim that was carried through to its end, if nobody who took our node for one of his has written over it since.
    fn complete(&self, node: &Node) -> Option<i32> {
        let record = serde_json::from_slice::<OwnerRecord>(&node.payload).ok()?;
        (record.epoch > 0 && record.broker == self.broker).then_some(record.epoch)
    }

    fn payload(&self, epoch: i32) -> Vec<u8> {
        serde_json::to_vec(&OwnerRecord { broker: self.broker.clone(), epoch }).unwrap_or_default()
    }

    /// The partition's own node, below which the owner's stands. Not its parents: a queue that is gone does not come back.
    async fn make_partition(&self, path: &str) -> Result<(), CoordinationError> {
        match self.coordinator.create(path, &[], NodeKind::Persistent).await {
            Ok(_) | Err(CoordinationError::NodeExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Gives partitions up: first for ourselves, then for everybody.
pub async fn release(claims: &Claims, queue: &str, ownership: &Ownership, partitions: impl IntoIterator<Item = i16>) {
    let owned = |p| ownership.claim_of(p).or_else(|| ownership.node_of(p)).map(|session| (p, session));
    let removals = partitions.into_iter().filter_map(owned).map(|(partition, session)| async move {
        ownership.gave_up(partition);
        let path = paths::owner(queue, partition);
        match claims.coordinator.get(&path).await {
            Ok(Some(node)) if node.owner_session == Some(session) => {
                match claims.coordinator.delete(&path, Some(node.version)).await {
                    Ok(()) | Err(CoordinationError::NoNode(_)) => ownership.node_removed(partition),
                    Err(error) => tracing::debug!(path, "not removed, it goes with the session: {error}"),
                }
            }
            Ok(_) => ownership.node_removed(partition),
            Err(_) => {}
        }
    });
    stream::iter(removals).buffer_unordered(CONCURRENT_CLAIMS).collect::<()>().await;
}

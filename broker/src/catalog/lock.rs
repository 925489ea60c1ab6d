//! One change of a subscriber at a time, also among brokers.

use std::time::Duration;

use hqueue_coordination::{Claim, CoordinationError, NodeKind, Observed, claim};
use hqueue_protocol::generated::TErrorCode;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::queue::Queue;
use crate::paths;
use crate::refusal::Refusal;

/// How long a change waits for another one.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a lock that was taken elsewhere may take to be seen here.
const SEEN_PATIENCE: Duration = Duration::from_secs(2);

/// Held while a subscriber is changed. An ephemeral node: if the broker dies it goes with the session. What is read after it was taken is
/// what every earlier holder has written.
#[derive(Debug)]
pub(super) struct SubscriberLock<'a> {
    catalog: &'a Catalog,
    path: String,
}

impl Drop for SubscriberLock<'_> {
    fn drop(&mut self) {
        let coordinator = self.catalog.coordinator.clone();
        let path = std::mem::take(&mut self.path);
        self.catalog.scope.spawn(async move {
            match coordinator.delete(&path, None).await {
                Ok(()) | Err(CoordinationError::NoNode(_)) => {}
                Err(error) => tracing::debug!(path, "not removed, it goes with our session: {error}"),
            }
        });
    }
}

impl Catalog {
    /// Waits until nobody else changes this subscriber. A broker without others needs no node: `Queue::changes` is enough.
    pub(super) async fn lock_subscriber(&self, queue: &Queue, name: &str) -> Result<Option<SubscriberLock<'_>>, Refusal> {
        let Some(cluster) = &self.cluster else { return Ok(None) };
        let parent = paths::changing(queue.name.as_str());
        match self.coordinator.create(&parent, &[], NodeKind::Persistent).await {
            Ok(_) | Err(CoordinationError::NodeExists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let path = paths::changing_subscriber(queue.name.as_str(), name);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let is_left = |node: &hqueue_coordination::Node| {
                let ours = self.lease.last_session();
                node.owner_session != ours && node.owner_session.is_none_or(|s| cluster.claims.book.contains(s))
            };
            if let Claim::Held { .. } = claim(&*self.coordinator, &path, cluster.claims.broker.as_bytes(), is_left).await? {
                return Ok(Some(SubscriberLock { catalog: self, path }));
            }
            let mut node = self.coordinator.watch_node(&path);
            let gone = node.wait_for(|seen| matches!(seen, Observed::Seen(None)));
            if tokio::time::timeout_at(deadline, gone).await.is_err() {
                let message = format!(
                    "subscriber {name} of queue {} is being changed by another command for more than {} s",
                    queue.name,
                    PATIENCE.as_secs()
                );
                return Err(Refusal::new(TErrorCode::BUSY, message));
            }
        }
    }

    /// Some broker holds the lock of this subscriber. Our server may be behind the one where it was taken: it has a while to show it.
    pub(super) async fn is_being_changed(&self, queue: &Queue, name: &str) -> Result<bool, Refusal> {
        let path = paths::changing_subscriber(queue.name.as_str(), name);
        if self.coordinator.get(&path).await?.is_some() {
            return Ok(true);
        }
        let mut node = self.coordinator.watch_node(&path);
        let held = node.wait_for(|seen| matches!(seen, Observed::Seen(Some(_))));
        Ok(tokio::time::timeout(SEEN_PATIENCE, held).await.is_ok_and(|held| held.is_ok()))
    }
}

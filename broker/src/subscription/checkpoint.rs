//! Checkpoints: what they say, and who writes them to coordination.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{CoordinationError, SharedCoordinator};
use hqueue_protocol::id::MessageId;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::shared::TaskScope;
use super::worker::SubscriptionWorker;
use crate::paths;

/// A node is written at most once in so long.
const INTERVAL: Duration = Duration::from_secs(1);
/// So many writes are under way at once: ZooKeeper's client takes no more than 48 requests.
const CONCURRENT_WRITES: usize = 32;

/// How far a subscription has come in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Everything wanted at or below it is consumed or expired.
    pub id: MessageId,
    /// The running number of the message behind it, if it is known: tells how many expire unread.
    pub number: Option<u64>,
    /// How often the batch behind it was tried.
    pub attempts: u32,
    /// The last id of that batch.
    pub attempts_to: Option<MessageId>,
    /// Where the subscription began: what lies at or below never was its business. `None`: not known, or at the oldest message.
    pub began: Option<MessageId>,
    /// The version of the node that holds it.
    pub version: i32,
}

/// The node's payload.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    timestamp: i64,
    sequence: i16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Checkpoint {
    #[must_use]
    pub const fn at(id: MessageId) -> Self {
        Self { id, number: None, attempts: 0, attempts_to: None, began: None, version: 0 }
    }

    /// That of a subscription that begins behind this id.
    #[must_use]
    pub fn first(id: MessageId) -> Self {
        Self { began: (id > MessageId::MIN).then_some(id), ..Self::at(id) }
    }

    /// Somebody moves it: where the subscription began stays, unless it is to go on before that.
    #[must_use]
    pub fn moved_to(self, to: Self) -> Self {
        Self { began: to.began.or(self.began).map(|began| began.min(to.id)), ..to }
    }

    #[must_use]
    pub fn to_payload(self) -> Vec<u8> {
        let payload = Payload {
            timestamp: self.id.timestamp,
            sequence: self.id.sequence,
            number: self.number,
            attempts: self.attempts,
            attempts_to: self.attempts_to.map(|id| id.to_string()),
            began: self.began.map(|id| id.to_string()),
        };
        serde_json::to_vec(&payload).unwrap_or_default()
    }

    /// Reads a node. The error says what is wrong with it.
    pub fn from_payload(payload: &[u8], version: i32) -> Result<Self, String> {
        let read: Payload = serde_json::from_slice(payload).map_err(|error| format!("the checkpoint cannot be read: {error}"))?;
        let parse = |id: Option<String>| id.map(|id| id.parse::<MessageId>().map_err(|error| error.to_string())).transpose();
        let (attempts_to, began) = (parse(read.attempts_to)?, parse(read.began)?);
        if read.timestamp < 0 || read.sequence < 0 {
            return Err(format!("the checkpoint {}:{} is negative", read.timestamp, read.sequence));
        }
        let id = MessageId::new(read.timestamp, read.sequence);
        Ok(Self { id, number: read.number, attempts: read.attempts, attempts_to, began, version })
    }
}

/// Writes the checkpoints that have moved, of all subscriptions of this broker. Nothing runs while none has.
#[derive(Debug)]
pub struct CheckpointUpdater {
    coordinator: SharedCoordinator,
    scope: TaskScope,
    moved: Mutex<Vec<Arc<SubscriptionWorker>>>,
    running: AtomicBool,
    /// Held by a flush: when it returns, what had moved before is written. The end of the last one.
    writing: tokio::sync::Mutex<Option<Instant>>,
    writes: Semaphore,
}

impl CheckpointUpdater {
    #[must_use]
    pub fn new(coordinator: SharedCoordinator, scope: TaskScope) -> Self {
        Self {
            coordinator,
            scope,
            moved: Mutex::default(),
            running: AtomicBool::new(false),
            writing: tokio::sync::Mutex::default(),
            writes: Semaphore::new(CONCURRENT_WRITES),
        }
    }

    /// The worker's checkpoint has moved: it is written within a second.
    pub(super) fn mark(self: &Arc<Self>, worker: &Arc<SubscriptionWorker>) {
        if let Some(worker) = worker.mark_dirty() {
            self.later([worker]);
        }
    }

    /// These are written within a second.
    fn later(self: &Arc<Self>, workers: impl IntoIterator<Item = Arc<SubscriptionWorker>>) {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).extend(workers);
        if !self.running.swap(true, Ordering::AcqRel) {
            let updater = Arc::clone(self);
            self.scope.spawn(async move { updater.run().await });
        }
    }

    async fn run(&self) {
        loop {
            let last = *self.writing.lock().await;
            if let Some(last) = last {
                tokio::select! {
                    () = tokio::time::sleep_until(last + INTERVAL) => {}
                    () = self.scope.stop.cancelled() => return, // the stop writes what is left
                }
            }
            self.flush().await;
            self.running.store(false, Ordering::Release);
            // What was marked between the flush and the line above found `running` set.
            let nothing = self.moved.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if nothing || self.running.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }

    /// Writes everything that has moved.
    pub async fn flush(&self) {
        let mut writing = self.writing.lock().await;
        let moved = std::mem::take(&mut *self.moved.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failed = Vec::new();
        moved.iter().for_each(|worker| worker.is_out());
        let mut writes = stream::iter(moved.into_iter().map(|worker| self.write(worker))).buffer_unordered(CONCURRENT_WRITES);
        while let Some(result) = writes.next().await {
            failed.extend(result);
        }
        drop(writes);
        *writing = Some(Instant::now());
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).extend(failed);
    }

    /// Writes this one now, if it has moved, and no other.
    pub async fn write_now(self: &Arc<Self>, worker: &Arc<SubscriptionWorker>) {
        if let Some(again) = self.write(Arc::clone(worker)).await {
            self.later([again]);
        }
    }

    /// Returns the worker if its checkpoint has to be written again, and nobody else does that.
    async fn write(&self, worker: Arc<SubscriptionWorker>) -> Option<Arc<SubscriptionWorker>> {
        // One write of a node at a time, so that they come in order; and not too many in all. Never closed.
        let _alone = worker.writing.lock().await;
        let _permit = self.writes.acquire().await;
        if !worker.begin_dirty() || worker.is_forgotten() {
            return None;
        }
        let shared = worker.shared();
        if shared.ownership.owned(worker.partition()).is_none() {
            // Not ours now. If it is again, this is written; if it is another's, nobody wants it.
            return worker.mark_dirty();
        }
        let checkpoint = worker.begin_write();
        let path = paths::checkpoint(&shared.queue, worker.partition(), &shared.name);
        match self.coordinator.set(&path, &checkpoint.to_payload(), Some(checkpoint.version)).await {
            Ok(version) => {
                worker.stored_as(version);
                None
            }
            Err(CoordinationError::NoNode(_) | CoordinationError::Closed) => None, // deleted, or the end
            Err(CoordinationError::BadVersion { .. }) => self.reload(&worker, &path).await,
            Err(error) => {
                tracing::warn!(path, "checkpoint not written, tried again: {error}");
                worker.mark_dirty()
            }
        }
    }

    /// The node has another version than was known: written by an earlier try of ours, or by somebody else, and then what stands there
    /// counts. Returns the worker if it is to be written again.
    async fn reload(&self, worker: &Arc<SubscriptionWorker>, path: &str) -> Option<Arc<SubscriptionWorker>> {
        match self.coordinator.get(path).await {
            Ok(Some(node)) => match Checkpoint::from_payload(&node.payload, node.version) {
                Ok(checkpoint) if worker.reread(checkpoint) => None,
                Ok(_) => worker.mark_dirty(),
                Err(_) => None, // whoever watches the node says it
            },
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(path, "{error}");
                worker.mark_dirty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_plain_json() {
        let plain = Checkpoint::at(MessageId::new(1_700_000_000_000, 12));
        assert_eq!(plain.to_payload(), br#"{"timestamp":1700000000000,"sequence":12}"#);
        assert_eq!(Checkpoint::from_payload(&plain.to_payload(), 0), Ok(plain));
        let failing = Checkpoint {
            number: Some(5),
            attempts: 3,
            attempts_to: Some(MessageId::new(1_700_000_000_001, 0)),
            began: Some(MessageId::new(1_600_000_000_000, 0)),
            version: 7,
            ..plain
        };
        assert_eq!(Checkpoint::from_payload(&failing.to_payload(), 7), Ok(failing));
    }

    #[test]
    fn where_it_began_stays() {
        let id = |ms| MessageId::new(ms, 0);
        assert_eq!(Checkpoint::first(MessageId::MIN).began, None, "all of the messages are its business");
        let first = Checkpoint::first(id(10));
        assert_eq!(first.moved_to(Checkpoint::at(id(20))).began, Some(id(10)));
        assert_eq!(first.moved_to(Checkpoint::at(id(4))).began, Some(id(4)), "what lies behind is its business now");
        assert_eq!(Checkpoint::at(id(10)).moved_to(Checkpoint::at(id(20))).began, None);
    }

    #[test]
    fn damage_is_named() {
        for bad in ["", "{}", "5", r#"{"timestamp":-1,"sequence":0}"#, r#"{"timestamp":1,"sequence":0,"attempts_to":"x"}"#] {
            assert!(Checkpoint::from_payload(bad.as_bytes(), 0).is_err(), "{bad}");
        }
    }
}

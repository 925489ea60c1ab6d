//! One queue of this broker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::names::QueueName;
use hqueue_protocol::position::Position;
use hqueue_storage::store::QueueStore;

use super::record::{QueueRecord, QueueState};
use crate::partition::CommitWaiters;
use crate::refusal::Refusal;
use crate::subscription::{Subscription, before};
use crate::time::Moment;

/// A position may lie so far ahead of the clock and is then taken as the end.
const FUTURE_ALLOWED_MS: i64 = 60_000;

/// So often a number is looked for while puts come in between.
const NUMBER_TRIES: usize = 5;

/// An open queue: its store, its subscriptions, who waits for its commits.
#[derive(Debug)]
pub struct Queue {
    pub name: QueueName,
    pub store: Arc<dyn QueueStore>,
    pub waiters: Arc<CommitWaiters>,
    /// No puts and no pushes. Shared with the subscriptions.
    pub held: Arc<AtomicBool>,
    pub subscriptions: RwLock<BTreeMap<String, Arc<Subscription>>>,
    pub puts: PutCounters,
    record: Mutex<(QueueRecord, i32)>,
}

/// Since the broker started.
#[derive(Debug, Default)]
pub struct PutCounters {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    pub refused: AtomicU64,
}

impl Queue {
    #[must_use]
    pub fn new(
        name: QueueName,
        record: QueueRecord,
        version: i32,
        store: Arc<dyn QueueStore>,
        waiters: Arc<CommitWaiters>,
    ) -> Self {
        Self {
            name,
            store,
            waiters,
            held: Arc::new(AtomicBool::new(record.state != QueueState::Enabled)),
            subscriptions: RwLock::default(),
            puts: PutCounters::default(),
            record: Mutex::new((record, version)),
        }
    }

    /// The record and the version of its node.
    #[must_use]
    pub fn record(&self) -> (QueueRecord, i32) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What stands in coordination now.
    pub fn set_record(&self, record: QueueRecord, version: i32) {
        self.held.store(record.state != QueueState::Enabled, Ordering::Release);
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = (record, version);
        self.subscriptions().iter().for_each(|s| s.wake_all());
    }

    #[must_use]
    pub fn partitions(&self) -> i16 {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).0.partitions
    }

    #[must_use]
    pub fn subscriptions(&self) -> Vec<Arc<Subscription>> {
        self.subscriptions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub fn subscription(&self, name: &str) -> Result<Arc<Subscription>, Refusal> {
        let found = self.subscriptions.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        found.ok_or_else(|| Refusal::no_subscriber(self.name.as_str(), name))
    }

    /// Refuses unless puts are taken.
    pub fn check_enabled(&self) -> Result<(), Refusal> {
        if self.held.load(Ordering::Acquire) {
            return Err(Refusal::new(TErrorCode::WRONG_STATE, format!("queue {} is disabled", self.name)));
        }
        Ok(())
    }

    /// Refuses a partition that the queue does not have.
    pub fn check_partition(&self, partition: i16) -> Result<(), Refusal> {
        let partitions = self.partitions();
        if (0..partitions).contains(&partition) {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "queue {} has no partition {partition}: it has {partitions} (0 to {})",
            self.name,
            partitions - 1
        )))
    }

    /// The checkpoint of a subscription that begins at `position`, which is inclusive: what lies before it counts as consumed.
    pub fn checkpoint_at(&self, partition: i16, position: &Position) -> Result<MessageId, Refusal> {
        let last = self.store.committed(partition)?.last.unwrap_or(MessageId::MIN);
        let now = Moment::now().0;
        let from = match position {
            Position::Earliest => return Ok(MessageId::MIN),
            Position::Latest => return Ok(last),
            other => other.resolve(now, None),
        };
        if from.timestamp > now.max(last.timestamp).saturating_add(FUTURE_ALLOWED_MS) {
            return Err(Refusal::invalid(format!("the position {from} lies in the future")));
        }
        // Beyond the last id there is nothing yet: ids above it are wanted, wherever the clock puts them.
        Ok(before(from).min(last))
    }

    /// The running number of the first message behind `id`, so that what expires from here on can be counted. `None` if puts come
    /// so fast that it cannot be told.
    pub async fn number_behind(&self, partition: i16, id: MessageId) -> Result<Option<u64>, Refusal> {
        for _ in 0..NUMBER_TRIES {
            let before = self.store.committed(partition)?;
            let count = self.store.count_from(partition, id.successor(), Arc::from([]), 0).await?;
            if self.store.committed(partition)? == before {
                return Ok(count.exact.then(|| before.next_number.saturating_sub(count.messages)));
            }
        }
        Ok(None)
    }
}

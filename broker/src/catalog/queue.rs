//! One queue of this broker.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::names::QueueName;
use hqueue_protocol::position::Position;
use hqueue_storage::store::QueueStore;
use tokio::sync::{Notify, oneshot};

use super::record::{QueueRecord, QueueState};
use crate::cluster::{Assignment, Lease, Ownership};
use crate::dead_letters::LetterIndex;
use crate::partition::{CommitWaiters, TopicFilter};
use crate::refusal::Refusal;
use crate::subscription::{Subscription, Unread, before};
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
    /// Of a dead-letter queue.
    pub letters: Option<Arc<LetterIndex>>,
    /// `None`: what is unread is not kept any longer than anything else.
    pub unread: Option<Arc<Unread>>,
    /// Which partitions are ours.
    pub ownership: Arc<Ownership>,
    /// Subscribers that are being made or deleted here: what there is of their nodes is not looked at.
    in_change: Mutex<HashSet<String>>,
    /// Subscribers that were deleted here, until their nodes are seen to be gone.
    deleted: Mutex<HashSet<String>>,
    /// Held while subscribers are changed by command: one change at a time.
    pub changes: tokio::sync::Mutex<()>,
    /// Has the queue looked at although nothing has changed in coordination.
    pub nudge: Notify,
    /// Who has which partition; `None`: all are ours, or nobody has been found yet.
    assignment: RwLock<Option<Arc<Assignment>>>,
    record: Mutex<(QueueRecord, i32)>,
}

/// A subscriber that is being changed.
#[derive(Debug)]
pub struct Hidden<'a> {
    queue: &'a Queue,
    subscriber: String,
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        self.queue.in_change.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.subscriber);
        self.queue.nudge.notify_one();
    }
}

/// Since the broker started, and at this moment.
#[derive(Debug, Default)]
pub struct PutCounters {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    pub refused: AtomicU64,
    /// Those that wait for ids.
    waiting: Arc<AtomicU64>,
    /// Told by the last of them when its turn is over.
    last: Mutex<Option<oneshot::Receiver<()>>>,
}

/// A put that waits for ids, until it is dropped.
#[derive(Debug)]
pub struct WaitingPut {
    waiting: Arc<AtomicU64>,
    before: Option<oneshot::Receiver<()>>,
    /// Dropped with the rest: those behind it have their turn.
    _over: oneshot::Sender<()>,
}

impl WaitingPut {
    /// Waits for those before it.
    pub async fn turn(&mut self) {
        if let Some(before) = &mut self.before {
            // An error: it is over.
            let _ = before.await;
            self.before = None;
        }
    }
}

impl Drop for WaitingPut {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl PutCounters {
    /// A put waits: those behind it do, too, in the order in which they call this.
    #[must_use]
    pub fn wait(&self) -> WaitingPut {
        let (over, is_over) = oneshot::channel();
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(is_over);
        self.waiting.fetch_add(1, Ordering::AcqRel);
        WaitingPut { waiting: Arc::clone(&self.waiting), before, _over: over }
    }

    #[must_use]
    pub fn are_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

impl Queue {
    #[must_use]
    pub fn new(
        name: QueueName,
        record: QueueRecord,
        version: i32,
        store: Arc<dyn QueueStore>,
        waiters: Arc<CommitWaiters>,
        lease: Lease,
        letters: Option<Arc<LetterIndex>>,
    ) -> Self {
        Self {
            letters,
            unread: record.retention.keep_unread.then(|| Arc::new(Unread::new(Arc::clone(&store)))),
            ownership: Arc::new(Ownership::new(lease, record.partitions)),
            in_change: Mutex::default(),
            deleted: Mutex::default(),
            changes: tokio::sync::Mutex::default(),
            nudge: Notify::new(),
            assignment: RwLock::default(),
            name,
            store,
            waiters,
            held: Arc::new(AtomicBool::new(record.state != QueueState::Enabled)),
            subscriptions: RwLock::default(),
            puts: PutCounters::default(),
            record: Mutex::new((record, version)),
        }
    }

    /// A subscriber is about to begin behind `id`, or to be moved there without a worker.
    pub fn begins_unread(&self, partition: i16, subscriber: &str, id: MessageId) {
        if let Some(unread) = &self.unread {
            unread.begins(partition, subscriber, id.successor());
        }
    }

    /// A subscriber is deleted: nothing is kept for it.
    pub fn forget_unread(&self, subscriber: &str) {
        if let Some(unread) = &self.unread {
            unread.forget(subscriber);
        }
    }

    /// What a reader of these topics (none: of all) sees.
    #[must_use]
    pub fn filter(&self, topics: Vec<Vec<u8>>) -> TopicFilter {
        TopicFilter::new(topics).among_letters(self.letters.clone())
    }

    /// Who has which partition.
    #[must_use]
    pub fn assignment(&self) -> Option<Arc<Assignment>> {
        self.assignment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_assignment(&self, assignment: Option<Assignment>) {
        *self.assignment.write().unwrap_or_else(PoisonError::into_inner) = assignment.map(Arc::new);
    }

    /// Whatever there is of this subscriber's nodes is not looked at, until the guard is dropped.
    pub fn hide(&self, subscriber: &str) -> Hidden<'_> {
        self.in_change.lock().unwrap_or_else(PoisonError::into_inner).insert(subscriber.to_owned());
        Hidden { queue: self, subscriber: subscriber.to_owned() }
    }

    #[must_use]
    pub fn is_hidden(&self, subscriber: &str) -> bool {
        self.in_change.lock().unwrap_or_else(PoisonError::into_inner).contains(subscriber) || self.is_deleted(subscriber)
    }

    /// The subscriber is deleted: what is still seen of its nodes is old.
    pub fn deleted(&self, subscriber: &str) {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner).insert(subscriber.to_owned());
    }

    #[must_use]
    pub fn is_deleted(&self, subscriber: &str) -> bool {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner).contains(subscriber)
    }

    /// Of those that were deleted these may come again.
    pub fn deleted_are_gone(&self, is_gone: impl Fn(&str) -> bool) {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner).retain(|name| !is_gone(name));
    }

    /// The partitions that are ours now.
    #[must_use]
    pub fn held_partitions(&self) -> Vec<i16> {
        (0..self.partitions()).filter(|p| self.ownership.held(*p).is_some()).collect()
    }

    /// How many partitions were claimed by us, be that still so or not.
    #[must_use]
    pub fn claimed_partitions(&self) -> usize {
        (0..self.partitions()).filter(|p| self.ownership.claim_of(*p).is_some()).count()
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn puts_that_wait_have_their_turn_in_order() {
        let puts = PutCounters::default();
        let [mut first, mut second, mut third] = [puts.wait(), puts.wait(), puts.wait()];
        assert!(third.turn().now_or_never().is_none() && second.turn().now_or_never().is_none());
        first.turn().await;
        assert!(puts.are_waiting());
        drop(first);
        drop(second);
        // It was asked before they were over.
        third.turn().await;
        drop(third);
        assert!(!puts.are_waiting());
        puts.wait().turn().await;
    }
}

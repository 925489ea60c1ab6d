//! All queues of this broker, and the changes to them.
//!
//! A change is written to coordination; [`super::follow`] makes it so, here and at the other brokers.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{CoordinationError, NodeKind, Observed, SharedCoordinator, create_all};
use hqueue_hbase::store::{HBaseStore, TableSettings};
use hqueue_protocol::generated::{TErrorCode, TQueueSpec};
use hqueue_protocol::names::QueueName;
use hqueue_storage::store::MessageStore;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::queue::Queue;
use super::record::{QueueRecord, QueueState};
use super::registrations::Registrations;
use super::waiting::slow;
use super::{follow, hand_over, offline, watchdog};
use crate::cluster::{Cluster, Lease};
use crate::dead_letters::{LetterIndex, Letters, dead_letter_queue, is_dead_letter_queue};
use crate::partition::CommitWaiters;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{CallLog, CheckpointUpdater, SharedDeadLetterBox, TaskScope};

/// So many queues are opened at once.
const CONCURRENT_OPENS: usize = 8;
/// How long a subscription that is deleted may take to end its calls.
pub(super) const DELETE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a command waits until what it wrote is done; more for each partition.
const DONE_PATIENCE: Duration = Duration::from_secs(15);
const PATIENCE_PER_PARTITION: Duration = Duration::from_millis(2);

/// The queues by name. Look-ups never wait for a change.
#[derive(Debug)]
pub struct Catalog {
    pub(crate) coordinator: SharedCoordinator,
    pub(super) store: Arc<dyn MessageStore>,
    /// The same, if it is HBase.
    pub(crate) hbase: Option<Arc<HBaseStore>>,
    pub(super) checkpoints: Arc<CheckpointUpdater>,
    pub(super) scope: TaskScope,
    /// Where the poison of subscriptions goes.
    pub(super) letters: SharedDeadLetterBox,
    /// What the subscriptions note of their calls.
    pub(super) calls: Arc<CallLog>,
    pub(crate) lease: Lease,
    /// `None`: there are no other brokers, and never will be.
    pub(crate) cluster: Option<Cluster>,
    queues: RwLock<HashMap<String, Arc<Queue>>>,
    /// What keeps queues from being as they should, as seen last.
    faults: RwLock<HashMap<String, Refusal>>,
    opens: Semaphore,
    progress: watch::Sender<Progress>,
    pub registrations: Registrations,
}

/// How far following coordination has come.
#[derive(Debug, Default)]
struct Progress {
    list_seen: bool,
    /// Queues that were not looked at once yet.
    first_looks: usize,
}

/// What a catalog works with.
#[derive(Debug)]
pub struct CatalogParts {
    pub coordinator: SharedCoordinator,
    pub store: Arc<dyn MessageStore>,
    /// The same, if it is HBase.
    pub hbase: Option<Arc<HBaseStore>>,
    pub checkpoints: Arc<CheckpointUpdater>,
    pub scope: TaskScope,
    pub cluster: Option<Cluster>,
}

impl Catalog {
    /// Opens every queue that coordination knows, and follows it from then on. A queue that cannot be opened is reported and tried again;
    /// the others serve.
    pub async fn open(parts: CatalogParts) -> Result<Arc<Self>, CoordinationError> {
        create_all(&*parts.coordinator, paths::QUEUES).await?;
        let catalog = Arc::new_cyclic(|catalog| Self {
            letters: Arc::new(Letters::new(Weak::clone(catalog))),
            calls: Arc::default(),
            lease: Lease::new(&*parts.coordinator),
            coordinator: parts.coordinator,
            store: parts.store,
            hbase: parts.hbase,
            checkpoints: parts.checkpoints,
            scope: parts.scope,
            cluster: parts.cluster,
            queues: RwLock::default(),
            faults: RwLock::default(),
            opens: Semaphore::new(CONCURRENT_OPENS),
            progress: watch::Sender::default(),
            registrations: Registrations::default(),
        });
        catalog.scope.spawn(follow::follow_queues(Arc::clone(&catalog)));
        catalog.scope.spawn(watchdog::watch(Arc::clone(&catalog)));
        if catalog.cluster.is_some() {
            catalog.scope.spawn(offline::watch(Arc::clone(&catalog)));
        }
        let mut progress = catalog.progress.subscribe();
        // The sender lives in the catalog.
        let _ = progress.wait_for(|progress| progress.list_seen && progress.first_looks == 0).await;
        Ok(catalog)
    }

    pub(super) fn begin_look(&self) {
        self.progress.send_modify(|progress| progress.first_looks += 1);
    }

    pub(super) fn list_seen(&self) {
        self.progress.send_modify(|progress| progress.list_seen = true);
    }

    /// A queue was looked at, with this outcome.
    pub(super) fn looked(&self, name: &str, fault: Option<&Refusal>, first: bool) {
        let mut faults = self.faults.write().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(fault) => drop(faults.insert(name.to_owned(), fault.clone())),
            None => drop(faults.remove(name)),
        }
        drop(faults);
        self.progress.send_modify(|progress| progress.first_looks -= usize::from(first));
    }

    /// What keeps a queue from being as it should.
    #[must_use]
    pub fn fault(&self, name: &str) -> Option<Refusal> {
        self.faults.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Waits until `done` has something to say; it is asked after every look at any queue.
    pub(super) async fn until<T>(&self, at_most: Duration, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        let mut progress = self.progress.subscribe();
        let wait = async {
            loop {
                progress.mark_unchanged();
                if let Some(found) = done() {
                    return Some(found);
                }
                progress.changed().await.ok()?;
            }
        };
        tokio::time::timeout(at_most, wait).await.ok().flatten()
    }

    pub(super) async fn open_queue(&self, name: QueueName, record: QueueRecord, version: i32) -> Result<Arc<Queue>, Refusal> {
        // Never closed.
        let _permit = self.opens.acquire().await;
        if self.is_shared() {
            // Its turn may have come late: a table must not be made for a queue that is gone.
            let node = self.coordinator.get(&paths::queue(name.as_str())).await?;
            if !node.is_some_and(|node| is_live_as(&node.payload, record.uid)) {
                return Err(Refusal::no_queue(name.as_str()));
            }
        }
        let waiters = Arc::new(CommitWaiters::new(record.partitions));
        let (spec, listener) = (record.store_spec(&name), Arc::clone(&waiters) as _);
        let store = match &self.hbase {
            Some(hbase) => {
                let settings = TableSettings::parse(&record.configuration).map_err(Refusal::invalid)?;
                hbase.open_with(spec, &settings, listener).await?
            }
            None => self.store.open_queue(spec, listener).await?,
        };
        let letters = match is_dead_letter_queue(name.as_str()) {
            false => None,
            // What is in it is read when its partition is ours.
            true if self.is_shared() => Some(Arc::default()),
            true => Some(LetterIndex::load(&store).await?),
        };
        Ok(Arc::new(Queue::new(name, record, version, store, waiters, self.lease.clone(), letters)))
    }

    pub(super) fn insert(&self, queue: Arc<Queue>) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).insert(queue.name.as_str().to_owned(), queue);
    }

    /// Knows the queue no more.
    pub(super) fn take(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// The queue of a name from the wire, if this broker knows it.
    pub fn queue(&self, name: &[u8]) -> Result<Arc<Queue>, Refusal> {
        let text = String::from_utf8_lossy(name);
        let found = self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&*text).cloned();
        found.ok_or_else(|| self.fault(&text).unwrap_or_else(|| Refusal::no_queue(&text)))
    }

    /// The queue is served, or cannot be served now.
    #[must_use]
    pub fn is_known(&self, name: &str) -> bool {
        self.queue(name.as_bytes()).is_ok() || self.fault(name).is_some()
    }

    /// The same as [`queue`](Self::queue); one that this broker has not heard of yet is looked for in coordination before it is refused.
    pub async fn find(&self, name: &[u8]) -> Result<Arc<Queue>, Refusal> {
        let refusal = match self.queue(name) {
            Err(refusal) if refusal.code == TErrorCode::NOT_FOUND && self.cluster.is_some() => refusal,
            other => return other,
        };
        let Ok(queue_name) = QueueName::from_bytes(name) else { return Err(refusal) };
        let node = self.coordinator.get(&paths::queue(queue_name.as_str())).await;
        match node {
            Ok(Some(node)) if is_live(&node.payload) => {
                self.until(DONE_PATIENCE, || self.queue(name).ok()).await.ok_or_else(|| self.queue(name).err().unwrap_or(refusal))
            }
            Ok(_) => Err(refusal),
            Err(error) => Err(error.into()),
        }
    }

    /// Brokers share the store: any of them can have any partition.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.hbase.is_some() && self.cluster.is_some()
    }

    /// All queues, by name.
    #[must_use]
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        let mut queues: Vec<_> = self.queues.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        queues.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        queues
    }

    /// Makes a queue. Returns when every partition has an owner.
    pub async fn create(&self, spec: &TQueueSpec) -> Result<Arc<Queue>, Refusal> {
        let (name, record) = QueueRecord::from_spec(spec)?;
        if self.hbase.is_some() {
            record.check_for_hbase()?;
        }
        self.make_queue(name, record).await
    }

    /// The dead-letter queue of a queue, which is made if there is none.
    pub async fn dead_letter_queue_of(&self, queue: &Queue) -> Result<Arc<Queue>, Refusal> {
        let text = dead_letter_queue(queue.name.as_str());
        match self.find(text.as_bytes()).await {
            Err(refusal) if refusal.code == TErrorCode::NOT_FOUND => {}
            other => return other,
        }
        let parent = self.coordinator.get(&paths::queue(queue.name.as_str())).await?;
        if !parent.is_some_and(|node| is_live(&node.payload)) {
            return Err(Refusal::no_queue(queue.name.as_str()));
        }
        let name = QueueName::from_bytes(text.as_bytes()).map_err(|error| Refusal::invalid(error.to_string()))?;
        match self.make_queue(name, queue.record().0.for_dead_letters()).await {
            Err(refusal) if refusal.code == TErrorCode::EXISTS => self.find(text.as_bytes()).await,
            other => other,
        }
    }

    async fn make_queue(&self, name: QueueName, record: QueueRecord) -> Result<Arc<Queue>, Refusal> {
        let (uid, partitions) = (record.uid, record.partitions);
        let path = paths::queue(name.as_str());
        match self.coordinator.create(&path, &record.to_payload(), NodeKind::Persistent).await {
            Ok(_) => {}
            Err(CoordinationError::NodeExists(_)) => self.fill_empty(&name, &record).await?,
            Err(error) => return Err(error.into()),
        }
        let opened = || {
            let known = self.queue(name.as_str().as_bytes()).ok().filter(|queue| queue.record().0.uid == uid);
            known.map(Ok).or_else(|| self.fault(name.as_str()).map(Err))
        };
        let patience = DONE_PATIENCE + PATIENCE_PER_PARTITION * u32::from(partitions.unsigned_abs());
        let queue = match self.until(patience, opened).await {
            Some(Ok(queue)) => queue,
            // It cannot be served: as if it had never been asked for.
            Some(Err(refusal)) => {
                if self.is_shared() {
                    // Other brokers may have made its table by now.
                    let dropping = QueueRecord { state: QueueState::Dropping, ..record };
                    self.coordinator.set(&path, &dropping.to_payload(), None).await?;
                } else {
                    self.coordinator.delete(&path, None).await?;
                }
                return Err(refusal);
            }
            None => return Err(self.not_open(name.as_str())),
        };
        if self.cluster.is_some() {
            self.until_owned(&queue, patience).await?;
        }
        tracing::info!(queue = %queue.name, partitions = queue.partitions(), "created");
        Ok(queue)
    }

    async fn until_owned(&self, queue: &Queue, patience: Duration) -> Result<(), Refusal> {
        let deadline = tokio::time::Instant::now() + patience;
        let mut owners: Vec<_> =
            (0..queue.partitions()).map(|p| self.coordinator.watch_node(&paths::owner(queue.name.as_str(), p))).collect();
        let is_there = |seen: &Observed<_>| matches!(seen, Observed::Seen(Some(_)));
        let all = async {
            for owner in &mut owners {
                // An error: the session is over, and what was seen stays as it is.
                let _ = owner.wait_for(is_there).await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, all).await;
        let missing: Vec<i16> = (0..).zip(&owners).filter(|(_, seen)| !is_there(&seen.borrow())).map(|(p, _)| p).collect();
        if !missing.is_empty() {
            return Err(self.not_owned(queue, &missing));
        }
        // And we know of it, so that what comes next here finds its way.
        self.until(DONE_PATIENCE, || queue.assignment()).await;
        Ok(())
    }

    /// Enables or disables. Disabling waits for no call: it returns when no new one begins.
    pub async fn set_state(&self, queue: &Queue, state: QueueState) -> Result<(), Refusal> {
        let version = self.write_state(queue, state).await?;
        let done = || (queue.record().1 >= version).then_some(());
        self.until(DONE_PATIENCE, done).await.ok_or_else(|| slow(&format!("queue {} will be {}", queue.name, state.name())))?;
        tracing::info!(queue = %queue.name, "{}", state.name());
        Ok(())
    }

    /// The record that stands in coordination: what another broker has just written may not have been seen here yet.
    async fn written_record(&self, queue: &Queue) -> Result<(QueueRecord, i32), Refusal> {
        let path = paths::queue(queue.name.as_str());
        let node = self.coordinator.get(&path).await?.ok_or_else(|| Refusal::no_queue(queue.name.as_str()))?;
        let record: QueueRecord = serde_json::from_slice(&node.payload)
            .map_err(|error| Refusal::new(TErrorCode::FAILED, format!("its node {path} cannot be read: {error}")))?;
        if record.state == QueueState::Dropping || record.uid != queue.record().0.uid {
            return Err(Refusal::no_queue(queue.name.as_str()));
        }
        Ok((record, node.version))
    }

    async fn write_state(&self, queue: &Queue, state: QueueState) -> Result<i32, Refusal> {
        let path = paths::queue(queue.name.as_str());
        let (mut record, version) = self.written_record(queue).await?;
        record.state = state;
        match self.coordinator.set(&path, &record.to_payload(), Some(version)).await {
            Err(CoordinationError::BadVersion { .. }) => {
                let message = format!("queue {} was changed by somebody else at the same time: try again", queue.name);
                Err(Refusal::new(TErrorCode::BUSY, message))
            }
            Err(CoordinationError::NoNode(_)) => Err(Refusal::no_queue(queue.name.as_str())),
            other => Ok(other?),
        }
    }

    /// Removes a disabled queue with its subscribers, its dead letters and its data. Returns when nothing of it is left.
    pub async fn drop_queue(&self, queue: &Queue) -> Result<(), Refusal> {
        if self.written_record(queue).await?.0.state == QueueState::Enabled {
            return Err(is_enabled(queue));
        }
        // From here on a start completes what is begun, and no dead letters are made any more.
        self.write_state(queue, QueueState::Dropping).await?;
        if let Ok(letters) = self.find(dead_letter_queue(queue.name.as_str()).as_bytes()).await {
            self.write_state(&letters, QueueState::Dropping).await?;
            self.removed(&letters).await?;
        }
        self.removed(queue).await
    }

    /// Waits until nothing is left of a queue that is being dropped.
    async fn removed(&self, queue: &Queue) -> Result<(), Refusal> {
        let name = queue.name.as_str();
        let mut node = self.coordinator.watch_node(&paths::queue(name));
        let uid = queue.record().0.uid;
        let gone = node.wait_for(|seen| match seen {
            Observed::Pending => false,
            Observed::Seen(None) => true,
            Observed::Seen(Some(node)) => {
                serde_json::from_slice::<QueueRecord>(&node.payload).is_ok_and(|record| record.uid != uid)
            }
        });
        let failed = self.until(DONE_PATIENCE * 2, || self.fault(name));
        tokio::select! {
            gone = gone => gone.map(drop).map_err(|_| CoordinationError::Closed.into()),
            failed = failed => Err(failed.unwrap_or_else(|| slow(&format!("queue {name} is still being dropped")))),
        }
    }

    /// Somebody has made a node below a queue that there is not, and with it an empty one for the queue: it is taken.
    async fn fill_empty(&self, name: &QueueName, record: &QueueRecord) -> Result<(), Refusal> {
        let exists = || Refusal::new(TErrorCode::EXISTS, format!("queue {name} exists already"));
        let path = paths::queue(name.as_str());
        let node = self.coordinator.get(&path).await?.filter(|node| node.payload.is_empty()).ok_or_else(exists)?;
        match self.coordinator.set(&path, &record.to_payload(), Some(node.version)).await {
            Err(CoordinationError::BadVersion { .. }) => Err(exists()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Removes all messages that are kept here; subscribers go on with what comes.
    pub async fn truncate(&self, queue: &Queue) -> Result<(), Refusal> {
        if self.is_shared() {
            // Nobody asks for a part of it: one broker does it for all.
            return Err(Refusal::invalid(format!("queue {} is truncated as a whole", queue.name)));
        }
        queue.store.truncate().await?;
        if let Some(letters) = &queue.letters {
            letters.clear();
        }
        queue.subscriptions().iter().for_each(|subscription| subscription.truncated());
        tracing::info!(queue = %queue.name, "truncated");
        Ok(())
    }

    /// Ends all subscriptions' calls, waiting at most so long. Where brokers share the store each partition is handed over as soon as its own
    /// have ended.
    pub async fn stop(&self, at_most: Duration) {
        if self.is_shared() {
            let all = self.queues().into_iter().map(|queue| async move { hand_over::give_all_away(self, &queue).await });
            let given = stream::iter(all).for_each_concurrent(None, |given| given);
            // What is not given away by then goes with the session.
            let _ = tokio::time::timeout(at_most, given).await;
        }
        let stops = self.queues().into_iter().flat_map(|q| q.subscriptions()).map(|s| async move { s.stop(at_most).await });
        stream::iter(stops).for_each_concurrent(None, |stop| stop).await;
    }
}

/// The node of a queue that is not being dropped.
fn is_live(payload: &[u8]) -> bool {
    serde_json::from_slice::<QueueRecord>(payload).is_ok_and(|record| record.state != QueueState::Dropping)
}

/// The same, of the queue with this id.
fn is_live_as(payload: &[u8], uid: Uuid) -> bool {
    serde_json::from_slice::<QueueRecord>(payload).is_ok_and(|record| record.uid == uid && record.state != QueueState::Dropping)
}

fn is_enabled(queue: &Queue) -> Refusal {
    Refusal::new(TErrorCode::WRONG_STATE, format!("queue {} is enabled: disable it first", queue.name))
}

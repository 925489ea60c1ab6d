//! All queues of this broker, and the changes to them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hqueue_coordination::{CoordinationError, NodeKind, SharedCoordinator, create_all, delete_tree};
use hqueue_protocol::generated::{TErrorCode, TQueueSpec};
use hqueue_protocol::names::QueueName;
use hqueue_storage::store::MessageStore;

use super::queue::Queue;
use super::record::{QueueRecord, QueueState};
use super::registrations::Registrations;
use super::subscribers;
use crate::partition::CommitWaiters;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{CheckpointUpdater, TaskScope};

/// So many queues are opened at once at start.
const CONCURRENT_OPENS: usize = 8;
/// How long a subscription that is deleted may take to end its calls.
pub(super) const DELETE_PATIENCE: Duration = Duration::from_secs(10);

/// The queues by name. One change at a time; look-ups never wait for one.
#[derive(Debug)]
pub struct Catalog {
    pub(super) coordinator: SharedCoordinator,
    store: Arc<dyn MessageStore>,
    pub(super) checkpoints: Arc<CheckpointUpdater>,
    pub(super) scope: TaskScope,
    queues: RwLock<HashMap<String, Arc<Queue>>>,
    pub(super) changes: tokio::sync::Mutex<()>,
    pub registrations: Registrations,
}

impl Catalog {
    /// Opens every queue that coordination knows. A queue that cannot be opened is reported and left out; the others serve.
    pub async fn open(
        coordinator: SharedCoordinator,
        store: Arc<dyn MessageStore>,
        checkpoints: Arc<CheckpointUpdater>,
        scope: TaskScope,
    ) -> Result<Self, CoordinationError> {
        create_all(&*coordinator, paths::QUEUES).await?;
        let names = coordinator.children(paths::QUEUES).await?.unwrap_or_default();
        let catalog = Self {
            coordinator,
            store,
            checkpoints,
            scope,
            queues: RwLock::default(),
            changes: tokio::sync::Mutex::default(),
            registrations: Registrations::default(),
        };
        let mut opening = stream::iter(names).map(|name| catalog.open_known(name)).buffer_unordered(CONCURRENT_OPENS);
        while opening.next().await.is_some() {}
        drop(opening);
        Ok(catalog)
    }

    async fn open_known(&self, name: String) {
        if let Err(error) = self.try_open_known(&name).await {
            tracing::error!(queue = name, "the queue is not served: {error}");
        }
    }

    async fn try_open_known(&self, name: &str) -> Result<(), Refusal> {
        let queue_name = QueueName::from_bytes(name.as_bytes()).map_err(|e| Refusal::invalid(e.to_string()))?;
        let Some(node) = self.coordinator.get(&paths::queue(name)).await? else { return Ok(()) };
        let record: QueueRecord = serde_json::from_slice(&node.payload).map_err(|error| {
            Refusal::new(TErrorCode::FAILED, format!("its node {} cannot be read: {error}", paths::queue(name)))
        })?;
        if record.state == QueueState::Dropping {
            tracing::info!(queue = name, "completing its removal");
            return self.remove_data(name, &record).await;
        }
        let queue = self.open_queue(queue_name, record, node.version).await?;
        subscribers::load(self, &queue).await?;
        self.insert(queue);
        Ok(())
    }

    async fn open_queue(&self, name: QueueName, record: QueueRecord, version: i32) -> Result<Arc<Queue>, Refusal> {
        let waiters = Arc::new(CommitWaiters::new(record.partitions));
        let store = self.store.open_queue(record.store_spec(&name), Arc::clone(&waiters) as _).await?;
        Ok(Arc::new(Queue::new(name, record, version, store, waiters)))
    }

    fn insert(&self, queue: Arc<Queue>) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).insert(queue.name.as_str().to_owned(), queue);
    }

    /// The queue of a name from the wire.
    pub fn queue(&self, name: &[u8]) -> Result<Arc<Queue>, Refusal> {
        let text = String::from_utf8_lossy(name);
        let found = self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&*text).cloned();
        found.ok_or_else(|| Refusal::no_queue(&text))
    }

    /// All queues, by name.
    #[must_use]
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        let mut queues: Vec<_> = self.queues.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        queues.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        queues
    }

    pub async fn create(&self, spec: &TQueueSpec) -> Result<Arc<Queue>, Refusal> {
        let (name, record) = QueueRecord::from_spec(spec)?;
        let _one = self.changes.lock().await;
        let path = paths::queue(name.as_str());
        match self.coordinator.create(&path, &record.to_payload(), NodeKind::Persistent).await {
            Ok(_) => {}
            Err(CoordinationError::NodeExists(_)) => {
                return Err(Refusal::new(TErrorCode::EXISTS, format!("queue {name} exists already")));
            }
            Err(error) => return Err(error.into()),
        }
        let opened = self.open_queue(name, record, 0).await;
        match opened {
            Ok(queue) => {
                self.insert(Arc::clone(&queue));
                tracing::info!(queue = %queue.name, partitions = queue.partitions(), "created");
                Ok(queue)
            }
            Err(error) => {
                self.coordinator.delete(&path, None).await?;
                Err(error)
            }
        }
    }

    /// Enables or disables. Disabling waits for no call: it returns when no new one begins.
    pub async fn set_state(&self, name: &[u8], state: QueueState) -> Result<(), Refusal> {
        let _one = self.changes.lock().await;
        let queue = self.queue(name)?;
        let (mut record, version) = queue.record();
        record.state = state;
        let version = self.coordinator.set(&paths::queue(queue.name.as_str()), &record.to_payload(), Some(version)).await?;
        queue.set_record(record, version);
        tracing::info!(queue = %queue.name, "{}", state.name());
        Ok(())
    }

    /// Removes a disabled queue with its subscribers and its data.
    pub async fn drop_queue(&self, name: &[u8]) -> Result<(), Refusal> {
        let _one = self.changes.lock().await;
        let queue = self.queue(name)?;
        let (mut record, version) = queue.record();
        if record.state == QueueState::Enabled {
            return Err(Refusal::new(TErrorCode::WRONG_STATE, format!("queue {} is enabled: disable it first", queue.name)));
        }
        // From here on a start completes what is begun.
        record.state = QueueState::Dropping;
        self.coordinator.set(&paths::queue(queue.name.as_str()), &record.to_payload(), Some(version)).await?;
        self.queues.write().unwrap_or_else(PoisonError::into_inner).remove(queue.name.as_str());
        for subscription in queue.subscriptions() {
            subscription.stop(DELETE_PATIENCE).await;
            subscription.forget();
        }
        self.registrations.forget(&queue, None);
        self.remove_data(queue.name.as_str(), &record).await?;
        tracing::info!(queue = %queue.name, "dropped");
        Ok(())
    }

    async fn remove_data(&self, name: &str, record: &QueueRecord) -> Result<(), Refusal> {
        self.store.remove_queue(name, record.uid).await?;
        delete_tree(&*self.coordinator, &paths::queue(name)).await?;
        Ok(())
    }

    /// Removes all messages; subscribers go on with what comes.
    pub async fn truncate(&self, name: &[u8]) -> Result<(), Refusal> {
        let _one = self.changes.lock().await;
        let queue = self.queue(name)?;
        queue.store.truncate().await?;
        queue.subscriptions().iter().for_each(|subscription| subscription.truncated());
        tracing::info!(queue = %queue.name, "truncated");
        Ok(())
    }

    /// Ends all subscriptions' calls, waiting at most so long.
    pub async fn stop(&self, at_most: Duration) {
        let stops = self.queues().into_iter().flat_map(|q| q.subscriptions()).map(|s| async move { s.stop(at_most).await });
        stream::iter(stops).for_each_concurrent(None, |stop| stop).await;
    }
}

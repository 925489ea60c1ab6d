//! Steering a subscription: pause, resume, seek.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue_coordination::CoordinationError;
use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::names::SubscriberName;
use hqueue_protocol::position::Position;
use hqueue_protocol::rpc::{ResumeSubscriber, ResumeSubscriberArgs, SeekSubscriber, SeekSubscriberArgs};

use super::catalog::Catalog;
use super::elsewhere::{Route, fixed, text};
use super::queue::Queue;
use super::subscribers;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::{Checkpoint, SubscriptionRecord, SubscriptionWorker};

/// How long it may take until a pause is seen here.
const SEEN_PATIENCE: Duration = Duration::from_secs(5);
/// For another broker's part.
const PEER_PATIENCE: Duration = Duration::from_secs(10);
/// So many nodes are read at once.
const CONCURRENT_READS: usize = 32;

impl Catalog {
    /// Pauses or resumes: written to the options, which every broker sees. Resuming also has what is in the way tried again.
    pub async fn set_paused(&self, queue: &Arc<Queue>, name: &str, paused: bool) -> Result<(), Refusal> {
        let _one = queue.changes.lock().await;
        let _alone = self.lock_subscriber(queue, name).await?;
        let mut record = self.record_of(queue, name).await?;
        if record.paused != paused {
            record.paused = paused;
            self.keep_record(queue, name, &record).await?;
        }
        let seen = || queue.subscription(name).map_or(true, |s| s.record().paused == paused).then_some(());
        self.until(SEEN_PATIENCE, seen).await;
        if paused {
            self.checkpoints.flush().await;
        } else {
            self.resume_here(queue, name);
            let args = ResumeSubscriberArgs {
                queue_name: queue.name.as_str().as_bytes().to_vec(),
                subscriber: name.as_bytes().to_vec(),
            };
            for (_, result) in self.at_others::<ResumeSubscriber>(&args, PEER_PATIENCE).await {
                result?;
            }
        }
        tracing::info!(queue = %queue.name, subscriber = name, "{}", if paused { "paused" } else { "resumed" });
        Ok(())
    }

    /// Our own part of a resume.
    pub fn resume_here(&self, queue: &Queue, name: &str) {
        if let Ok(subscription) = queue.subscription(name) {
            subscription.resume();
        }
    }

    /// Refuses a name that no subscriber of the queue has.
    pub async fn check_subscriber(&self, queue: &Queue, name: &str) -> Result<(), Refusal> {
        self.record_of(queue, name).await.map(drop)
    }

    /// What coordination has of the subscriber; one that was registered by hand has the defaults.
    pub(super) async fn record_of(&self, queue: &Queue, name: &str) -> Result<SubscriptionRecord, Refusal> {
        let no_subscriber = || Refusal::no_subscriber(queue.name.as_str(), name);
        SubscriberName::from_bytes(name.as_bytes()).map_err(|_| no_subscriber())?;
        self.written_subscription(queue, name).await?.ok_or_else(no_subscriber)
    }

    /// The same; `None` if there is nothing of the name, whatever this broker still knows of it.
    pub(super) async fn written_subscription(&self, queue: &Queue, name: &str) -> Result<Option<SubscriptionRecord>, Refusal> {
        let path = paths::subscriber(queue.name.as_str(), name);
        if let Some(node) = self.coordinator.get(&path).await? {
            return serde_json::from_slice(&node.payload)
                .map(Some)
                .map_err(|error| Refusal::new(TErrorCode::FAILED, format!("its node {path} cannot be read: {error}")));
        }
        let partitions: Vec<i16> = stream::iter(0..queue.partitions())
            .map(|p| async move {
                let path = paths::checkpoint(queue.name.as_str(), p, name);
                Ok::<_, Refusal>(self.coordinator.get(&path).await?.is_some().then_some(p))
            })
            .buffered(CONCURRENT_READS)
            .try_filter_map(|found| async move { Ok(found) })
            .try_collect()
            .await?;
        if partitions.is_empty() {
            return Ok(None);
        }
        // It reads where it has a place, and no more when it gets an options node.
        let all = partitions.len() == usize::from(queue.partitions().unsigned_abs());
        Ok(Some(SubscriptionRecord { partitions: if all { Vec::new() } else { partitions }, ..Default::default() }))
    }

    /// Moves checkpoints. All of the partitions have to be there, or none is moved.
    pub async fn seek(&self, queue: &Arc<Queue>, name: &str, position: &str, partitions: &[i16]) -> Result<(), Refusal> {
        let position = fixed(subscribers::parse_position(Some(position))?);
        let named = subscribers::check_partitions(queue, partitions)?;
        let record = self.record_of(queue, name).await?;
        let wanted = if named.is_empty() { subscribers::all_or(queue, &record.partitions) } else { named };
        if let Some(p) = wanted.iter().find(|p| !record.partitions.is_empty() && !record.partitions.contains(p)) {
            return Err(Refusal::invalid(format!("subscriber {name} does not read partition {p}")));
        }
        for &partition in &wanted {
            if let Route::Offline(reason) = self.route(queue, partition) {
                return Err(Refusal::new(TErrorCode::OFFLINE, format!("nothing is moved: {reason}")));
            }
        }
        self.seek_here(queue, name, &position, &wanted).await?;
        if self.cluster.is_some() {
            let args = SeekSubscriberArgs {
                queue_name: queue.name.as_str().as_bytes().to_vec(),
                subscriber: name.as_bytes().to_vec(),
                position: text(position),
                partitions: wanted,
            };
            for (_, result) in self.at_others::<SeekSubscriber>(&args, PEER_PATIENCE).await {
                result?;
            }
        }
        tracing::info!(queue = %queue.name, subscriber = name, position = text(position), "moved by command");
        Ok(())
    }

    /// Our own part of a seek: of these partitions those that we hold.
    pub async fn seek_here(
        &self,
        queue: &Arc<Queue>,
        name: &str,
        position: &Position,
        partitions: &[i16],
    ) -> Result<(), Refusal> {
        let ours = partitions.iter().copied().filter(|p| queue.ownership.held(*p).is_some());
        // Everything is found before anything is moved.
        let mut moves = Vec::new();
        for partition in ours {
            let id = queue.checkpoint_at(partition, position)?;
            let number = queue.number_behind(partition, id).await?;
            moves.push((partition, Checkpoint { number, ..Checkpoint::at(id) }));
        }
        for (partition, checkpoint) in moves {
            match queue.subscription(name).ok().and_then(|s| s.worker(partition)) {
                Some(worker) => {
                    worker.seek(checkpoint);
                    self.seek_heir(queue, name, &worker, checkpoint).await;
                }
                // Its checkpoint could not be read, or is not there yet: the new one is.
                None => self.replace_checkpoint(queue, name, partition, checkpoint).await?,
            }
        }
        self.checkpoints.flush().await;
        Ok(())
    }

    /// If the worker has been replaced at this moment, because its subscription got other options, its heir is moved.
    async fn seek_heir(&self, queue: &Queue, name: &str, worker: &SubscriptionWorker, checkpoint: Checkpoint) {
        if worker.is_closed() {
            let heir = || queue.subscription(name).ok().and_then(|s| s.worker(worker.partition())).filter(|w| !w.is_closed());
            if let Some(heir) = self.until(SEEN_PATIENCE, heir).await {
                heir.seek(checkpoint);
            }
        }
    }

    async fn replace_checkpoint(&self, queue: &Queue, name: &str, partition: i16, checkpoint: Checkpoint) -> Result<(), Refusal> {
        let path = paths::checkpoint(queue.name.as_str(), partition, name);
        queue.begins_unread(partition, name, checkpoint.id);
        match self.coordinator.set(&path, &checkpoint.to_payload(), None).await {
            Err(CoordinationError::NoNode(_)) => {
                subscribers::write_checkpoint(self, queue, name, partition, checkpoint.id).await.map(drop)
            }
            other => Ok(other.map(drop)?),
        }
    }
}

//! What a pull consumer needs of a subscriber: where its position is kept, and moving it.

use std::sync::Arc;
use std::time::Duration;

use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::names::SubscriberName;
use hqueue_protocol::position::Position;

use super::catalog::Catalog;
use super::queue::Queue;
use crate::paths;
use crate::refusal::Refusal;
use crate::subscription::SubscriptionWorker;

/// How long a subscriber that was made a moment ago, perhaps at another broker, may take to be served here.
const MADE_PATIENCE: Duration = Duration::from_secs(3);

/// So often a checkpoint is tried to be stored before that is given up for the moment.
const STORE_TRIES: usize = 3;

impl Catalog {
    /// Who keeps a subscriber's position in a partition of ours.
    pub async fn keeper(&self, queue: &Queue, subscriber: &[u8], partition: i16) -> Result<Arc<SubscriptionWorker>, Refusal> {
        let name = String::from_utf8_lossy(subscriber);
        let find = || queue.subscription(&name).ok().and_then(|subscription| subscription.worker(partition));
        if let Some(worker) = find() {
            return Ok(worker);
        }
        if SubscriberName::from_bytes(subscriber).is_err() {
            return Err(Refusal::no_subscriber(queue.name.as_str(), &name));
        }
        if self.coordinator.get(&paths::checkpoint(queue.name.as_str(), partition, &name)).await?.is_none() {
            queue.subscription(&name)?;
            let message = format!(
                "subscriber {name} of queue {} has no position in partition {partition}: it does not read it",
                queue.name
            );
            return Err(Refusal::not_found(message));
        }
        self.until(MADE_PATIENCE, find).await.ok_or_else(|| {
            let message = format!(
                "the checkpoint of subscriber {name} in partition {partition} of queue {} is there, but cannot be used now: see the status",
                queue.name
            );
            Refusal::new(TErrorCode::OFFLINE, message)
        })
    }

    /// Everything below `next` is done, says a subscriber. Returns when that is stored.
    pub async fn commit(&self, queue: &Queue, subscriber: &[u8], partition: i16, next: MessageId) -> Result<(), Refusal> {
        let id = queue.checkpoint_at(partition, &Position::Id(next))?;
        for _ in 0..STORE_TRIES {
            let keeper = self.keeper(queue, subscriber, partition).await?;
            let commit = keeper.commit(id);
            if keeper.is_stored(commit) {
                return Ok(());
            }
            keeper.note_number(commit, queue.number_behind(partition, commit.id).await?);
            self.checkpoints.write_now(&keeper).await;
            if keeper.is_stored(commit) {
                return Ok(());
            }
        }
        let message =
            format!("the commit in partition {partition} of queue {} could not be stored: see the broker's log", queue.name);
        Err(Refusal::new(TErrorCode::BUSY, message))
    }
}

//! Keeping letters, and removing them.

use std::sync::{Arc, Weak};

use hqueue_coordination::BoxFuture;
use hqueue_protocol::generated::{TErrorCode, TMessage};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::rpc::{AddDeadLetter, AddDeadLetterArgs};
use hqueue_protocol::stored::PutBatch;
use hqueue_storage::store::StoreError;

use super::index::LetterIndex;
use super::story::{self, Content, Key, dead_letter_queue, is_dead_letter_queue};
use crate::catalog::{Catalog, Queue, Route, of_peer};
use crate::refusal::Refusal;
use crate::subscription::{DeadLetter, DeadLetterBox};

/// The box of a broker: letters go to the dead-letter queue of their queue, wherever that is.
#[derive(Debug)]
pub struct Letters {
    catalog: Weak<Catalog>,
}

impl Letters {
    #[must_use]
    pub const fn new(catalog: Weak<Catalog>) -> Self {
        Self { catalog }
    }
}

impl DeadLetterBox for Letters {
    fn takes(&self, queue: &str) -> bool {
        !is_dead_letter_queue(queue)
    }

    fn keep(&self, letter: DeadLetter) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let Some(catalog) = self.catalog.upgrade() else { return Err("the broker is stopping".to_owned()) };
            let message = story::letter(&letter)?;
            catalog.keep_letter(&letter.queue, message).await.map_err(|refusal| refusal.message)
        })
    }
}

impl Catalog {
    /// Keeps a letter in the dead-letter queue of `queue`, which is made if there is none.
    async fn keep_letter(&self, queue: &str, letter: TMessage) -> Result<(), Refusal> {
        let of = self.queue(queue.as_bytes())?;
        let name = dead_letter_queue(queue);
        let letters = self.dead_letter_queue_of(&of).await?;
        match self.route(&letters, 0) {
            Route::Here => self.keep_letter_here(&letters, letter).await,
            Route::Offline(reason) => Err(Refusal::new(TErrorCode::OFFLINE, reason)),
            Route::At(address) => {
                let args = AddDeadLetterArgs { queue_name: name.into_bytes(), letter };
                let peer = self.peer(&address)?;
                peer.call_owner::<AddDeadLetter>(&args).await.map_err(|error| of_peer(&address, error))
            }
        }
    }

    /// Keeps a letter in a dead-letter queue that is ours, unless it is there already.
    pub async fn keep_letter_here(&self, queue: &Arc<Queue>, letter: TMessage) -> Result<(), Refusal> {
        let index = index_of(queue)?;
        let Content::Letter(key) = story::content(&letter) else {
            return Err(Refusal::invalid("the message is no dead letter: it does not say where it was"));
        };
        let _one = index.writing.lock().await;
        if index.contains(&key) {
            return Ok(());
        }
        let id = append(queue, &[letter]).await?.into_iter().next();
        if let Some(id) = id {
            index.add(key, id);
        }
        Ok(())
    }

    /// Removes letters of a dead-letter queue that is ours. Durable when it returns.
    pub(super) async fn remove_letters(&self, queue: &Arc<Queue>, keys: &[Key]) -> Result<(), Refusal> {
        let index = index_of(queue)?;
        let _one = index.writing.lock().await;
        let known: Vec<(&Key, MessageId)> = keys.iter().filter_map(|key| index.id_of(key).map(|id| (key, id))).collect();
        if known.is_empty() {
            return Ok(());
        }
        let removals: Vec<TMessage> = known.iter().map(|(key, id)| story::removal(&key.subscriber, *id)).collect();
        let written = append(queue, &removals).await?;
        index.hide(written);
        index.removed(keys);
        Ok(())
    }
}

pub(super) fn index_of(queue: &Queue) -> Result<&Arc<LetterIndex>, Refusal> {
    queue.letters.as_ref().ok_or_else(|| Refusal::invalid(format!("queue {} keeps no dead letters", queue.name)))
}

/// Puts messages into the one partition of a dead-letter queue; returns their ids when they are durable.
async fn append(queue: &Queue, messages: &[TMessage]) -> Result<Vec<MessageId>, Refusal> {
    let Some(stay) = queue.ownership.enter(0) else {
        return Err(Refusal::new(TErrorCode::OFFLINE, format!("queue {} is not held by this broker", queue.name)));
    };
    let mut batch = PutBatch::with_capacity(messages.len(), 0);
    for message in messages {
        story::encode(message, &mut batch).map_err(Refusal::invalid)?;
    }
    if let Some(ready) = queue.store.ready(0, messages.len()) {
        ready.await?;
    }
    let append = queue.store.append(0, batch)?;
    append.done.await.unwrap_or(Err(StoreError::Closed))?;
    if !stay.still() {
        return Err(Refusal::new(TErrorCode::OFFLINE, format!("queue {} went offline during the put", queue.name)));
    }
    Ok(append.ids.iter().collect())
}

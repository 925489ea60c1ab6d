//! The dead letters of one message.

use std::sync::Arc;

use hqueue_protocol::generated::{TErrorCode, TKeptLetter, TMessageID};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::rpc::{FindDeadLetters, FindDeadLettersArgs};

use super::keep::index_of;
use super::story::{self, dead_letter_queue};
use crate::catalog::{Catalog, Queue, Route, of_peer};
use crate::partition::{MessageScanner, TopicFilter};
use crate::refusal::Refusal;

impl Catalog {
    /// The dead letters that there are of one message of `queue`, wherever they are.
    pub async fn letters_of_message(&self, queue: &Queue, partition: i16, id: MessageId) -> Result<Vec<TKeptLetter>, Refusal> {
        let name = dead_letter_queue(queue.name.as_str());
        let letters = match self.find(name.as_bytes()).await {
            Ok(letters) => letters,
            Err(refusal) if refusal.code == TErrorCode::NOT_FOUND => return Ok(Vec::new()),
            Err(refusal) => return Err(refusal),
        };
        match self.route(&letters, 0) {
            Route::Here => self.letters_of_message_here(&letters, partition, id).await,
            Route::Offline(reason) => Err(Refusal::new(TErrorCode::OFFLINE, reason)),
            Route::At(address) => {
                let id = TMessageID { timestamp: Some(id.timestamp), sequence_i_d: Some(id.sequence) };
                let args = FindDeadLettersArgs { queue_name: name.into_bytes(), partition, id };
                self.peer(&address)?.call_owner::<FindDeadLetters>(&args).await.map_err(|error| of_peer(&address, error))
            }
        }
    }

    /// The same of a dead-letter queue that is ours.
    pub async fn letters_of_message_here(
        &self,
        letters: &Arc<Queue>,
        partition: i16,
        id: MessageId,
    ) -> Result<Vec<TKeptLetter>, Refusal> {
        let mut found = Vec::new();
        for (subscriber, at) in index_of(letters)?.of_message(partition, id) {
            let store = Arc::clone(&letters.store);
            let mut scanner = MessageScanner::new(store, 0, TopicFilter::default(), at, at.successor());
            scanner.fill_cold(1, 1).await?;
            // One that has expired is known for a while still.
            let taken = scanner.take(1, usize::MAX)?;
            let Some(Ok(message)) = taken.first().and_then(|slice| slice.messages().next()) else { continue };
            let (attempts, error) = story::decode(&message).map(|letter| story::attempts_and_error(&letter)).unwrap_or_default();
            found.push(TKeptLetter {
                subscriber: Some(subscriber),
                id: Some(TMessageID { timestamp: Some(at.timestamp), sequence_i_d: Some(at.sequence) }),
                attempts: Some(i32::try_from(attempts).unwrap_or(i32::MAX)),
                error: Some(error),
            });
        }
        Ok(found)
    }
}

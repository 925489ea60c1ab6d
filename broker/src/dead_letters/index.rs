//! What is known of the letters in a dead-letter queue: which there are, and which are removed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredMessage;
use hqueue_storage::store::{QueueStore, StoreError};

use super::story::{self, Content, Key};
use crate::partition::{MessageScanner, TopicFilter};

/// So much is read at once when the index is made.
const READ_MESSAGES: u32 = 10_000;
const READ_BYTES: usize = 4 << 20;

/// Kept in memory, and made from the queue's messages when it is opened.
#[derive(Debug, Default)]
pub struct LetterIndex {
    known: Mutex<Known>,
    /// Held while letters are written: one at a time, so that none is written twice.
    pub(super) writing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Known {
    /// Letters that are there, with their ids in the dead-letter queue.
    letters: HashMap<Key, MessageId>,
    /// Removed letters and the messages that say so: readers do not see them.
    hidden: HashSet<MessageId>,
    /// Below it nothing is known, since nothing is there.
    forgotten_to: MessageId,
}

impl Default for Known {
    fn default() -> Self {
        Self { letters: HashMap::new(), hidden: HashSet::new(), forgotten_to: MessageId::MIN }
    }
}

impl LetterIndex {
    /// Reads the whole queue.
    pub async fn load(store: &Arc<dyn QueueStore>) -> Result<Arc<Self>, StoreError> {
        let index = Self::default();
        index.reload(store).await?;
        Ok(Arc::new(index))
    }

    /// Reads the whole queue again: another broker may have had it meanwhile.
    pub async fn reload(&self, store: &Arc<dyn QueueStore>) -> Result<(), StoreError> {
        let mut known = Known::default();
        let filter = TopicFilter::default();
        let mut scanner = MessageScanner::new(Arc::clone(store), 0, filter, MessageId::MIN, MessageId::MAX);
        loop {
            scanner.fill_cold(READ_MESSAGES, READ_BYTES).await?;
            let slices = scanner.take(READ_MESSAGES, READ_BYTES)?;
            if slices.is_empty() {
                *self.lock() = known;
                return Ok(());
            }
            for message in slices.iter().flat_map(|slice| slice.messages()).flatten() {
                known.note(&message);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readers do not see this message.
    #[must_use]
    pub fn hides(&self, message: &StoredMessage<'_>) -> bool {
        // A removal may be seen before it is noted; its value is empty, letters of empty messages are rare.
        self.lock().hidden.contains(&message.id)
            || (message.value.is_empty()
                && story::decode(message).is_ok_and(|m| matches!(story::content(&m), Content::Removal(_))))
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.lock().letters.contains_key(key)
    }

    pub(super) fn id_of(&self, key: &Key) -> Option<MessageId> {
        self.lock().letters.get(key).copied()
    }

    /// Whose letters there are of one message, and their ids, in the order of the subscribers' names.
    pub(super) fn of_message(&self, partition: i16, id: MessageId) -> Vec<(Vec<u8>, MessageId)> {
        let known = self.lock();
        let its = known.letters.iter().filter(|(key, _)| key.partition == partition && key.id == id);
        let mut its: Vec<_> = its.map(|(key, letter)| (key.subscriber.clone(), *letter)).collect();
        drop(known);
        its.sort_unstable();
        its
    }

    pub(super) fn add(&self, key: Key, id: MessageId) {
        self.lock().letters.insert(key, id);
    }

    pub(super) fn hide(&self, ids: impl IntoIterator<Item = MessageId>) {
        self.lock().hidden.extend(ids);
    }

    pub(super) fn removed(&self, keys: &[Key]) {
        let mut known = self.lock();
        for key in keys {
            if let Some(id) = known.letters.remove(key) {
                known.hidden.insert(id);
            }
        }
    }

    /// Lets go of what the store has no more: letters that have expired, and what was said of them.
    pub async fn forget_gone(&self, store: &Arc<dyn QueueStore>) -> Result<(), StoreError> {
        if self.lock().is_empty() {
            return Ok(());
        }
        // In this order: what comes in between lies above.
        let end = store.committed(0)?.last.map_or(MessageId::MIN, MessageId::successor);
        let first = store.statistics(0).await?.first.unwrap_or(end);
        self.lock().forget_below(first);
        Ok(())
    }

    /// Everything is gone.
    pub fn clear(&self) {
        *self.lock() = Known::default();
    }
}

impl Known {
    fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.hidden.is_empty()
    }

    fn forget_below(&mut self, first: MessageId) {
        if first <= self.forgotten_to {
            return;
        }
        self.forgotten_to = first;
        self.letters.retain(|_, id| *id >= first);
        self.hidden.retain(|id| *id >= first);
        self.letters.shrink_to_fit();
        self.hidden.shrink_to_fit();
    }

    fn note(&mut self, message: &StoredMessage<'_>) {
        let Ok(decoded) = story::decode(message) else { return };
        match story::content(&decoded) {
            Content::Letter(key) => drop(self.letters.insert(key, message.id)),
            Content::Removal(letter) => {
                self.hidden.extend([message.id, letter]);
                self.letters.retain(|_, id| *id != letter);
            }
            Content::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hqueue_protocol::stored::PutBatch;
    use hqueue_storage::memory::MemoryStore;
    use hqueue_storage::store::{CommitListener, MessageStore, QueueSpec};

    use super::*;

    #[derive(Debug)]
    struct Nobody;

    impl CommitListener for Nobody {
        fn committed(&self, _: i16) {}
    }

    fn key(n: i64) -> Key {
        Key { subscriber: b"s".to_vec(), partition: 0, id: MessageId::new(n, 0) }
    }

    async fn put(store: &Arc<dyn QueueStore>) -> MessageId {
        let mut batch = PutBatch::default();
        batch.push(b"s", b"v", &[]);
        let append = store.append(0, batch).unwrap();
        append.done.await.unwrap().unwrap();
        append.ids.iter().next().unwrap()
    }

    #[tokio::test]
    async fn what_has_expired_is_forgotten() {
        let ttl = Duration::from_millis(300);
        let spec = QueueSpec {
            name: "q.dlq".to_owned(),
            uid: uuid::Uuid::from_u128(1),
            partitions: 1,
            ttl_ms: i64::try_from(ttl.as_millis()).unwrap(),
            limit: None,
        };
        let memory = MemoryStore::default();
        let store = memory.open_queue(spec, Arc::new(Nobody)).await.unwrap();
        let index = LetterIndex::default();
        index.forget_gone(&store).await.unwrap();
        index.add(key(1), put(&store).await);
        index.add(key(2), put(&store).await);
        index.hide([put(&store).await]);
        index.removed(&[key(2)]);
        index.forget_gone(&store).await.unwrap();
        assert_eq!((index.contains(&key(1)), index.lock().hidden.len()), (true, 2), "all of it is there still");
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !index.lock().is_empty() {
            assert!(std::time::Instant::now() < deadline, "it is never forgotten");
            index.forget_gone(&store).await.unwrap();
            tokio::task::yield_now().await;
        }
        index.add(key(1), put(&store).await);
        index.forget_gone(&store).await.unwrap();
        assert!(index.contains(&key(1)), "a new one is not forgotten");
    }
}

//! Looking for one message in the store.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::StoredSlice;
use hqueue_storage::store::{Block, Cursor, Missing, MissingReason, QueueStore, StoreError, TailRead};

/// What was found of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The message alone.
    Stored(StoredSlice),
    /// There is none of this id, and was none. `next`: the first one behind it.
    Never { next: Option<MessageId> },
    /// Messages are missing where it would be. Not `certain`: it may not have been one of them.
    Gone { why: MissingReason, certain: bool },
}

/// Looks for the message of this id.
pub(super) async fn look_up(store: &dyn QueueStore, partition: i16, id: MessageId) -> Result<Found, StoreError> {
    if store.committed(partition)?.last.is_none_or(|last| id > last) {
        return Ok(Found::Never { next: None });
    }
    if let TailRead::Blocks(blocks) = store.read_tail(partition, id, 1)?
        && let Some(block) = blocks.first()
    {
        return in_block(block, id, partition);
    }
    let (missing, block) = read_on(store, partition, id).await?;
    if let Some(block) = block.filter(|block| block.first <= id || missing.is_empty()) {
        return in_block(&block, id, partition);
    }
    let Some(first) = missing.first() else { return Ok(Found::Never { next: None }) };
    // Where what is missing can still be counted, it is one less behind the message if that was there.
    let (behind, _) = read_on(store, partition, id.successor()).await?;
    let counted = |all: &[Missing], why| all.iter().filter(|m| m.why == why).map(|m| m.messages).sum::<u64>();
    let one_less = missing.iter().find(|m| counted(&missing, m.why).checked_sub(counted(&behind, m.why)) == Some(1));
    Ok(Found::Gone { why: one_less.unwrap_or(first).why, certain: one_less.is_some() })
}

fn in_block(block: &Block, id: MessageId, partition: i16) -> Result<Found, StoreError> {
    for part in block.parts.iter().filter(|part| part.last >= id) {
        let mut next = None;
        let found = part.runs(|message| {
            if message.id > id {
                next.get_or_insert(message.id);
            }
            message.id == id
        });
        let found = found.map_err(|error| StoreError::Damaged {
            path: format!("partition {partition}").into(),
            reason: format!("messages from {} on cannot be read: {error}", part.first),
        })?;
        if let Some(message) = found.into_iter().next() {
            return Ok(Found::Stored(message));
        }
        if next.is_some() {
            return Ok(Found::Never { next });
        }
    }
    Ok(Found::Never { next: None })
}

/// What is missing from an id on, up to the first block.
async fn read_on(
    store: &dyn QueueStore,
    partition: i16,
    from: MessageId,
) -> Result<(Vec<Missing>, Option<Arc<Block>>), StoreError> {
    let (mut cursor, mut missing) = (Cursor::at(from), Vec::new());
    loop {
        let read = store.read(partition, cursor, 1).await?;
        missing.extend(read.missing);
        let block = read.blocks.into_iter().next();
        if block.is_some() || read.at_end {
            return Ok((missing, block));
        }
        cursor = read.next;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use hqueue_protocol::stored::PutBatch;
    use hqueue_storage::clock::Clock;
    use hqueue_storage::memory::MemoryStore;
    use hqueue_storage::store::{CommitListener, MessageStore, QueueSpec};

    use super::*;

    #[derive(Debug)]
    struct Nobody;

    impl CommitListener for Nobody {
        fn committed(&self, _: i16) {}
    }

    #[derive(Debug)]
    struct Hands(AtomicI64);

    impl Clock for Hands {
        fn now_ms(&self) -> i64 {
            self.0.load(Ordering::SeqCst)
        }

        fn monotonic_ms(&self) -> i64 {
            self.now_ms()
        }
    }

    async fn put(store: &Arc<dyn QueueStore>, messages: usize) -> Vec<MessageId> {
        let mut batch = PutBatch::default();
        (0..messages).for_each(|_| batch.push(b"t", b"v", &[]));
        let append = store.append(0, batch).unwrap();
        append.done.await.unwrap().unwrap();
        append.ids.iter().collect()
    }

    #[tokio::test]
    async fn what_is_there_what_was_and_what_never_was() {
        let clock = Arc::new(Hands(AtomicI64::new(1_000)));
        let spec = QueueSpec { name: "q".to_owned(), uid: uuid::Uuid::from_u128(1), partitions: 1, ttl_ms: 1_000, limit: None };
        let memory = MemoryStore::new(Arc::clone(&clock) as _);
        let store = memory.open_queue(spec, Arc::new(Nobody)).await.unwrap();
        let of = |id| look_up(&*store, 0, id);
        let never = |next| Found::Never { next };
        assert_eq!(of(MessageId::new(5, 0)).await.unwrap(), never(None), "there is nothing at all");
        let old = put(&store, 2).await;
        clock.0.store(1_500, Ordering::SeqCst);
        let young = put(&store, 3).await;
        for id in old.iter().chain(&young) {
            assert!(matches!(of(*id).await.unwrap(), Found::Stored(slice) if slice.first == *id && slice.count == 1));
        }
        let between = MessageId::new(1_200, 0);
        assert_eq!(of(between).await.unwrap(), never(Some(young[0])));
        assert_eq!(of(young[2].successor()).await.unwrap(), never(None));
        clock.0.store(2_100, Ordering::SeqCst);
        let gone = |certain| Found::Gone { why: MissingReason::Expired, certain };
        assert_eq!(of(old[0]).await.unwrap(), gone(true));
        assert_eq!(of(old[1]).await.unwrap(), gone(true));
        assert_eq!(of(MessageId::new(1, 0)).await.unwrap(), gone(false), "before all that has expired");
        assert_eq!(of(between).await.unwrap(), never(Some(young[0])));
        store.truncate().await.unwrap();
        assert_eq!(of(young[1]).await.unwrap(), Found::Gone { why: MissingReason::Truncated, certain: true });
    }
}

//! The scanner over a store in memory.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredSlice, TopicTable};
use hqueue_storage::clock::SystemClock;
use hqueue_storage::memory::MemoryStore;
use hqueue_storage::store::{Block, Cursor, MessageStore, Missing, MissingReason, QueueSpec, QueueStore, ReadBatch};

use super::{CommitWaiters, Fill, MessageScanner, TopicFilter};

async fn queue(tail_bytes: usize) -> Arc<dyn QueueStore> {
    let store = MemoryStore::with_tail(Arc::new(SystemClock::default()), tail_bytes);
    let spec = QueueSpec { name: "q".into(), uid: uuid::Uuid::new_v4(), partitions: 1, ttl_ms: 60_000, limit: None };
    store.open_queue(spec, Arc::new(CommitWaiters::new(1))).await.unwrap()
}

async fn put(queue: &Arc<dyn QueueStore>, messages: &[(&str, &str)]) {
    let mut batch = PutBatch::default();
    messages.iter().for_each(|(topic, value)| batch.push(topic.as_bytes(), value.as_bytes(), &[]));
    queue.append(0, batch).unwrap().done.await.unwrap().unwrap();
}

fn scanner(queue: &Arc<dyn QueueStore>, topics: &[&str]) -> MessageScanner {
    let filter = TopicFilter::new(topics.iter().map(|t| t.as_bytes().to_vec()).collect());
    MessageScanner::new(Arc::clone(queue), 0, filter, MessageId::MIN, MessageId::MAX)
}

fn values(slices: &[StoredSlice]) -> Vec<String> {
    let messages = slices.iter().flat_map(|s| s.messages().map(|m| String::from_utf8(m.unwrap().value.to_vec()).unwrap()));
    messages.collect()
}

#[tokio::test]
async fn batches_are_cut_by_messages_and_by_bytes() {
    let queue = queue(1 << 20).await;
    put(&queue, &[("t", "1"), ("t", "2"), ("t", "3")]).await;
    put(&queue, &[("t", "4")]).await;
    let mut scanner = scanner(&queue, &[]);
    assert_eq!(scanner.fill(2, 1000).unwrap(), Fill::Enough);
    assert_eq!(values(&scanner.take(2, 1000).unwrap()), ["1", "2"]);
    scanner.fill(10, 1000).unwrap();
    assert_eq!(values(&scanner.take(10, 1).unwrap()), ["3"], "one message goes, however large");
    assert_eq!(values(&scanner.take(10, 1000).unwrap()), ["4"]);
    assert!(scanner.is_hand_empty());
    assert_eq!(scanner.fill(1, 1000).unwrap(), Fill::End);
}

#[tokio::test]
async fn only_wanted_topics_come_and_what_is_put_back_comes_again() {
    let queue = queue(1 << 20).await;
    put(&queue, &[("a", "1"), ("b", "2"), ("a", "3"), ("a", "4")]).await;
    let mut scanner = scanner(&queue, &["a"]);
    assert_eq!(scanner.fill(10, 1000).unwrap(), Fill::End);
    let taken = scanner.take(10, 1000).unwrap();
    assert_eq!(values(&taken), ["1", "3", "4"]);
    scanner.put_back(taken);
    assert_eq!(values(&scanner.take(2, 1000).unwrap()), ["1", "3"]);
    assert_eq!(values(&scanner.take(2, 1000).unwrap()), ["4"]);
}

#[tokio::test]
async fn what_is_not_in_memory_is_read() {
    let queue = queue(1).await;
    for n in 0..50 {
        put(&queue, &[("t", &n.to_string())]).await;
    }
    let mut scanner = scanner(&queue, &[]);
    assert_eq!(scanner.fill(1, 1000).unwrap(), Fill::Cold);
    scanner.fill_cold(100, 1 << 20).await.unwrap();
    let wanted: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(values(&scanner.take(100, 1 << 20).unwrap()), wanted);
}

#[tokio::test]
async fn a_stop_is_exclusive_and_a_start_inclusive() {
    let queue = queue(1 << 20).await;
    put(&queue, &[("t", "1"), ("t", "2"), ("t", "3"), ("t", "4")]).await;
    let mut all = scanner(&queue, &[]);
    all.fill(10, 1000).unwrap();
    let ids: Vec<MessageId> = all.take(10, 1000).unwrap()[0].messages().map(|m| m.unwrap().id).collect();
    let mut some = MessageScanner::new(queue, 0, TopicFilter::default(), ids[1], ids[3]);
    some.fill(10, 1000).unwrap();
    assert_eq!(values(&some.take(10, 1000).unwrap()), ["2", "3"]);
}

/// A block of the messages with these running numbers, whose ids are the same.
fn block(numbers: std::ops::Range<u64>) -> Arc<Block> {
    let id = |number: u64| MessageId::new(i64::try_from(number).unwrap(), 0);
    Arc::new(Block {
        partition: 0,
        number: numbers.start,
        arrival_ms: 0,
        first: id(numbers.start),
        last: id(numbers.end - 1),
        count: u32::try_from(numbers.end - numbers.start).unwrap(),
        topics: TopicTable::default(),
        parts: Vec::new(),
    })
}

/// Of 0..60, 10..20 were damaged and 30..45 have expired. Whether the numbers are known before or not, each is counted once.
#[tokio::test]
async fn what_is_damaged_has_not_expired_too() {
    let queue = queue(1 << 20).await;
    for (known, told) in [(None, 15), (Some(0), 15), (Some(0), 0)] {
        let mut scanner = scanner(&queue, &[]);
        scanner.reset(MessageId::MIN, known);
        let missing = [(MissingReason::Damaged, 10), (MissingReason::Expired, told)];
        let missing = missing.into_iter().map(|(why, messages)| Missing { why, messages }).collect();
        let next = Cursor::at(MessageId::new(60, 0));
        let read = ReadBatch { blocks: vec![block(0..10), block(20..30), block(45..60)], next, at_end: false, missing };
        assert!(!scanner.accept(read).unwrap());
        let counts = scanner.take_missing();
        assert_eq!((counts.damaged, counts.expired), (10, 15), "known: {known:?}, told: {told}");
        // Damage at the end of a read.
        let damaged = vec![Missing { why: MissingReason::Damaged, messages: 5 }];
        let next = Cursor::at(MessageId::new(75, 0));
        let read = ReadBatch { blocks: vec![block(60..70)], next, at_end: false, missing: damaged };
        scanner.accept(read).unwrap();
        let read = ReadBatch {
            blocks: vec![block(75..80)],
            next: Cursor::at(MessageId::new(80, 0)),
            at_end: false,
            missing: Vec::new(),
        };
        scanner.accept(read).unwrap();
        let counts = scanner.take_missing();
        assert_eq!((counts.damaged, counts.expired), (5, 0), "known: {known:?}, told: {told}");
    }
}

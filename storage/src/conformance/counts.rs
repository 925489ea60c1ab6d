//! Counting without reading, and statistics.

use std::collections::BTreeSet;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;

use super::{Message, Queue, World};

/// Messages of topics `a` to `z`, some batches of one topic, some of few, some of more than a block notes.
async fn mixed_topics(world: &World, queue: &Queue) -> Vec<Message> {
    for n in 0..40_usize {
        let kinds = [1, 3, 26][n % 3];
        let mut batch = PutBatch::default();
        for m in 0..30 {
            let topic = b'a' + ((n + m * 7) % kinds) as u8;
            batch.push(&[topic], format!("{n}/{m}").as_bytes(), &[]);
        }
        queue.put_batch(0, batch).await;
        world.clock.advance((n % 4) as i64);
    }
    queue.all(0).await.messages
}

fn counted(messages: &[Message], from: MessageId, topics: &[&str]) -> u64 {
    let wanted: BTreeSet<&[u8]> = topics.iter().map(|topic| topic.as_bytes()).collect();
    messages.iter().filter(|m| m.id >= from && (wanted.is_empty() || wanted.contains(&m.topic[..]))).count() as u64
}

fn some_positions(messages: &[Message]) -> Vec<MessageId> {
    let inside = messages.iter().step_by(71).map(|message| message.id);
    inside.chain([MessageId::MIN, messages[messages.len() - 1].id, MessageId::MAX]).collect()
}

const TOPICS: &[&[&str]] = &[&["a"], &["b"], &["a", "c"], &["a", "a"], &["z"], &["nobody"], &["nobody", "b", "k"]];

pub(super) async fn counts_without_topics_are_exact_at_every_id(world: &mut World) {
    let mut queue = world.queue(2).await;
    assert_eq!(queue.count(0, MessageId::MIN, &[], 0).await, (0, true));
    let messages = mixed_topics(world, &queue).await;
    for _ in 0..2 {
        for (n, message) in messages.iter().enumerate().step_by(7) {
            assert_eq!(queue.count(0, message.id, &[], 100_000).await, ((messages.len() - n) as u64, true));
        }
        assert_eq!(queue.count(0, MessageId::MIN, &[], 100_000).await, (messages.len() as u64, true));
        assert_eq!(queue.count(0, MessageId::MAX, &[], 100_000).await, (0, true));
        assert_eq!(queue.count(1, MessageId::MIN, &[], 100_000).await, (0, true));
        queue = world.reopened(queue).await;
    }
}

pub(super) async fn counts_by_topic_are_right_within_the_limit(world: &mut World) {
    let mut queue = world.queue(1).await;
    let messages = mixed_topics(world, &queue).await;
    for _ in 0..2 {
        for from in some_positions(&messages) {
            for topics in TOPICS {
                let wanted = (counted(&messages, from, topics), true);
                assert_eq!(queue.count(0, from, topics, 100_000).await, wanted, "of {topics:?} from {from}");
            }
        }
        queue = world.reopened(queue).await;
    }
}

pub(super) async fn counts_beyond_the_limit_are_upper_bounds(world: &mut World) {
    let mut queue = world.queue(1).await;
    let messages = mixed_topics(world, &queue).await;
    let mut inexact = 0;
    for _ in 0..2 {
        for from in some_positions(&messages) {
            for topics in TOPICS {
                for look_at_most in [0, 1, 30, 100] {
                    let (count, exact) = queue.count(0, from, topics, look_at_most).await;
                    let right = counted(&messages, from, topics);
                    assert!(count >= right, "{count} of {topics:?} from {from}, in truth {right}");
                    assert!(count <= counted(&messages, from, &[]), "more than there are of all topics");
                    assert!(!exact || count == right, "{count} are said to be exact, in truth {right}");
                    inexact += u64::from(!exact);
                }
            }
        }
        queue = world.reopened(queue).await;
    }
    assert!(inexact > 0, "looked at more messages than it was allowed to");
}

pub(super) async fn statistics_follow_appends_expiry_and_truncation(world: &mut World) {
    let mut queue = world.queue_with_ttl(2, 1000).await;
    assert_eq!(queue.statistics(0).await, Default::default());
    let first = queue.put(0, &["one", "two"]).await;
    world.clock.advance(600);
    let one_size = queue.statistics(0).await.bytes / 2;
    let second = queue.put(0, &["six", "ten"]).await;
    for _ in 0..2 {
        let all = queue.statistics(0).await;
        assert_eq!((all.first, all.last, all.messages, all.bytes), (Some(first[0]), Some(second[1]), 4, 4 * one_size));
        queue = world.reopened(queue).await;
    }
    world.clock.advance(401);
    for _ in 0..2 {
        let rest = queue.statistics(0).await;
        assert_eq!((rest.first, rest.last, rest.messages, rest.bytes), (Some(second[0]), Some(second[1]), 2, 2 * one_size));
        assert_eq!(queue.count(0, MessageId::MIN, &[], 0).await, (2, true));
        assert_eq!(queue.count(0, MessageId::MIN, &["t"], 100).await, (2, true));
        queue = world.reopened(queue).await;
    }
    queue.store.truncate().await.unwrap();
    assert_eq!(queue.statistics(0).await, Default::default());
    assert_eq!(queue.statistics(1).await, Default::default());
}

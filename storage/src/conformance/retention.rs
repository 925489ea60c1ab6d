//! Queues that may become so large and no larger.

use hqueue_protocol::id::MessageId;

use super::{Queue, World, batch};
use crate::store::{Cursor, MissingReason, QueueSpec, SizeLimit, StoreError, WhenFull};

const REJECT: SizeLimit = SizeLimit { max_bytes: 10_000, when_full: WhenFull::Reject, keep_unread: false };
const DROP: SizeLimit = SizeLimit { max_bytes: 10_000, when_full: WhenFull::DropOldest, keep_unread: false };
const KEEP: SizeLimit = SizeLimit { max_bytes: 10_000, when_full: WhenFull::DropOldest, keep_unread: true };

/// A value of which each message takes 1000 bytes in stored form.
fn value() -> String {
    "v".repeat(1000 - batch("t", &[""]).byte_len())
}

/// Puts one message after the other until one is refused. Their ids, and the refusal.
async fn fill(queue: &Queue, partition: i16) -> (Vec<MessageId>, StoreError) {
    let mut ids = Vec::new();
    loop {
        match queue.try_put(partition, &[&value()]).await {
            Ok(more) => ids.extend(more),
            Err(refusal) => return (ids, refusal),
        }
        assert!(ids.len() <= 10, "more than the limit is taken");
    }
}

/// Puts single messages to partitions in turn. Their partitions and ids, in order.
async fn put_in_turn(queue: &Queue, messages: usize) -> Vec<(i16, MessageId)> {
    let mut put = Vec::new();
    for n in 0..messages {
        let partition = i16::try_from(n).unwrap() % queue.spec.partitions;
        put.push((partition, queue.put(partition, &[&value()]).await[0]));
    }
    put
}

/// The newest `kept` of these are there, and no others.
async fn expect_newest(queue: &Queue, put: &[(i16, MessageId)], kept: usize) {
    for partition in 0..queue.spec.partitions {
        let newest = put.iter().rev().take(kept).rev().filter(|(p, _)| *p == partition);
        let wanted: Vec<MessageId> = newest.map(|(_, id)| *id).collect();
        assert_eq!(queue.all(partition).await.ids(), wanted, "partition {partition}");
        assert_eq!(queue.count(partition, MessageId::MIN, &[], 0).await, (wanted.len() as u64, true));
        let statistics = queue.statistics(partition).await;
        assert_eq!((statistics.first, statistics.messages), (wanted.first().copied(), wanted.len() as u64));
    }
}

pub(super) async fn a_full_queue_refuses_with_limit_and_size(world: &mut World) {
    let mut queue = world.queue_with_limit(2, REJECT).await;
    let (ids, refusal) = fill(&queue, 0).await;
    assert_eq!(ids.len(), 10);
    let text = refusal.to_string();
    assert!(refusal.is_retryable() && matches!(refusal, StoreError::QueueFull { .. }), "{refusal:?}");
    for part in ["orders", "1000 bytes", "10000 bytes", "limit is 10000"] {
        assert!(text.contains(part), "{text}");
    }
    // The limit is one of all partitions, and it is the same after a restart.
    for _ in 0..2 {
        assert!(matches!(queue.try_put(1, &["v"]).await, Err(StoreError::QueueFull { used_bytes: 10_000, .. })));
        assert_eq!(queue.all(0).await.ids(), ids);
        queue = world.reopened(queue).await;
    }
    // What was refused takes no number.
    queue.store.truncate().await.unwrap();
    queue.put(0, &["v"]).await;
    assert_eq!(queue.all(0).await.messages[0].number, 10);
}

pub(super) async fn a_truncation_or_the_ttl_makes_room(world: &mut World) {
    let queue = world.queue_with_limit(2, REJECT).await;
    fill(&queue, 0).await;
    queue.store.truncate().await.unwrap();
    let (ids, _) = fill(&queue, 1).await;
    assert_eq!(ids.len(), 10);
    world.clock.advance(12 * 3_600_000);
    assert!(queue.try_put(0, &["v"]).await.is_err());
    world.clock.advance(12 * 3_600_000 + 1);
    // Nobody has looked at what has expired meanwhile.
    let (ids, _) = fill(&queue, 0).await;
    assert_eq!(ids.len(), 10);
    assert_eq!(queue.all(1).await.ids(), []);
}

pub(super) async fn the_oldest_messages_make_room(world: &mut World) {
    let mut queue = world.queue_with_limit(3, DROP).await;
    let mut put = put_in_turn(&queue, 25).await;
    expect_newest(&queue, &put, 10).await;
    for _ in 0..3 {
        queue = world.reopened(queue).await;
        expect_newest(&queue, &put, 10).await;
        put.extend(put_in_turn(&queue, 7).await);
        expect_newest(&queue, &put, 10).await;
    }
    assert_eq!(queue.bytes().await, 10_000);
}

pub(super) async fn what_was_dropped_stays_gone(world: &mut World) {
    let mut queue = world.queue_with_limit(1, DROP).await;
    let put = put_in_turn(&queue, 30).await;
    for _ in 0..3 {
        expect_newest(&queue, &put, 10).await;
        // The limit counts when something is put.
        let spec = QueueSpec { limit: None, ..queue.spec.clone() };
        drop(queue);
        world.reopen().await;
        queue = world.open(spec).await;
    }
    expect_newest(&queue, &put, 10).await;
}

pub(super) async fn a_reader_is_told_what_was_dropped(world: &mut World) {
    let queue = world.queue_with_limit(1, DROP).await;
    let put = put_in_turn(&queue, 10).await;
    // Has read the first one.
    let cursor = queue.read(0, Cursor::at(put[0].1), 1).await.next;
    let before = world.store.counters().dropped_messages;
    let more = put_in_turn(&queue, 12).await;
    assert_eq!(world.store.counters().dropped_messages - before, 12);
    let found = super::scan(&*queue.store, 0, cursor, 1 << 20).await;
    assert_eq!(found.ids(), more[2..].iter().map(|(_, id)| *id).collect::<Vec<_>>());
    let told = found.missing_because(MissingReason::Dropped);
    assert!((1..=12).contains(&told), "told of {told}, eleven were there");
    for why in [MissingReason::Damaged, MissingReason::Expired, MissingReason::Truncated] {
        assert_eq!(found.missing_because(why), 0);
    }
}

pub(super) async fn what_is_needed_is_kept_until_its_time(world: &mut World) {
    let mut queue = world.queue_with_limit(2, KEEP).await;
    let (ids, refusal) = fill(&queue, 0).await;
    assert!(matches!(refusal, StoreError::QueueFull { keeps_unread: true, .. }), "nobody has said what is needed: {refusal:?}");
    assert!(refusal.to_string().contains("not consumed is kept"), "{refusal}");
    queue = world.reopened(queue).await;
    queue.store.keep_from(0, ids[4]).unwrap();
    queue.store.keep_from(1, MessageId::MAX).unwrap();
    for n in 0..4 {
        queue.put(1, &[&value()]).await;
        assert_eq!(queue.all(0).await.ids(), ids[n + 1..]);
    }
    assert!(queue.try_put(1, &[&value()]).await.is_err(), "the fifth is needed");
    assert_eq!(queue.all(0).await.ids(), ids[4..]);
    queue.store.keep_from(0, MessageId::MAX).unwrap();
    queue.put(1, &[&value()]).await;
    queue.store.keep_from(0, MessageId::MIN).unwrap();
    assert!(queue.try_put(1, &[&value()]).await.is_err(), "what counts is what was said last");
    // Its time ends all needs.
    world.clock.advance(24 * 3_600_000 + 1);
    queue.put(1, &[&value()]).await;
    assert!(matches!(queue.store.keep_from(2, MessageId::MIN), Err(StoreError::NoSuchPartition { .. })));
}

pub(super) async fn an_append_that_never_fits_drops_nothing(world: &mut World) {
    let queue = world.queue_with_limit(1, DROP).await;
    let put = put_in_turn(&queue, 10).await;
    let refusal = queue.try_put(0, &[&"v".repeat(10_001)]).await.unwrap_err();
    assert!(refusal.to_string().contains("never fits"), "{refusal}");
    expect_newest(&queue, &put, 10).await;
    // One that just fits takes the place of everything.
    let largest = "v".repeat(10_000 - batch("t", &[""]).byte_len());
    let ids = queue.put(0, &[&largest]).await;
    assert_eq!(queue.all(0).await.ids(), ids);
}

pub(super) async fn a_part_of_the_partitions_has_a_part_of_the_limit(world: &mut World) {
    let queue = world.queue_with_limit(4, REJECT).await;
    queue.store.set_share(2);
    let (ids, refusal) = fill(&queue, 0).await;
    assert_eq!(ids.len(), 5);
    assert!(matches!(refusal, StoreError::QueueFull { limit_bytes: 5000, .. }), "{refusal:?}");
    queue.store.set_share(4);
    queue.put(1, &[&value()]).await;
}

pub(super) async fn a_queue_without_a_limit_has_none(world: &mut World) {
    let queue = world.queue(1).await;
    let put = put_in_turn(&queue, 100).await;
    queue.store.keep_from(0, MessageId::MAX).unwrap();
    expect_newest(&queue, &put, 100).await;
}

/// Batches of all sizes to all partitions at the same time: the newest are there, without a hole, and never more than the limit.
pub(super) async fn any_appends_keep_within_the_limit(world: &mut World) {
    let mut queue = world.queue_with_limit(3, DROP).await;
    let mut last = [MessageId::MIN; 3];
    for round in 0..30usize {
        let mut under_way = Vec::new();
        for n in 0..20usize {
            let partition = i16::try_from((round * 7 + n * 5) % 3).unwrap();
            let values = vec!["value"; 1 + (round * 11 + n * 3) % 17];
            under_way.push((partition, queue.store.append(partition, batch("t", &values)).unwrap()));
        }
        for (partition, append) in under_way {
            append.done.await.unwrap().unwrap();
            let at = usize::try_from(partition).unwrap();
            last[at] = last[at].max(append.ids.iter().last().unwrap());
        }
        let bytes = queue.bytes().await;
        assert!((5000..=10_000).contains(&bytes) || round == 0, "round {round}: {bytes} bytes");
        for partition in 0..3 {
            let found = queue.all(partition).await;
            let numbers: Vec<u64> = found.messages.iter().map(|message| message.number).collect();
            assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "partition {partition}: {numbers:?}");
            assert_eq!(found.ids().last().copied(), Some(last[usize::try_from(partition).unwrap()]));
        }
        if round % 10 == 9 {
            queue = world.reopened(queue).await;
        }
    }
}

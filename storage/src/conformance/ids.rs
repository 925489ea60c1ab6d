//! Where ids come from, and that they rise.

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;

use super::{START_MS, World};

const HOUR_MS: i64 = 3_600_000;

pub(super) async fn ids_follow_the_clock(world: &mut World) {
    let queue = world.queue(1).await;
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS, 0)]);
    world.clock.advance(1);
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS + 1, 0)]);
    world.clock.advance(HOUR_MS);
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS + 1 + HOUR_MS, 0)]);
}

pub(super) async fn ids_rise_while_the_clock_stands_still(world: &mut World) {
    let queue = world.queue(1).await;
    for n in 0..100 {
        assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS, n)]);
    }
}

/// Case C1: back 5 s, back 1 h, and over the old milliseconds again, with a restart at each step.
pub(super) async fn ids_rise_over_steps_back_and_reopenings(world: &mut World) {
    let mut queue = world.queue(1).await;
    let mut ids = queue.put(0, &["v"; 100]).await;
    for wall_ms in [START_MS - 5_000, START_MS - HOUR_MS, START_MS - 1, START_MS, START_MS + 1, START_MS - 5_000, START_MS + 50] {
        world.clock.set_wall(wall_ms);
        ids.extend(queue.put(0, &["v"; 100]).await);
        queue = world.reopened(queue).await;
        ids.extend(queue.put(0, &["v"; 100]).await);
    }
    assert!(ids.is_sorted_by(|a, b| a < b), "ids went down or came twice");
    assert_eq!(queue.all(0).await.ids(), ids);
}

/// Case C3: started with a clock in 2050, which is later put right.
pub(super) async fn ids_rise_after_a_clock_far_ahead_was_corrected(world: &mut World) {
    world.clock.set_wall(2_524_608_000_000);
    let queue = world.queue(1).await;
    let mut ids = queue.put(0, &["ahead"; 10]).await;
    world.store.close().await;
    world.clock.set_wall(START_MS);
    let queue = world.reopened(queue).await;
    ids.extend(queue.put(0, &["corrected"; 10]).await);
    assert!(ids.is_sorted_by(|a, b| a < b));
    assert_eq!(queue.all(0).await.ids(), ids, "all of them are still there");
    assert_eq!(queue.from(0, ids[15]).await.ids(), ids[15..]);
}

pub(super) async fn a_full_millisecond_overflows_into_the_next(world: &mut World) {
    let queue = world.queue(1).await;
    let mut many = PutBatch::default();
    for _ in 0..70_000 {
        many.push(b"t", b"", &[]);
    }
    let ids = queue.put_batch(0, many).await;
    assert_eq!(ids.len(), 70_000);
    assert_eq!((ids[0], ids[32_767]), (MessageId::new(START_MS, 0), MessageId::new(START_MS, 32_767)));
    assert_eq!((ids[32_768], ids[69_999]), (MessageId::new(START_MS + 1, 0), MessageId::new(START_MS + 2, 4_463)));
    // The clock is behind the ids now, and catches up.
    let next = MessageId::new(START_MS + 2, 4_464);
    assert_eq!(queue.put(0, &["v"]).await, [next]);
    world.clock.advance(3);
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS + 3, 0)]);
    let found = queue.all(0).await.ids();
    assert_eq!((found.len(), &found[..70_000]), (70_002, &ids[..]));
    assert_eq!(queue.from(0, ids[40_000]).await.ids().len(), 30_002);
}

pub(super) async fn new_ids_are_above_a_raised_floor(world: &mut World) {
    let queue = world.queue(2).await;
    let floor = MessageId::new(START_MS + HOUR_MS, 7);
    queue.store.raise_ids(0, floor).unwrap();
    assert_eq!(queue.committed(0).last, None, "a floor is no message");
    assert_eq!(queue.put(0, &["v"; 2]).await, [MessageId::new(START_MS + HOUR_MS, 8), MessageId::new(START_MS + HOUR_MS, 9)]);
    assert_eq!(queue.put(1, &["v"]).await, [MessageId::new(START_MS, 0)], "the floor of another partition");
    // What was assigned above a floor holds over a restart.
    let queue = world.reopened(queue).await;
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS + HOUR_MS, 10)]);
    queue.store.raise_ids(0, MessageId::new(START_MS + HOUR_MS, i16::MAX)).unwrap();
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS + HOUR_MS + 1, 0)]);
}

pub(super) async fn a_floor_below_the_last_id_changes_nothing(world: &mut World) {
    let queue = world.queue(1).await;
    queue.put(0, &["v"; 5]).await;
    for floor in [MessageId::MIN, MessageId::new(START_MS, 0), MessageId::new(START_MS, 4)] {
        queue.store.raise_ids(0, floor).unwrap();
    }
    assert_eq!(queue.put(0, &["v"]).await, [MessageId::new(START_MS, 5)]);
}

pub(super) async fn ids_and_numbers_go_on_when_everything_is_gone(world: &mut World) {
    let queue = world.queue_with_ttl(1, 1_000).await;
    world.clock.advance(HOUR_MS);
    let last = queue.put(0, &["v"; 10]).await[9];
    world.clock.advance(1_001);
    assert_eq!(queue.all(0).await.messages, [], "all of it has expired");
    let mut queue = world.reopened(queue).await;
    for reopenings in 0..3 {
        assert_eq!(queue.committed(0).last, Some(last), "after {reopenings} more reopenings");
        assert_eq!(queue.committed(0).next_number, 10);
        queue = world.reopened(queue).await;
    }
    world.clock.set_wall(START_MS);
    let ids = queue.put(0, &["v"]).await;
    assert!(ids[0] > last, "{} came after {last}", ids[0]);
    assert_eq!(queue.committed(0).next_number, 11);
}

pub(super) async fn partitions_have_ids_and_numbers_of_their_own(world: &mut World) {
    let queue = world.queue(3).await;
    for partition in 0..3 {
        let ids = queue.put(partition, &vec!["v"; partition as usize + 1]).await;
        assert_eq!(ids[0], MessageId::new(START_MS, 0));
        assert_eq!(queue.committed(partition).next_number, partition as u64 + 1);
    }
}

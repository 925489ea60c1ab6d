//! Messages older than the TTL are never returned, younger ones always.

use hqueue_protocol::id::MessageId;

use super::{Queue, START_MS, World, scan};
use crate::store::{Cursor, MissingReason, TailRead};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// What every way of looking at the queue shows must be `wanted`.
async fn expect(queue: &Queue, wanted: &[MessageId]) {
    assert_eq!(queue.all(0).await.ids(), wanted);
    if let TailRead::Blocks(blocks) = queue.tail(0, MessageId::MIN) {
        let tail: Vec<MessageId> = blocks.iter().flat_map(|block| super::scan::open_block(block)).map(|m| m.id).collect();
        assert!(tail.iter().all(|id| wanted.contains(id)), "the tail serves {tail:?}, there is {wanted:?}");
    }
    let messages = wanted.len() as u64;
    assert_eq!(queue.count(0, MessageId::MIN, &[], 1000).await, (messages, true));
    assert_eq!(queue.count(0, MessageId::MIN, &["t"], 1000).await, (messages, true));
    let statistics = queue.statistics(0).await;
    assert_eq!((statistics.first, statistics.last), (wanted.first().copied(), wanted.last().copied()));
    assert_eq!(statistics.messages, messages);
}

pub(super) async fn nothing_expires_early_or_late(world: &mut World) {
    let mut queue = world.queue_with_ttl(1, 1000).await;
    let first = queue.put(0, &["v"; 3]).await;
    world.clock.advance(500);
    let second = queue.put(0, &["v"; 3]).await;
    let both: Vec<MessageId> = first.iter().chain(&second).copied().collect();
    for (wait_ms, wanted) in [(0, &both[..]), (499, &both), (1, &both), (1, &second), (499, &second), (1, &[]), (HOUR_MS, &[])] {
        world.clock.advance(wait_ms);
        expect(&queue, wanted).await;
        queue = world.reopened(queue).await;
        expect(&queue, wanted).await;
    }
    let next = queue.put(0, &["v"]).await;
    expect(&queue, &next).await;
    let queue = world.reopened(queue).await;
    world.clock.advance(1001);
    expect(&queue, &[]).await;
}

/// Case T2: what an id says of the time is not what counts.
pub(super) async fn expiry_goes_by_arrival_and_not_by_id(world: &mut World) {
    let queue = world.queue_with_ttl(1, 1000).await;
    queue.store.raise_ids(0, MessageId::new(START_MS + 1000 * HOUR_MS, 0)).unwrap();
    let ids = queue.put(0, &["id of later"; 3]).await;
    assert_eq!(ids[0].timestamp, START_MS + 1000 * HOUR_MS);
    world.clock.advance(1000);
    expect(&queue, &ids).await;
    world.clock.advance(1);
    expect(&queue, &[]).await;
    let queue = world.reopened(queue).await;
    expect(&queue, &[]).await;
}

pub(super) async fn what_expired_stays_gone(world: &mut World) {
    let mut queue = world.queue_with_ttl(1, 1000).await;
    queue.put(0, &["v"; 3]).await;
    world.clock.advance(1001);
    let kept = queue.put(0, &["kept"]).await;
    expect(&queue, &kept).await;
    // The clock is corrected by a second: the messages are young again by its word.
    world.clock.set_wall(START_MS);
    expect(&queue, &kept).await;
    for _ in 0..2 {
        queue = world.reopened(queue).await;
        expect(&queue, &kept).await;
    }
}

pub(super) async fn a_step_back_of_the_clock_expires_nothing_early(world: &mut World) {
    let queue = world.queue_with_ttl(1, 10_000).await;
    let mut ids = queue.put(0, &["before the step"]).await;
    world.clock.set_wall(START_MS - 30_000);
    ids.extend(queue.put(0, &["behind the step"]).await);
    for _ in 0..10 {
        expect(&queue, &ids).await;
        world.clock.advance(1000);
    }
    expect(&queue, &ids).await;
}

/// Case T1, C1: the clock goes a day ahead in no time, and later back.
pub(super) async fn a_jump_of_the_clock_destroys_nothing(world: &mut World) {
    let mut queue = world.queue_with_ttl(1, HOUR_MS).await;
    let mut ids = queue.put(0, &["before the jump"; 3]).await;
    world.clock.advance(MINUTE_MS);
    expect(&queue, &ids).await;
    world.clock.set_wall(START_MS + 24 * HOUR_MS);
    expect(&queue, &ids).await;
    ids.extend(queue.put(0, &["during the jump"]).await);
    world.clock.advance(MINUTE_MS);
    expect(&queue, &ids).await;
    world.clock.set_wall(START_MS + 2 * MINUTE_MS);
    expect(&queue, &ids).await;
    ids.extend(queue.put(0, &["behind the jump"]).await);
    for _ in 0..2 {
        expect(&queue, &ids).await;
        queue = world.reopened(queue).await;
    }
}

pub(super) async fn a_jump_of_the_clock_is_believed_in_the_end(world: &mut World) {
    let queue = world.queue_with_ttl(1, 3 * HOUR_MS).await;
    let ids = queue.put(0, &["before the jump"; 3]).await;
    world.clock.set_wall(START_MS + 24 * HOUR_MS);
    for _ in 0..10 {
        expect(&queue, &ids).await;
        world.clock.advance(MINUTE_MS);
    }
    world.clock.advance(1);
    expect(&queue, &[]).await;
}

pub(super) async fn a_reader_is_told_what_expired(world: &mut World) {
    let queue = world.queue_with_ttl(1, 1000).await;
    let ids = queue.put(0, &["v"; 10]).await;
    queue.put(0, &["v"; 10]).await;
    // Has read the first ten.
    let cursor = queue.read(0, Cursor::at(ids[0]), 1).await.next;
    world.clock.advance(1001);
    let kept = queue.put(0, &["kept"]).await;
    let found = scan(&*queue.store, 0, cursor, 1 << 20).await;
    assert_eq!(found.ids(), kept);
    let told = found.missing_because(MissingReason::Expired);
    assert!((1..=20).contains(&told), "told of {told}, ten were there");
    assert_eq!(found.missing_because(MissingReason::Damaged), 0);
    assert_eq!(found.missing_because(MissingReason::Truncated), 0);
}

pub(super) async fn a_ttl_without_end_never_expires(world: &mut World) {
    let mut queue = world.queue_with_ttl(1, i64::MAX).await;
    let ids = queue.put(0, &["v"; 3]).await;
    for _ in 0..3 {
        world.clock.advance(100_000 * HOUR_MS);
        expect(&queue, &ids).await;
        queue = world.reopened(queue).await;
    }
}

/// Case T2, C3: one message came while the clock was in 2050.
pub(super) async fn an_odd_arrival_neither_holds_nor_kills_its_neighbours(world: &mut World) {
    let queue = world.queue_with_ttl(1, HOUR_MS).await;
    let mut ids = queue.put(0, &["before"; 2]).await;
    world.store.close().await;
    world.clock.set_wall(2_524_608_000_000);
    let queue = world.reopened(queue).await;
    assert_eq!(queue.all(0).await.ids(), [], "opened in 2050, what came before has expired");
    let odd = queue.put(0, &["odd"]).await;
    world.store.close().await;
    world.clock.set_wall(START_MS + MINUTE_MS);
    let queue = world.reopened(queue).await;
    ids.clear();
    ids.extend(&odd);
    ids.extend(queue.put(0, &["behind"; 2]).await);
    world.clock.advance(HOUR_MS);
    expect(&queue, &ids).await;
    world.clock.advance(1);
    expect(&queue, &odd).await;
}

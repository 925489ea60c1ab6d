//! Removing everything.

use hqueue_protocol::id::MessageId;

use super::World;
use crate::store::{Cursor, MissingReason, QueueSpec, TailRead};

pub(super) async fn nothing_is_read_after_a_truncation(world: &mut World) {
    let queue = world.queue(3).await;
    queue.store.truncate().await.unwrap();
    for partition in 0..2 {
        queue.put(partition, &["v"; 10]).await;
    }
    queue.store.truncate().await.unwrap();
    queue.store.truncate().await.unwrap();
    for partition in 0..3 {
        assert_eq!(queue.all(partition).await.messages, []);
        assert!(!matches!(queue.tail(partition, MessageId::MIN), TailRead::Blocks(_)), "the tail still serves them");
        assert_eq!(queue.count(partition, MessageId::MIN, &[], 0).await, (0, true));
        assert_eq!(queue.count(partition, MessageId::MIN, &["t"], 1000).await, (0, true));
        assert_eq!(queue.statistics(partition).await, Default::default());
    }
}

/// Over reopenings, also when more came before and after.
pub(super) async fn truncated_messages_stay_gone(world: &mut World) {
    let mut queue = world.queue(2).await;
    for round in 0..3 {
        queue.put(0, &["gone"; 10]).await;
        queue = world.reopened(queue).await;
        queue.put(0, &["gone"; 10]).await;
        queue.put(1, &["gone"]).await;
        queue.store.truncate().await.unwrap();
        let kept = queue.put(0, &[&format!("kept {round}")]).await;
        for _ in 0..2 {
            assert_eq!(queue.all(0).await.ids(), kept);
            assert_eq!(queue.all(1).await.ids(), []);
            assert_eq!(queue.count(0, MessageId::MIN, &[], 0).await, (1, true));
            queue = world.reopened(queue).await;
        }
    }
}

pub(super) async fn ids_and_numbers_go_on_after_a_truncation(world: &mut World) {
    let queue = world.queue(1).await;
    let ids = queue.put(0, &["v"; 10]).await;
    let committed = queue.committed(0);
    queue.store.truncate().await.unwrap();
    assert_eq!(queue.committed(0), committed);
    let mut queue = world.reopened(queue).await;
    assert_eq!(queue.committed(0), committed);
    queue = world.reopened(queue).await;
    assert_eq!(queue.committed(0), committed);
    world.clock.set_wall(super::START_MS - 10_000);
    let next = queue.put(0, &["v"]).await;
    assert_eq!(next, [ids[9].successor()]);
    assert_eq!(queue.all(0).await.messages[0].number, 10);
}

pub(super) async fn a_truncation_leaves_other_queues_alone(world: &mut World) {
    let queue = world.queue(1).await;
    let other = world.open(QueueSpec { name: "other".to_owned(), uid: uuid::Uuid::new_v4(), ..queue.spec.clone() }).await;
    queue.put(0, &["v"; 3]).await;
    let kept = other.put(0, &["v"; 3]).await;
    queue.store.truncate().await.unwrap();
    assert_eq!(other.all(0).await.ids(), kept);
    let other = world.reopened(other).await;
    assert_eq!(other.all(0).await.ids(), kept);
}

pub(super) async fn a_reader_is_told_what_was_truncated(world: &mut World) {
    let queue = world.queue(1).await;
    let ids = queue.put(0, &["v"; 10]).await;
    queue.put(0, &["v"; 10]).await;
    // Has read the first ten.
    let cursor = queue.read(0, Cursor::at(ids[0]), 1).await.next;
    queue.store.truncate().await.unwrap();
    let kept = queue.put(0, &["kept"]).await;
    let found = super::scan(&*queue.store, 0, cursor, 1 << 20).await;
    assert_eq!(found.ids(), kept);
    let told = found.missing_because(MissingReason::Truncated);
    assert!((1..=20).contains(&told), "told of {told}, ten were there");
    assert_eq!(found.missing_because(MissingReason::Damaged), 0);
    assert_eq!(found.missing_because(MissingReason::Expired), 0);
}

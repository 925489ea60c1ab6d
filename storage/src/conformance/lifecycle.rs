//! Queues made, removed, made anew; stores closed.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use uuid::Uuid;

use super::{Queue, Recorder, World};
use crate::store::{QueueSpec, StoreError};

fn spec(name: &str, uid: Uuid) -> QueueSpec {
    QueueSpec { name: name.to_owned(), uid, partitions: 2, ttl_ms: 3_600_000, limit: None }
}

async fn expect_empty(queue: &Queue) {
    for partition in 0..queue.spec.partitions {
        assert_eq!(queue.committed(partition), Default::default());
        assert_eq!(queue.all(partition).await.messages, []);
        assert_eq!(queue.count(partition, MessageId::MIN, &[], 0).await, (0, true));
    }
}

async fn expect_closed(queue: &Queue) {
    for (what, answer) in queue.answers(0).await {
        assert!(matches!(answer, Some(StoreError::Closed)), "{what} answers {answer:?}");
    }
    let answer = queue.store.truncate().await;
    assert!(matches!(answer, Err(StoreError::Closed)), "truncate answers {answer:?}");
}

pub(super) async fn a_queue_made_anew_has_nothing_of_its_predecessor(world: &mut World) {
    let mut queue = world.queue(2).await;
    for _ in 0..3 {
        queue.put(0, &["of an earlier queue"; 10]).await;
        world.store.remove_queue(&queue.spec.name, queue.spec.uid).await.unwrap();
        queue = world.open(spec(&queue.spec.name, Uuid::new_v4())).await;
        expect_empty(&queue).await;
        let ids = queue.put(1, &["new"]).await;
        queue = world.reopened(queue).await;
        assert_eq!(queue.all(1).await.ids(), ids);
        assert_eq!(queue.all(0).await.ids(), []);
    }
}

/// Dropped and made anew while this broker was away: nobody told the store.
pub(super) async fn a_queue_of_another_uid_is_removed_and_not_served(world: &mut World) {
    let earlier = world.queue(2).await;
    earlier.put(0, &["of an earlier queue"; 10]).await;
    world.reopen().await;
    let queue = world.open(spec("orders", Uuid::new_v4())).await;
    expect_empty(&queue).await;
    let ids = queue.put(0, &["new"]).await;
    let queue = world.reopened(queue).await;
    assert_eq!(queue.all(0).await.ids(), ids);
    // The earlier one does not come back under its old uid either.
    world.reopen().await;
    expect_empty(&world.open(earlier.spec).await).await;
}

pub(super) async fn a_removed_queue_is_gone_over_a_reopening(world: &mut World) {
    let queue = world.queue(2).await;
    queue.put(0, &["v"; 10]).await;
    world.store.remove_queue(&queue.spec.name, queue.spec.uid).await.unwrap();
    world.reopen().await;
    expect_empty(&world.open(queue.spec).await).await;
}

pub(super) async fn removing_what_is_not_there_is_no_error(world: &mut World) {
    world.store.remove_queue("nobody", Uuid::new_v4()).await.unwrap();
    let queue = world.queue(2).await;
    let ids = queue.put(0, &["v"]).await;
    // The uid of another queue: it is not this one that is meant.
    world.store.remove_queue(&queue.spec.name, Uuid::new_v4()).await.unwrap();
    assert_eq!(queue.all(0).await.ids(), ids);
    let queue = world.reopened(queue).await;
    assert_eq!(queue.all(0).await.ids(), ids);
    world.store.remove_queue(&queue.spec.name, queue.spec.uid).await.unwrap();
    world.store.remove_queue(&queue.spec.name, queue.spec.uid).await.unwrap();
    // One that is on the disk and was not opened since the start.
    let queue = world.queue(2).await;
    queue.put(0, &["v"]).await;
    world.reopen().await;
    world.store.remove_queue(&queue.spec.name, queue.spec.uid).await.unwrap();
    expect_empty(&world.open(queue.spec).await).await;
}

pub(super) async fn handles_of_a_removed_queue_answer_closed(world: &mut World) {
    let queue = world.queue(2).await;
    let other = world.open(spec("other", Uuid::new_v4())).await;
    queue.put(0, &["v"]).await;
    world.store.remove_queue(&queue.spec.name, queue.spec.uid).await.unwrap();
    expect_closed(&queue).await;
    other.put(0, &["v"]).await;
    assert_eq!(other.all(0).await.texts(), ["v"]);
}

pub(super) async fn a_closed_store_answers_closed(world: &mut World) {
    let queue = world.queue(2).await;
    let ids = queue.put(0, &["v"]).await;
    world.store.close().await;
    world.store.close().await;
    expect_closed(&queue).await;
    let opened = world.store.open_queue(queue.spec.clone(), Arc::new(Recorder::default())).await;
    assert!(matches!(opened, Err(StoreError::Closed)), "open_queue answers {opened:?}");
    let removed = world.store.remove_queue(&queue.spec.name, queue.spec.uid).await;
    assert!(matches!(removed, Err(StoreError::Closed)), "remove_queue answers {removed:?}");
    let queue = world.reopened(queue).await;
    assert_eq!(queue.all(0).await.ids(), ids);
}

pub(super) async fn a_partition_that_does_not_exist_is_named(world: &mut World) {
    let queue = world.queue(3).await;
    for partition in [-1, 3, i16::MAX, i16::MIN] {
        for (what, answer) in queue.answers(partition).await {
            let text = answer.map(|error| error.to_string());
            let wanted = format!("partition {partition} does not exist: the queue has 3 (0 to 2)");
            assert_eq!(text.as_deref(), Some(&wanted[..]), "{what}");
        }
    }
    assert_eq!(queue.commits.all_commits(), 0);
}

pub(super) async fn queues_of_like_names_do_not_meet(world: &mut World) {
    let longest = format!("{}.dlq", "q".repeat(124));
    let names = ["a", "A", "a.b", "a.b.dlq", "a-b", "a_b", "a.", "_", "0", &longest];
    let mut queues = Vec::new();
    for name in names {
        let queue = world.open(spec(name, Uuid::new_v4())).await;
        queue.put(0, &[name]).await;
        queues.push(queue);
    }
    world.reopen().await;
    for queue in &queues {
        let again = world.open(queue.spec.clone()).await;
        assert_eq!(again.all(0).await.texts(), [&queue.spec.name[..]]);
    }
    world.store.remove_queue("a", queues[0].spec.uid).await.unwrap();
    world.reopen().await;
    for queue in &queues[1..] {
        let again = world.open(queue.spec.clone()).await;
        assert_eq!(again.all(0).await.texts(), [&queue.spec.name[..]]);
    }
}

//! The largest and the smallest of everything.

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::PutBatch;

use super::{World, batch};

const MIB: usize = 1 << 20;

pub(super) async fn a_thousand_partitions(world: &mut World) {
    let queue = world.queue(1000).await;
    for round in 0..2 {
        let appends: Vec<_> =
            (0..1000).map(|p| queue.store.append(p, batch("t", &[&format!("{round} of {p}")])).unwrap()).collect();
        for append in appends {
            append.done.await.unwrap().unwrap();
        }
    }
    let queue = world.reopened(queue).await;
    for partition in 0..1000 {
        assert_eq!(queue.committed(partition).next_number, 2);
    }
    for partition in (0..1000).step_by(9) {
        assert_eq!(queue.all(partition).await.texts(), [format!("0 of {partition}"), format!("1 of {partition}")]);
    }
    let most = world.open(crate::store::QueueSpec { name: "most".to_owned(), partitions: i16::MAX, ..queue.spec.clone() }).await;
    let ids = most.put(i16::MAX - 1, &["v"]).await;
    let most = world.reopened(most).await;
    assert_eq!(most.all(i16::MAX - 1).await.ids(), ids);
}

pub(super) async fn values_of_no_bytes_and_of_four_mebibytes(world: &mut World) {
    let queue = world.queue(1).await;
    let large: Vec<u8> = (0..4 * MIB).map(|n| (n * 31 / 7) as u8).collect();
    let mut ids = queue.put(0, &[""]).await;
    for _ in 0..3 {
        let mut one = PutBatch::default();
        one.push(b"t", &large, &[]);
        ids.extend(queue.put_batch(0, one).await);
        ids.extend(queue.put(0, &["", "small", ""]).await);
    }
    let queue = world.reopened(queue).await;
    for max_bytes in [1, 100, MIB, 64 * MIB] {
        let found = super::scan(&*queue.store, 0, crate::store::Cursor::at(MessageId::MIN), max_bytes).await;
        assert_eq!(found.ids(), ids);
        assert!(found.messages.iter().enumerate().all(|(n, m)| if n % 4 == 1 { m.value == large } else { m.value.len() < 6 }));
    }
    assert_eq!(queue.from(0, ids[2]).await.ids(), ids[2..]);
}

/// 16 MiB in one put, of large messages and of small ones.
pub(super) async fn the_largest_put(world: &mut World) {
    let queue = world.queue(1).await;
    let mut few = PutBatch::default();
    (0..4).for_each(|n| few.push(b"few", &vec![n; 4 * MIB - 100], &[]));
    let mut many = PutBatch::default();
    (0..36_000).for_each(|_| many.push(b"many", &[7; 400], &[]));
    let mut ids = queue.put_batch(0, few).await;
    ids.extend(queue.put_batch(0, many).await);
    ids.extend(queue.put(0, &["small"]).await);
    let queue = world.reopened(queue).await;
    let found = queue.all(0).await;
    assert!(found.ids() == ids, "{} of {} messages", found.messages.len(), ids.len());
    assert_eq!(queue.from(0, ids[20_000]).await.messages.len(), ids.len() - 20_000);
    assert_eq!(queue.count(0, MessageId::MIN, &["many"], 1_000_000).await, (36_000, true));
}

pub(super) async fn more_topics_than_are_noted(world: &mut World) {
    let mut queue = world.queue(1).await;
    for round in 0..3 {
        let mut batch = PutBatch::default();
        (0..100).for_each(|n| batch.push(format!("topic {n}").as_bytes(), format!("{round}/{n}").as_bytes(), &[]));
        queue.put_batch(0, batch).await;
        queue.put_as(0, "topic 7", &["alone"]).await;
    }
    for _ in 0..2 {
        let found = queue.all(0).await;
        assert_eq!(found.messages.len(), 303);
        assert_eq!(queue.count(0, MessageId::MIN, &["topic 7"], 1000).await, (6, true));
        assert_eq!(queue.count(0, found.messages[8].id, &["topic 7", "topic 99"], 1000).await, (8, true));
        queue = world.reopened(queue).await;
    }
}

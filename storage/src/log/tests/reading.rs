//! Reads that go to the files.

use hqueue_protocol::id::MessageId;

use super::{Rig, numbers};
use crate::conformance::batch;
use crate::store::{Cursor, MessageStore, MissingReason, TailRead};

/// Many partitions, many segments, batches of all sizes; each partition is read as it was put.
#[tokio::test]
async fn every_partition_is_read_from_everywhere() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut rig = Rig::real().without_tail();
    rig.spec.partitions = 20;
    let mut store = rig.open();
    let mut queue = rig.queue(&store).await;
    let mut put: Vec<Vec<MessageId>> = vec![Vec::new(); 20];
    for round in 0..300 {
        let partition = if random.u8(..) < 200 { random.i16(0..3) } else { random.i16(0..20) };
        let value = "v".repeat(random.usize(0..4000));
        let values = vec![&value[..]; random.usize(1..4)];
        put[partition as usize].extend(queue.put(partition, &values).await);
        rig.clock.advance(random.i64(0..3));
        if round % 70 == 69 {
            store.close().await;
            store = rig.open();
            queue = rig.queue(&store).await;
        }
    }
    for partition in 0..20 {
        let ids = &put[partition as usize];
        assert_eq!(queue.all(partition).await.ids(), *ids, "partition {partition}");
        for from in ids.iter().step_by(13) {
            let found = queue.from(partition, *from).await;
            let at = ids.iter().position(|id| id == from).unwrap();
            assert_eq!(found.ids(), ids[at..], "partition {partition} from {from}");
            assert_eq!(queue.count(partition, *from, &[], 0).await, ((ids.len() - at) as u64, true));
        }
        assert_eq!(queue.statistics(partition).await.messages, ids.len() as u64);
    }
    assert_eq!(store.counters().damaged_blocks, 0);
    store.close().await;
}

#[tokio::test]
async fn a_reader_that_goes_straight_on_searches_nothing() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    for _ in 0..50 {
        queue.put(0, &["v"]).await;
    }
    let mut cursor = Cursor::at(MessageId::MIN);
    for _ in 0..49 {
        let found = queue.read(0, cursor, 1).await;
        assert_eq!(found.blocks.len(), 1);
        assert!(found.next.hint.is_some() && found.next.hint != cursor.hint);
        cursor = found.next;
    }
    store.close().await;
}

#[tokio::test]
async fn expired_messages_are_counted_exactly_while_their_files_are_there() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let ids = queue.put(0, &["v"; 100]).await;
    let more = queue.put(0, &["v"; 50]).await;
    rig.clock.advance(rig.spec.ttl_ms + 1);
    for _ in 0..2 {
        for (from, missed) in [(MessageId::MIN, 150), (ids[30], 120), (more[0], 50), (more[49], 1), (more[49].successor(), 0)] {
            let found = queue.from(0, from).await;
            assert_eq!(found.missing_because(MissingReason::Expired), missed, "from {from}");
            assert!(found.next.unwrap().from > more[49]);
        }
    }
    assert_eq!(store.counters().expired_messages, 150);
    store.close().await;
}

#[tokio::test]
async fn a_damaged_block_at_the_end_is_told_and_passed() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    queue.put(0, &["one"]).await;
    let ids = queue.put(0, &["two", "three"]).await;
    let path = &rig.files(".segment")[0];
    let mut bytes = rig.bytes(path);
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last] ^= 1;
    rig.replace(path, &bytes);
    let found = queue.from(0, MessageId::MIN).await;
    assert_eq!((found.messages.len(), found.missing_because(MissingReason::Damaged)), (1, 2));
    assert!(found.next.unwrap().from > ids[1], "the reader goes on behind it");
    // Counted once, however often it is met.
    queue.from(0, ids[0]).await;
    assert_eq!(store.counters().damaged_blocks, 1);
    let more = queue.store.append(0, batch("t", &["four"])).unwrap();
    more.done.await.unwrap().unwrap();
    assert_eq!(numbers(&queue, 0).await, (vec![0, 3], 2));
    store.close().await;
}

/// What a reader gets does not keep more memory than windows: bodies are slices of them.
#[tokio::test]
async fn partitions_of_one_log_share_their_reads() {
    let mut rig = Rig::real().without_tail();
    rig.options.segment_bytes = 8 << 20;
    rig.spec.partitions = 100;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(1000);
    for _ in 0..20 {
        let appends: Vec<_> = (0..100).map(|p| queue.store.append(p, batch("t", &[&value])).unwrap().done).collect();
        for done in appends {
            done.await.unwrap().unwrap();
        }
    }
    store.close().await;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    for partition in 0..100 {
        assert_eq!(queue.all(partition).await.messages.len(), 20);
    }
    let reads = store.counters().disk_reads;
    assert!(reads <= 6, "{reads} reads for a log of 2.3 MB");
    store.close().await;
}

/// Who goes straight on through large blocks reads each of them once, and next to nothing beside them.
#[tokio::test]
async fn large_blocks_are_read_once() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(900_000);
    for _ in 0..10 {
        queue.put(0, &[&value]).await;
    }
    let before = store.counters().disk_read_bytes;
    let mut cursor = Cursor::at(MessageId::MIN);
    for _ in 0..10 {
        let found = queue.read(0, cursor, 1).await;
        assert_eq!(found.blocks.len(), 1);
        cursor = found.next;
    }
    let read = store.counters().disk_read_bytes - before;
    // The first one is searched for, in a window.
    assert!((9_000_000..10_200_000).contains(&read), "{read} bytes are read for 9,000,000");
    store.close().await;
}

/// A disk that cannot read some pages costs the blocks in them.
#[tokio::test]
async fn pages_that_cannot_be_read_are_passed_over() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(1000);
    for _ in 0..40 {
        queue.put(0, &[&value]).await;
    }
    store.close().await;
    let path = &rig.files(".segment")[0];
    rig.simulated.make_unreadable(path, 12_000..12_100).unwrap();
    for _ in 0..2 {
        let store = rig.open();
        let queue = rig.queue(&store).await;
        let (found, damaged) = numbers(&queue, 0).await;
        assert_eq!(found.len() as u64 + damaged, 40);
        assert!((1..=6).contains(&damaged), "{damaged} are damaged");
        assert!(store.counters().damaged_blocks >= 1);
        queue.put(1, &["goes on"]).await;
        store.close().await;
    }
}

#[tokio::test]
async fn the_oldest_blocks_of_all_queues_leave_memory_first() {
    let mut rig = Rig::simulated();
    rig.options.tail_cache_bytes = 100_000;
    let store = rig.open();
    let first = rig.queue(&store).await;
    rig.spec.name = "other".to_owned();
    rig.spec.uid = uuid::Uuid::from_u128(5);
    let second = rig.queue(&store).await;
    let value = "x".repeat(10_000);
    for _ in 0..4 {
        first.put(0, &[&value]).await;
    }
    assert!(matches!(first.tail(0, MessageId::MIN), TailRead::Blocks(blocks) if blocks.len() == 4));
    for _ in 0..7 {
        second.put(0, &[&value]).await;
    }
    assert!(matches!(first.tail(0, MessageId::MIN), TailRead::Cold));
    assert!(matches!(second.tail(0, MessageId::MIN), TailRead::Blocks(blocks) if blocks.len() == 7));
    let bytes = store.counters().tail_cache_bytes;
    assert!((80_000..=100_000).contains(&bytes), "{bytes} bytes");
    // A removed queue's share is freed as others need it.
    store.remove_queue("other", rig.spec.uid).await.unwrap();
    for _ in 0..20 {
        first.put(0, &[&value]).await;
    }
    assert!(store.counters().tail_cache_bytes <= 100_000);
    store.close().await;
}

//! A disk that is full, one that fails, no file descriptors.

use super::recovery::block_ends;
use super::{Rig, numbers, refused};
use crate::disk::PowerCut;
use crate::store::{MessageStore, StoreError};

#[tokio::test]
async fn a_full_disk_refuses_puts_and_nothing_else() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let mut ids = queue.put(0, &["before"]).await;
    rig.simulated.set_free_bytes(Some(50));
    let value = "x".repeat(20_000);
    for _ in 0..3 {
        let refusal = refused(&queue, 0, &[&value]).await;
        assert!(matches!(&refusal, StoreError::NoSpace { path, .. } if path.starts_with(rig.dir())), "{refusal:?}");
        assert!(refusal.is_retryable());
        assert_eq!(queue.all(0).await.ids(), ids, "reads go on");
    }
    assert_eq!(queue.committed(0).next_number, 1);
    rig.simulated.set_free_bytes(Some(1 << 20));
    ids.extend(queue.put(0, &["after"]).await);
    assert!(ids.is_sorted());
    assert_eq!(numbers(&queue, 0).await, (vec![0, 1], 0));
    store.close().await;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert_eq!(queue.all(0).await.ids(), ids);
    store.close().await;
}

/// Where zeros find no room behind a put, the put alone may: to the last byte.
#[tokio::test]
async fn a_put_that_fits_is_written_without_its_zeros() {
    let value = "x".repeat(20_000);
    // How many bytes the file has before the second put, and where its block ends.
    let (mut len, mut end) = (0, 0);
    for short_by in [-10_000, 1, 0, -1, -5_000] {
        let rig = Rig::simulated();
        let store = rig.open();
        let queue = rig.queue(&store).await;
        queue.put(0, &["first"]).await;
        let path = &rig.files(".segment")[0];
        len = rig.bytes(path).len() as i64;
        let free = if end == 0 { 1 << 20 } else { end - len - short_by };
        rig.simulated.set_free_bytes(Some(free as u64));
        if short_by > 0 {
            assert!(matches!(refused(&queue, 0, &[&value]).await, StoreError::NoSpace { .. }));
            rig.simulated.set_free_bytes(None);
        }
        queue.put(0, &[&value]).await;
        end = *block_ends(&rig, path).last().unwrap() as i64;
        assert_eq!(numbers(&queue, 0).await, (vec![0, 1], 0), "{free} bytes free");
        store.close().await;
    }
    assert!(end > len);
}

#[tokio::test]
async fn a_truncation_makes_its_own_room_on_a_full_disk() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(5000);
    for _ in 0..40 {
        queue.put(0, &[&value]).await;
    }
    rig.simulated.set_free_bytes(Some(0));
    queue.store.truncate().await.unwrap();
    assert_eq!(queue.all(0).await.ids(), []);
    let kept = queue.put(0, &[&value]).await;
    store.close().await;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert_eq!(queue.all(0).await.ids(), kept);
    assert_eq!(numbers(&queue, 0).await, (vec![40], 0));
    store.close().await;
}

/// Case S6: killed and started while the disk is full.
#[tokio::test]
async fn a_start_on_a_full_disk_serves_what_is_there() {
    let mut rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let mut ids = queue.put(0, &["one", "two"]).await;
    rig.simulated.set_free_bytes(Some(0));
    refused(&queue, 0, &[&"x".repeat(20_000)]).await;
    rig.cut_power(PowerCut::KeepAll);
    rig.simulated.set_free_bytes(Some(0));
    drop(store);
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert_eq!(queue.all(0).await.ids(), ids);
    assert!(matches!(refused(&queue, 0, &["refused"]).await, StoreError::NoSpace { .. }));
    rig.simulated.set_free_bytes(None);
    ids.extend(queue.put(0, &["three"]).await);
    assert_eq!(queue.all(0).await.ids(), ids);
    store.close().await;
}

#[tokio::test]
async fn expired_segments_give_their_space_to_a_full_disk() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(5000);
    for _ in 0..40 {
        queue.put(0, &[&value]).await;
    }
    rig.simulated.set_free_bytes(Some(0));
    while !matches!(refused_or_put(&queue, &value).await, Some(StoreError::NoSpace { .. })) {}
    rig.clock.advance(rig.spec.ttl_ms + 1);
    store.sweep();
    let mut tries = 0;
    while refused_or_put(&queue, &value).await.is_some() {
        tries += 1;
        assert!(tries < 10_000, "there is still no space");
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.all(0).await.messages.len(), 1);
    store.close().await;
}

async fn refused_or_put(queue: &crate::conformance::Queue, value: &str) -> Option<StoreError> {
    queue.store.append(0, crate::conformance::batch("t", &[value])).unwrap().done.await.unwrap().err()
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_acknowledged_until_a_reopening() {
    let mut rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let ids = queue.put(0, &["acknowledged"]).await;
    rig.simulated.fail_syncs(0, 1);
    for _ in 0..3 {
        let refusal = refused(&queue, 0, &["not certain"]).await;
        assert!(matches!(&refusal, StoreError::Poisoned { queue, .. } if queue == "q"), "{refusal:?}");
        assert!(!refusal.is_retryable());
    }
    assert!(matches!(queue.store.truncate().await, Err(StoreError::Poisoned { .. })));
    assert_eq!(queue.all(0).await.ids(), ids, "reads go on");
    let old = queue;
    let queue = rig.queue(&store).await;
    assert!(matches!(refused(&old, 0, &["v"]).await, StoreError::Closed | StoreError::Poisoned { .. }));
    let mut seen = queue.all(0).await.ids();
    assert!(seen.starts_with(&ids) && seen.len() <= 2);
    seen.extend(queue.put(0, &["after"]).await);
    // What was not synced by the failed sync was seen since: it must be durable.
    rig.cut_power(PowerCut::LoseUnsynced);
    drop(store);
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert_eq!(queue.all(0).await.ids(), seen);
    store.close().await;
}

#[tokio::test]
async fn a_failed_write_poisons_too_and_so_does_one_of_a_header() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    queue.put(0, &["v"]).await;
    rig.simulated.fail_writes(0, 1);
    assert!(matches!(refused(&queue, 0, &["v"]).await, StoreError::Poisoned { .. }));
    let queue = rig.queue(&store).await;
    // The first write behind a reopening is that of a header: nothing is lost by it.
    rig.simulated.fail_writes(0, 1);
    assert!(matches!(refused(&queue, 0, &["v"]).await, StoreError::Io { .. }));
    queue.put(0, &["v"]).await;
    assert_eq!(numbers(&queue, 0).await, (vec![0, 1], 0));
    store.close().await;
}

/// Case N2: too many open files.
#[tokio::test]
async fn without_file_descriptors_nothing_is_taken_for_damage() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(3000);
    let mut ids = Vec::new();
    for _ in 0..30 {
        ids.extend(queue.put(0, &[&value]).await);
    }
    let segments = rig.files(".segment").len();
    rig.simulated.refuse_opens(true);
    let mut refusals = 0;
    for _ in 0..60 {
        // Until the segment is full, puts need no descriptor.
        let append = queue.store.append(0, crate::conformance::batch("t", &[&value])).unwrap();
        match append.done.await.unwrap() {
            Ok(()) => ids.extend(append.ids.iter()),
            Err(StoreError::Io { reason, .. }) => {
                assert!(reason.contains("os error 24"), "{reason}");
                refusals += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(refusals > 10);
    rig.simulated.refuse_opens(false);
    assert!(rig.files(".segment").len() - segments <= 1, "files were begun without end");
    ids.extend(queue.put(0, &[&value]).await);
    assert_eq!(queue.all(0).await.ids(), ids);
    assert_eq!(store.counters().damaged_blocks, 0);
    // A start without descriptors fails, and the next one finds everything.
    store.close().await;
    let store = rig.open();
    rig.simulated.refuse_opens(true);
    assert!(matches!(rig.try_queue(&store).await, Err(StoreError::Io { .. })));
    rig.simulated.refuse_opens(false);
    assert_eq!(rig.queue(&store).await.all(0).await.ids(), ids);
    store.close().await;
}

#[tokio::test]
async fn short_writes_are_carried_on() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    rig.simulated.set_write_limit(Some(97));
    let ids = queue.put(0, &[&"x".repeat(1000), "", "short"]).await;
    assert_eq!(queue.all(0).await.ids(), ids);
    store.close().await;
}

#[tokio::test]
async fn a_queue_has_a_limit_of_bytes_that_wait() {
    let mut rig = Rig::simulated();
    rig.options.waiting_bytes = 1 << 20;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let big = "x".repeat(700 << 10);
    let mut waiting = Vec::new();
    let refusal = loop {
        match queue.store.append(0, crate::conformance::batch("t", &[&big])) {
            Ok(append) => waiting.push(append.done),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refusal, StoreError::Busy { limit_bytes: 1_048_576, .. }), "{refusal:?}");
    for done in waiting {
        done.await.unwrap().unwrap();
    }
    // One batch alone is taken whatever its size.
    queue.put(0, &[&"x".repeat(2 << 20)]).await;
    assert!(rig.disk.exists(&rig.dir()).unwrap());
    store.close().await;
}

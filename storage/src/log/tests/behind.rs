//! Puts that are answered when they are written, and synced behind that.

use std::time::Duration;

use super::*;
use crate::conformance::batch;
use crate::store::Durability;

/// A disk on which a segment is full after a few puts, and a sync follows almost at once.
fn rig() -> Rig {
    let mut rig = Rig::simulated();
    rig.options.durability = Durability::Async;
    rig.options.async_sync = Duration::from_millis(1);
    rig
}

#[tokio::test]
async fn a_power_cut_takes_no_more_than_the_end_of_what_was_put() {
    for seed in 0..60_u64 {
        let random = fastrand::Rng::with_seed(seed);
        let (mut random, mut rig) = (random, rig());
        let store = rig.open();
        let queue = rig.queue(&store).await;
        rig.simulated.cut_power_after(Some(random.u64(4..120)));
        let mut acknowledged = Vec::new();
        for _ in 0..100 {
            let value = "v".repeat(random.usize(1..20_000));
            let Ok(append) = queue.store.append(0, batch("t", &[&value])) else { break };
            if !matches!(append.done.await, Ok(Ok(()))) {
                break;
            }
            acknowledged.extend(append.ids.iter());
        }
        let how = if random.bool() { PowerCut::LoseUnsynced } else { PowerCut::KeepAll };
        rig.cut_power(how);
        drop(store);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        let found = queue.all(0).await;
        assert_eq!(found.missing, [], "seed {seed}, {how:?}");
        let ids = found.ids();
        let (kept, beyond) = ids.split_at(ids.len().min(acknowledged.len()));
        assert!(acknowledged.starts_with(kept), "seed {seed}, {how:?}");
        // The put that met the cut may be there.
        assert!(beyond.len() <= 1, "seed {seed}, {how:?}");
        if how == PowerCut::KeepAll {
            assert_eq!(kept.len(), acknowledged.len(), "seed {seed}: only the process ended");
        }
        store.close().await;
    }
}

#[tokio::test]
async fn a_segment_that_ends_and_a_queue_that_closes_leave_nothing_unsynced() {
    for seed in 0..20_u64 {
        let (mut random, mut rig) = (fastrand::Rng::with_seed(seed), rig());
        let store = rig.open();
        let queue = rig.queue(&store).await;
        let mut ids = Vec::new();
        for _ in 0..random.usize(1..40) {
            ids.extend(queue.put(0, &[&"v".repeat(random.usize(1..20_000))]).await);
        }
        if random.bool() {
            rig.spec.ttl_ms += 1;
            // Opened under another description, it is closed before.
            let queue = rig.queue(&store).await;
            rig.cut_power(PowerCut::LoseUnsynced);
            drop(queue);
        } else {
            store.close().await;
            rig.cut_power(PowerCut::LoseUnsynced);
        }
        drop(store);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        assert_eq!(queue.all(0).await.ids(), ids, "seed {seed}");
        store.close().await;
    }
}

#[tokio::test]
async fn without_sync_appends_are_answered_at_once_and_synced_soon() {
    let mut rig = Rig::simulated();
    rig.options.durability = Durability::Async;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    queue.put(0, &["begins the segment"]).await;
    rig.simulated.fail_syncs(0, 1);
    let ids = queue.put(0, &["answered before it is synced"]).await;
    // The sync that comes soon fails: then nothing is taken any more.
    let mut tries = 0;
    while !matches!(queue.store.append(0, batch("t", &["v"])), Err(StoreError::Poisoned { .. })) {
        tries += 1;
        assert!(tries < 5000, "no sync came");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let queue = rig.queue(&store).await;
    assert!(queue.all(0).await.ids().contains(&ids[0]));
    let more = queue.put(0, &["after"]).await;
    store.close().await;
    // A close syncs.
    rig.cut_power(PowerCut::LoseUnsynced);
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert!(queue.all(0).await.ids().ends_with(&more));
    store.close().await;
}

#[tokio::test]
async fn without_sync_nobody_waits_for_a_slow_sync_but_a_close() {
    let mut rig = Rig::simulated();
    rig.options.durability = Durability::Async;
    // A new segment begins behind a synced one.
    rig.options.segment_bytes = 1 << 30;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    queue.put(0, &["begins the segment"]).await;
    rig.simulated.hold_syncs(true);
    let begun = store.counters().syncs;
    // Longer than it takes until a sync is due.
    let until = std::time::Instant::now() + 3 * rig.options.async_sync;
    let puts = async {
        let mut ids = Vec::new();
        while std::time::Instant::now() < until {
            ids.extend(queue.put(0, &["is answered while the disk does not answer"]).await);
        }
        ids
    };
    let ids = tokio::time::timeout(Duration::from_secs(20), puts).await;
    let mut close = std::pin::pin!(store.close());
    let waits = tokio::time::timeout(Duration::from_millis(50), &mut close).await;
    rig.simulated.hold_syncs(false);
    let ids = ids.expect("puts wait for a sync");
    assert!(waits.is_err(), "a close does not wait for what it promises");
    close.await;
    assert!(store.counters().syncs > begun);
    rig.cut_power(PowerCut::LoseUnsynced);
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert!(queue.all(0).await.ids().ends_with(&ids));
    store.close().await;
}

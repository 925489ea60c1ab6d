//! Files that are used again.

use super::{Rig, SegmentStore, numbers};
use crate::conformance::Queue;
use crate::disk::PowerCut;
use crate::store::MessageStore;

async fn fill(queue: &Queue, puts: usize) {
    let value = "x".repeat(4000);
    for _ in 0..puts {
        queue.put(0, &[&value]).await;
    }
}

/// Sweeps until the queue has one segment and so many spare files.
async fn swept(rig: &Rig, store: &SegmentStore, spares: usize) {
    let files = || (rig.files(".segment").len(), rig.files(".spare").len());
    for _ in 0..5000 {
        store.sweep();
        if files() == (1, spares) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("there are still {:?} segments and spare files", files());
}

#[tokio::test]
async fn expired_files_come_back_as_segments_of_a_new_epoch() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    fill(&queue, 80).await;
    let before = rig.files(".segment");
    rig.clock.advance(rig.spec.ttl_ms + 1);
    let kept = queue.put(0, &["kept"]).await;
    swept(&rig, &store, 2).await;
    assert_eq!(queue.all(0).await.ids(), kept);
    fill(&queue, 40).await;
    assert_eq!(rig.files(".spare").len(), 0);
    assert!(rig.files(".segment").iter().all(|path| !before.contains(path) || *path == *before.last().unwrap()));
    assert_eq!(store.counters().expired_messages, 80);
    // Old bytes lie behind the blocks of the newest segment.
    let mut rig = rig;
    for how in [PowerCut::KeepAll, PowerCut::LoseUnsynced] {
        rig.cut_power(how);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        assert_eq!(numbers(&queue, 0).await, ((80..121).collect(), 0), "{how:?}");
    }
}

#[tokio::test]
async fn a_queue_that_nobody_uses_keeps_no_space_for_what_has_expired() {
    let rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    fill(&queue, 80).await;
    let committed = queue.committed(0);
    rig.clock.advance(rig.spec.ttl_ms + 1);
    assert_eq!(queue.all(0).await.ids(), [], "a reader meets it first");
    swept(&rig, &store, 0).await;
    let left = rig.bytes(&rig.files(".segment")[0]);
    assert_eq!(left.len(), 4096, "a header");
    store.close().await;
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert_eq!(queue.committed(0), committed);
    assert_eq!(queue.all(0).await.ids(), []);
    fill(&queue, 1).await;
    assert_eq!(numbers(&queue, 0).await, (vec![80], 0));
    store.close().await;
}

#[tokio::test]
async fn nothing_is_dropped_while_the_clock_is_doubted() {
    let rig = Rig::simulated().without_tail();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    fill(&queue, 40).await;
    let files = rig.files(".segment");
    rig.clock.set_wall(crate::conformance::START_MS + 10 * rig.spec.ttl_ms);
    store.sweep();
    queue.put(1, &["a group behind the sweep"]).await;
    assert!(rig.files(".segment").starts_with(&files));
    assert_eq!(numbers(&queue, 0).await.0.len(), 40);
    store.close().await;
}

/// At every moment of a sweep and of the use of a file that follows, the power is cut.
#[tokio::test]
async fn what_is_gone_stays_gone_and_the_rest_stays_at_any_cut() {
    for cut in 0..30 {
        let mut rig = Rig::simulated();
        let store = rig.open();
        let queue = rig.queue(&store).await;
        fill(&queue, 40).await;
        rig.clock.advance(rig.spec.ttl_ms + 1);
        let kept = queue.put(0, &["kept"]).await;
        assert_eq!(queue.all(0).await.ids(), kept);
        rig.simulated.cut_power_after(Some(cut));
        store.sweep();
        let mut acknowledged = kept;
        for _ in 0..20 {
            let append = queue.store.append(0, crate::conformance::batch("t", &[&"y".repeat(5000)]));
            let Ok(append) = append else { break };
            if matches!(append.done.await, Ok(Ok(()))) {
                acknowledged.extend(append.ids.iter());
            }
        }
        rig.cut_power(if cut % 2 == 0 { PowerCut::LoseUnsynced } else { PowerCut::Random(cut) });
        drop(store);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        let found = queue.all(0).await;
        assert!(found.ids().starts_with(&acknowledged), "cut {cut}");
        assert_eq!(found.missing_because(crate::store::MissingReason::Damaged), 0, "cut {cut}");
        store.close().await;
        assert!(rig.disk.exists(&rig.dir()).unwrap());
    }
}

#[tokio::test]
async fn what_readers_were_told_has_expired_does_not_come_back_with_a_slow_clock() {
    let mut rig = Rig::simulated();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    queue.put(0, &["gone"; 3]).await;
    rig.clock.advance(rig.spec.ttl_ms + 1);
    assert_eq!(queue.all(0).await.ids(), []);
    store.sweep();
    // The sweep's record is written with the first group at the latest, so that it is durable before the second.
    let mut kept = queue.put(0, &["kept"]).await;
    kept.extend(queue.put(0, &["kept"]).await);
    rig.cut_power(PowerCut::LoseUnsynced);
    rig.clock.set_wall(crate::conformance::START_MS);
    drop(store);
    let store = rig.open();
    let queue = rig.queue(&store).await;
    assert_eq!(queue.all(0).await.ids(), kept);
    store.close().await;
}

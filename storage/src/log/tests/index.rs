//! An index that is lost, damaged, incomplete or wrong changes no answer.

use std::path::{Path, PathBuf};

use hqueue_protocol::id::MessageId;

use super::{Rig, SegmentStore, UID};
use crate::conformance::Queue;
use crate::store::MessageStore;

/// Some segments full of two partitions, closed.
async fn filled(rig: &Rig) -> [Vec<MessageId>; 2] {
    let store = rig.open();
    let queue = rig.queue(&store).await;
    let value = "x".repeat(2500);
    let mut ids = [Vec::new(), Vec::new()];
    for n in 0..120 {
        ids[n % 2].extend(queue.put(n as i16 % 2, &[&value]).await);
        rig.clock.advance(1);
    }
    store.close().await;
    ids
}

async fn expect_all(queue: &Queue, ids: &[Vec<MessageId>; 2]) {
    for (partition, ids) in ids.iter().enumerate() {
        let partition = partition as i16;
        assert_eq!(queue.all(partition).await.ids(), *ids);
        for n in [1, 20, 40, 59] {
            assert_eq!(queue.from(partition, ids[n]).await.ids(), ids[n..], "from {n}");
            assert_eq!(queue.count(partition, ids[n], &[], 0).await, (60 - n as u64, true));
        }
    }
}

/// Waits until all sealed segments are in the index.
async fn indexed(store: &SegmentStore, segments: usize) {
    for _ in 0..5000 {
        if store.indexed_epoch(UID) + 1 >= segments as u64 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("only {} of {segments} segments are in the index", store.indexed_epoch(UID));
}

fn index_files(rig: &Rig) -> Vec<PathBuf> {
    fn all(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { all(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    all(&rig.options.data.join("index"), &mut found);
    found
}

#[tokio::test]
async fn a_closed_store_comes_back_with_its_index() {
    let rig = Rig::real().without_tail();
    let ids = filled(&rig).await;
    let segments = rig.files(".segment").len();
    for _ in 0..2 {
        let store = rig.open();
        let queue = rig.queue(&store).await;
        indexed(&store, segments).await;
        expect_all(&queue, &ids).await;
        store.close().await;
    }
    let store = rig.open();
    assert_eq!(store.indexed_epoch(UID) + 1, segments as u64, "it was all there");
    store.close().await;
}

type Harm = fn(&Rig);

#[tokio::test]
async fn a_lost_or_damaged_index_is_built_anew() {
    let rig = Rig::real().without_tail();
    let ids = filled(&rig).await;
    let segments = rig.files(".segment").len();
    let harm: [(&str, Harm); 7] = [
        ("no folder", |rig| std::fs::remove_dir_all(rig.options.data.join("index")).unwrap()),
        ("no checkpoint", |rig| std::fs::remove_file(rig.options.data.join("checkpoint")).unwrap()),
        ("a checkpoint of zeros", |rig| std::fs::write(rig.options.data.join("checkpoint"), [0; 200]).unwrap()),
        ("an empty checkpoint", |rig| std::fs::write(rig.options.data.join("checkpoint"), []).unwrap()),
        ("empty files", |rig| index_files(rig).iter().for_each(|path| std::fs::write(path, []).unwrap())),
        ("files of rubbish", |rig| index_files(rig).iter().for_each(|path| std::fs::write(path, [0x5a; 9000]).unwrap())),
        ("no files", |rig| index_files(rig).iter().for_each(|path| std::fs::remove_file(path).unwrap())),
    ];
    for (what, harm) in harm {
        harm(&rig);
        let store = rig.open();
        let queue = rig.queue(&store).await;
        expect_all(&queue, &ids).await;
        indexed(&store, segments).await;
        expect_all(&queue, &ids).await;
        assert_eq!(store.counters().damaged_blocks, 0, "{what}");
        store.close().await;
    }
}

#[tokio::test]
async fn holes_in_the_index_hide_nothing() {
    let rig = Rig::real().without_tail();
    let ids = filled(&rig).await;
    let segments = rig.files(".segment").len();
    for keep in 0..4 {
        let store = rig.open();
        let queue = rig.queue(&store).await;
        indexed(&store, segments).await;
        let index = store.index();
        index.tear_holes(UID, |n| n % 4 == keep);
        expect_all(&queue, &ids).await;
        store.close().await;
    }
}

#[tokio::test]
async fn a_wrong_entry_is_found_out_and_the_index_built_anew() {
    let rig = Rig::real().without_tail();
    let ids = filled(&rig).await;
    let segments = rig.files(".segment").len();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    indexed(&store, segments).await;
    store.index().falsify(UID);
    expect_all(&queue, &ids).await;
    assert_eq!(store.counters().damaged_blocks, 0, "a wrong entry is no damage of the log");
    store.sweep();
    indexed(&store, segments).await;
    expect_all(&queue, &ids).await;
    store.close().await;
}

/// Of segments that are gone the index still tells about how many messages were in them.
#[tokio::test]
async fn a_reader_of_what_is_gone_is_told_about_how_much_it_was() {
    let rig = Rig::real().without_tail();
    let ids = filled(&rig).await;
    let segments = rig.files(".segment").len();
    let store = rig.open();
    let queue = rig.queue(&store).await;
    indexed(&store, segments).await;
    rig.clock.advance(rig.spec.ttl_ms + 1);
    let kept = queue.put(0, &["kept"]).await;
    let mut sweeps = 0;
    while rig.files(".segment").len() > 1 {
        sweeps += 1;
        assert!(sweeps < 5000, "the segments are still there");
        store.sweep();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    for n in [5, 30, 55] {
        let found = queue.from(0, ids[0][n]).await;
        assert_eq!(found.ids(), kept);
        let told = found.missing_because(crate::store::MissingReason::Expired);
        let right = 60 - n as u64;
        assert!((right..right + 15).contains(&told), "told of {told}, it were {right}");
    }
    store.close().await;
}

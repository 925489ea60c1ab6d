//! What has been written leaves the system's memory, unless somebody reads it from there.

use hqueue_protocol::id::MessageId;
use hqueue_storage::conformance::scan;
use hqueue_storage::store::{Cursor, Durability};

use crate::support::{Lab, Lie, Opened, ProcessDisk, run};

const SEGMENT: u64 = 20 << 20;

/// A store with large segments.
fn lab(durability: Durability, tail_cache_bytes: usize) -> Lab {
    let mut lab = Lab::new(1);
    lab.options.segment_bytes = SEGMENT;
    lab.options.durability = durability;
    lab.options.tail_cache_bytes = tail_cache_bytes;
    lab
}

/// A good 30 MiB: a segment and a half.
async fn fill(opened: &Opened, mut after_each: impl AsyncFnMut()) {
    let value = "x".repeat(1 << 20);
    for _ in 0..30 {
        opened.queue.put(0, &[&value]).await;
        after_each().await;
    }
}

#[test]
fn what_nobody_reads_is_let_go_of_once_it_is_synced() {
    for durability in [Durability::Sync, Durability::Async] {
        run(async {
            let lab = lab(durability, 64 << 20);
            let disk = ProcessDisk::new(lab.disk(), Lie::None);
            let opened = lab.open(disk.clone()).await;
            fill(&opened, async || {}).await;
            opened.store.close().await;
            let let_go = disk.let_go();
            assert!(let_go.iter().all(|one| one.bytes.end <= one.synced), "{durability:?}: {let_go:?}");
            let starts: Vec<usize> = (0..let_go.len()).filter(|n| let_go[*n].bytes.start == 0).collect();
            assert_eq!(starts.len(), 2, "{durability:?}, two segments: {let_go:?}");
            for segment in [&let_go[..starts[1]], &let_go[starts[1]..]] {
                let joined = segment.windows(2).all(|two| two[0].bytes.end == two[1].bytes.start);
                assert!(joined, "{durability:?}, piece by piece: {segment:?}");
            }
            assert!(let_go[starts[1] - 1].bytes.end > SEGMENT - (2 << 20), "the first segment, all of it: {let_go:?}");
        });
    }
}

#[test]
fn what_is_read_from_the_disk_is_kept() {
    run(async {
        let lab = lab(Durability::Sync, 0);
        let disk = ProcessDisk::new(lab.disk(), Lie::None);
        let opened = lab.open(disk.clone()).await;
        fill(&opened, async || {
            let found = scan(&*opened.queue.store, 0, Cursor::at(MessageId::MIN), 1 << 20).await;
            assert!(!found.messages.is_empty());
        })
        .await;
        assert_eq!(disk.let_go(), [], "a reader is behind");
        fill(&opened, async || {}).await;
        opened.store.close().await;
        assert!(!disk.let_go().is_empty(), "nobody is any more");
    });
}

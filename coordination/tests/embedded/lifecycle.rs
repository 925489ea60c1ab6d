//! Opening, rewriting the journal, ending.

use std::sync::Arc;

use hqueue_coordination::embedded::EmbeddedCoordinator;
use hqueue_coordination::{CoordinationError, Coordinator, NodeKind, SharedCoordinator, create_all};
use hqueue_storage::disk::{Disk, PowerCut, RealDisk, SimulatedDisk};
use tokio::task::JoinSet;

use crate::support::{DIR, dump, open};

#[tokio::test]
async fn a_new_tree_says_so() {
    let disk = SimulatedDisk::new();
    let c = open(&disk);
    assert!(c.is_new() && dump(&*c).await.is_empty());
    c.close().await;
    drop(c);
    assert!(!open(&disk).is_new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_is_written_anew_before_it_grows_large() {
    const MIB: u64 = 1024 * 1024;
    let disk = SimulatedDisk::new();
    let c = open(&disk);
    create_all(&*c, "/p/below").await.unwrap();
    c.create("/p/e", b"ephemeral", NodeKind::Ephemeral).await.unwrap();
    c.create("/p/s-", b"", NodeKind::EphemeralSequential).await.unwrap();
    let payload = vec![7; 60 * 1024];
    for round in 0..40 {
        let writes: JoinSet<_> = (0..20)
            .map(|n| {
                let (c, payload) = (c.clone(), payload.clone());
                async move {
                    let path = format!("/n{n}");
                    match round {
                        0 => drop(c.create(&path, &payload, NodeKind::Persistent).await.unwrap()),
                        _ => assert_eq!(c.set(&path, &payload, Some(round - 1)).await, Ok(round)),
                    }
                }
            })
            .collect();
        writes.join_all().await;
    }
    let len = disk.open(std::path::Path::new(crate::support::JOURNAL)).unwrap().len().unwrap();
    assert!(len < 20 * MIB, "{len} bytes after 47 MiB were written");
    c.set("/n3", b"after", None).await.unwrap();
    let after = disk.power_cut(PowerCut::LoseUnsynced);
    let again = open(&after);
    let found = dump(&*again).await;
    assert_eq!(found.len(), 22, "the persistent nodes");
    for n in 0..20 {
        let expected = if n == 3 { (b"after".to_vec(), 40) } else { (payload.clone(), 39) };
        assert!(found[&format!("/n{n}")] == expected, "/n{n}");
    }
    assert_eq!(again.create("/p/s-", b"", NodeKind::EphemeralSequential).await.unwrap().path, "/p/s-0000000001");
    assert_eq!(after.list(std::path::Path::new(DIR)).unwrap().len(), 1);
}

#[tokio::test]
async fn a_drop_frees_the_folder_and_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let c = EmbeddedCoordinator::open(Arc::clone(&disk), folder.path()).unwrap();
        let second = c.open_session().unwrap();
        if round == 0 {
            c.create("/n", b"", NodeKind::Persistent).await.unwrap();
        }
        assert_eq!(c.set("/n", b"", Some(round)).await, Ok(round + 1));
        drop(c);
        second.get("/n").await.unwrap().unwrap();
        drop(second);
        assert_eq!(Arc::strong_count(&disk), 1, "the thread that had the journal has ended");
    }
}

#[tokio::test]
async fn the_last_close_ends_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let c = EmbeddedCoordinator::open(Arc::clone(&disk), folder.path()).unwrap();
    let second = c.open_session().unwrap();
    c.close().await;
    second.create("/n", b"", NodeKind::Persistent).await.unwrap();
    assert!(c.open_session().is_ok(), "the tree is open as long as a session is");
    second.close().await;
    assert_eq!(Arc::strong_count(&disk), 1);
    assert_eq!(second.open_session().map(|_| ()), Err(CoordinationError::Closed));
}

/// A coordinator is used as an object, and its last holder may be anywhere.
#[tokio::test(flavor = "current_thread")]
async fn it_can_be_dropped_on_the_thread_of_the_runtime() {
    let c: SharedCoordinator = open(&SimulatedDisk::new());
    c.create("/n", b"", NodeKind::Ephemeral).await.unwrap();
    drop(c);
}

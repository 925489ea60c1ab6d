//! A full disk, a disk that fails, a journal that is damaged.

use std::path::Path;
use std::sync::Arc;

use hqueue_coordination::embedded::EmbeddedCoordinator;
use hqueue_coordination::{CoordinationError as E, Coordinator, NodeKind, Observed};
use hqueue_storage::disk::{Disk, PowerCut, SimulatedDisk, read_file, write_file_atomically};
use hqueue_storage::journal::JournalError;

use crate::support::{DIR, JOURNAL, dump, open, try_open};

/// Reads and what goes with the session work on, whatever became of the journal.
async fn the_rest_goes_on(c: &EmbeddedCoordinator) {
    assert_eq!(c.get("/p").await.unwrap().unwrap().payload, b"kept");
    assert_eq!(c.children("/p").await.unwrap(), Some(vec![]));
    let watched = c.watch_children("/p");
    let created = c.create("/p/e", b"a", NodeKind::Ephemeral).await.unwrap();
    assert_eq!(c.set("/p/e", b"b", Some(0)).await, Ok(1));
    assert_eq!(*watched.borrow(), Observed::Seen(Some(vec!["e".to_owned()])));
    c.delete(&created.path, Some(1)).await.unwrap();
    assert!(
        matches!(c.create("/p", b"", NodeKind::Persistent).await, Err(E::NodeExists(_))),
        "what is wrong with a call comes first"
    );
}

#[tokio::test]
async fn a_full_disk_refuses_persistent_writes_until_there_is_space() {
    let disk = SimulatedDisk::new();
    let c = open(&disk);
    c.create("/p", b"kept", NodeKind::Persistent).await.unwrap();
    disk.set_free_bytes(Some(20));
    let refusals = [
        c.create("/q", b"", NodeKind::Persistent).await.unwrap_err(),
        c.set("/p", b"", None).await.unwrap_err(),
        c.delete("/p", None).await.unwrap_err(),
        c.create("/p/n-", b"", NodeKind::EphemeralSequential).await.unwrap_err(),
    ];
    for error in refusals {
        assert!(matches!(error, E::NoSpace(_)) && error.is_retryable() && !error.may_have_happened(), "{error}");
        assert!(error.to_string().contains("20 bytes free") && error.to_string().contains(JOURNAL), "{error}");
    }
    the_rest_goes_on(&c).await;
    disk.set_free_bytes(None);
    assert_eq!(c.set("/p", b"new", Some(0)).await, Ok(1));
    let found = dump(&*open(&disk.power_cut(PowerCut::LoseUnsynced))).await;
    assert_eq!(found, [("/p".to_owned(), (b"new".to_vec(), 1))].into());
}

#[tokio::test]
async fn a_full_disk_does_not_stop_a_start_or_an_end() {
    let disk = SimulatedDisk::new();
    let c = open(&disk);
    c.create("/p", b"kept", NodeKind::Persistent).await.unwrap();
    disk.set_free_bytes(Some(0));
    c.close().await;
    let c = open(&disk);
    the_rest_goes_on(&c).await;
    assert!(matches!(c.set("/p", b"", None).await, Err(E::NoSpace(_))));
}

#[tokio::test]
async fn after_a_failed_sync_nothing_persistent_is_written_until_a_restart() {
    let disk = SimulatedDisk::new();
    let c = open(&disk);
    c.create("/p", b"kept", NodeKind::Persistent).await.unwrap();
    disk.fail_syncs(0, 1);
    let first = c.set("/p", b"lost", None).await.unwrap_err();
    assert!(first.may_have_happened() && !first.is_retryable(), "{first}");
    let later = c.set("/p", b"lost too", None).await.unwrap_err();
    assert!(matches!(&later, E::Failed(reason) if reason.contains("until it is reopened")), "{later}");
    the_rest_goes_on(&c).await;
    drop(c);
    let c = open(&disk);
    c.set("/p", b"works", None).await.unwrap();
}

#[tokio::test]
async fn a_damaged_journal_is_refused_with_the_remedy() {
    let disk = SimulatedDisk::new();
    let c = open(&disk);
    for name in ["a", "b", "c"] {
        c.create(&format!("/{name}"), b"payload", NodeKind::Persistent).await.unwrap();
    }
    c.close().await;
    let mut bytes = read_file(&disk, Path::new(JOURNAL), 1 << 20).unwrap();
    let at = bytes.windows(2).position(|two| two == b"/b").unwrap();
    bytes[at] ^= 1;
    write_file_atomically(&disk, Path::new(JOURNAL), &bytes).unwrap();
    let error = try_open(&disk).unwrap_err();
    let JournalError::Damaged { offset, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(&format!("truncate -s {offset} '{JOURNAL}'")), "{error}");
    disk.open(Path::new(JOURNAL)).unwrap().set_len(*offset).unwrap();
    assert_eq!(dump(&*open(&disk)).await.keys().collect::<Vec<_>>(), ["/a"]);
}

/// A journal whose blocks are whole but whose changes do not follow one another.
#[tokio::test]
async fn records_that_do_not_fit_are_refused() {
    use hqueue_storage::journal::{Journal, RecordBatch};
    let create = |path: &str| [&[1, 0, 0, 0, 0, 0, u8::try_from(path.len()).unwrap()], path.as_bytes(), b"payload"].concat();
    let delete = |path: &str| [&[3, 0, 0, 0, 0, 0, u8::try_from(path.len()).unwrap()], path.as_bytes()].concat();
    for (records, why) in [
        (vec![create("/a/b")], "node /a/b is created without a parent"),
        (vec![create("/a"), create("/a")], "node /a is created but exists"),
        (vec![create("/a"), create("/a/b"), delete("/a")], "node /a is deleted but does not exist or has children"),
        (vec![create("/a"), vec![9, 0, 0, 0, 0, 0, 0]], "a record has kind 9, which this program does not know"),
        (vec![vec![1, 0]], "a record of 2 bytes is too short"),
    ] {
        let disk = SimulatedDisk::new();
        let mut journal = Journal::open(Arc::new(disk.clone()), Path::new(DIR), "coordination.journal", &mut |_| Ok(())).unwrap();
        let mut batch = RecordBatch::default();
        records.iter().for_each(|record| batch.push(&[record]));
        journal.append(&batch).unwrap();
        let error = try_open(&disk).unwrap_err();
        assert!(matches!(&error, JournalError::Damaged { reason, .. } if reason == why), "{error}");
    }
}

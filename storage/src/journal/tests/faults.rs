use super::*;
use crate::disk::PowerCut;

#[test]
fn without_space_it_goes_on_where_it_was() {
    for free in 0..150 {
        let disk = SimulatedDisk::new();
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&batch(&["before"])).unwrap();
        let len = journal.byte_len();
        disk.set_free_bytes(Some(free));
        let large = "x".repeat(150);
        for _ in 0..3 {
            let error = journal.append(&batch(&[&large])).unwrap_err();
            let JournalError::NoSpace { path, free_bytes } = &error else { panic!("{error}") };
            assert_eq!((path.as_path(), *free_bytes, error.is_retryable()), (Path::new(FILE), free, true));
            assert_eq!((journal.byte_len(), bytes_of(&disk).len() as u64), (len, len));
        }
        if free >= 50 {
            journal.append(&batch(&["small"])).unwrap();
        }
        disk.set_free_bytes(None);
        journal.append(&batch(&[&large])).unwrap();
        let expected = ["before", "small", &large].map(str::to_owned).to_vec();
        let expected: Vec<_> = expected.into_iter().filter(|record| free >= 50 || record != "small").collect();
        assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), expected);
    }
}

#[test]
fn it_opens_on_a_full_disk() {
    let disk = SimulatedDisk::new();
    open(&disk).unwrap().0.append(&batch(&["a"])).unwrap();
    disk.set_free_bytes(Some(0));
    let (mut journal, records) = open(&disk).unwrap();
    assert_eq!(records, ["a"]);
    assert!(matches!(journal.append(&batch(&["b"])), Err(JournalError::NoSpace { .. })));
    disk.set_free_bytes(Some(1000));
    journal.append(&batch(&["b"])).unwrap();
    assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["a", "b"]);
}

#[test]
fn after_a_failed_sync_it_refuses_until_it_is_reopened() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a"])).unwrap();
    disk.fail_syncs(0, 1);
    assert!(matches!(journal.append(&batch(&["b"])), Err(JournalError::Io { what: "syncing", .. })));
    for _ in 0..2 {
        let error = journal.append(&batch(&["c"])).unwrap_err();
        assert!(matches!(error, JournalError::Poisoned { .. }) && error.to_string().contains("until it is reopened"), "{error}");
        assert!(!error.is_retryable());
    }
    assert!(matches!(journal.rewrite(&mut |_| {}), Err(JournalError::Poisoned { .. })));
    let (mut journal, records) = open(&disk).unwrap();
    // `b` was never acknowledged: it may be there or not, but once it is seen it stays.
    journal.append(&batch(&["d"])).unwrap();
    let mut expected = records;
    expected.push("d".to_owned());
    assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), expected);
}

#[test]
fn what_a_failed_sync_left_in_memory_is_made_durable_when_it_is_read() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    disk.fail_syncs(0, 1);
    journal.append(&batch(&["a"])).unwrap_err();
    let (journal, records) = open(&disk).unwrap();
    assert_eq!(records, ["a"], "the file shows what was written");
    drop(journal);
    assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["a"]);
}

#[test]
fn after_a_failed_write_it_refuses_until_it_is_reopened() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a"])).unwrap();
    disk.fail_writes(0, 1);
    assert!(matches!(journal.append(&batch(&["b"])), Err(JournalError::Io { what: "writing", .. })));
    assert!(matches!(journal.append(&batch(&["c"])), Err(JournalError::Poisoned { .. })));
    assert_eq!(records_of(&disk), ["a"]);
}

#[test]
fn short_writes_are_carried_through() {
    let disk = SimulatedDisk::new();
    disk.set_write_limit(Some(7));
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a", "b"])).unwrap();
    journal.rewrite(&mut |snapshot| snapshot.push(&[b"snapshot"])).unwrap();
    journal.append(&batch(&["c"])).unwrap();
    assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["snapshot", "c"]);
}

#[test]
fn a_first_start_that_fails_leaves_nothing_in_the_way() {
    let disk = SimulatedDisk::new();
    disk.set_free_bytes(Some(10));
    assert!(matches!(open(&disk), Err(JournalError::NoSpace { .. })));
    disk.set_free_bytes(None);
    disk.refuse_opens(true);
    assert!(matches!(open(&disk), Err(JournalError::Io { .. })));
    disk.refuse_opens(false);
    open(&disk).unwrap().0.append(&batch(&["a"])).unwrap();
    disk.refuse_opens(true);
    assert!(matches!(open(&disk), Err(JournalError::Io { .. })));
    disk.refuse_opens(false);
    assert_eq!(records_of(&disk), ["a"]);
}

use super::*;
use crate::disk::{PowerCut, RealDisk};
use crate::journal::MAX_BATCH_BYTES;

#[test]
fn records_come_back_in_order() {
    let disk = SimulatedDisk::new();
    let (mut journal, records) = open(&disk).unwrap();
    assert!(journal.is_new() && records.is_empty());
    journal.append(&batch(&["a", "b"])).unwrap();
    journal.append(&batch(&[""])).unwrap();
    journal.append(&batch(&["c"])).unwrap();
    drop(journal);
    let (mut journal, records) = open(&disk).unwrap();
    assert!(!journal.is_new());
    assert_eq!(records, ["a", "b", "", "c"]);
    journal.append(&batch(&["d"])).unwrap();
    journal.close().unwrap();
    assert_eq!(records_of(&disk), ["a", "b", "", "c", "d"]);
}

#[test]
fn a_record_is_made_of_its_parts() {
    let disk = SimulatedDisk::new();
    let mut parts = RecordBatch::default();
    parts.push(&[b"one", b"", b"-two"]);
    open(&disk).unwrap().0.append(&parts).unwrap();
    assert_eq!(records_of(&disk), ["one-two"]);
}

#[test]
fn what_returned_survives_a_power_cut() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a"])).unwrap();
    let disk = disk.power_cut(PowerCut::LoseUnsynced);
    assert_eq!(records_of(&disk), ["a"]);
}

#[test]
fn an_append_is_one_write_and_one_sync() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["first"])).unwrap();
    let before = disk.operations();
    let record = "x".repeat(1000);
    journal.append(&batch(&vec![record.as_str(); 5000])).unwrap();
    assert_eq!(disk.operations() - before, 2);
}

#[test]
fn a_batch_has_a_limit() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    let largest = "x".repeat(MAX_BATCH_BYTES - 4);
    journal.append(&batch(&[&largest])).unwrap();
    let larger = format!("{largest}x");
    let refused = JournalError::TooLarge { size: MAX_BATCH_BYTES + 1, limit: MAX_BATCH_BYTES };
    assert_eq!(journal.append(&batch(&[&larger])), Err(refused));
    journal.append(&batch(&["after"])).unwrap();
    assert_eq!(records_of(&disk), [largest.as_str(), "after"]);
}

#[test]
fn it_works_in_a_real_folder() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a/b");
    for round in 0..3_u8 {
        let mut records = Vec::new();
        let replay = &mut |record: &[u8]| {
            records.push(record.to_vec());
            Ok(())
        };
        let mut journal = Journal::open(Arc::new(RealDisk), &dir, "journal", replay).unwrap();
        assert_eq!(records, (0..round).map(|n| vec![n]).collect::<Vec<_>>());
        let mut one = RecordBatch::default();
        one.push(&[&[round]]);
        journal.append(&one).unwrap();
        journal.close().unwrap();
    }
}

use super::*;
use crate::disk::PowerCut;
use crate::journal::{REWRITE_ABOVE_BYTES, Snapshot};

fn two_records(snapshot: &mut Snapshot<'_>) {
    snapshot.push(&[b"s", b"1"]);
    snapshot.push(&[b"s2"]);
}

#[test]
fn a_snapshot_takes_the_place_of_what_was_before() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a", "b"])).unwrap();
    let before = journal.byte_len();
    journal.rewrite(&mut two_records).unwrap();
    assert!(journal.byte_len() < before);
    journal.append(&batch(&["c"])).unwrap();
    assert_eq!(bytes_of(&disk).len() as u64, journal.byte_len());
    let after = disk.power_cut(PowerCut::LoseUnsynced);
    assert_eq!(records_of(&after), ["s1", "s2", "c"]);
    assert_eq!(after.list(Path::new(DIR)).unwrap().len(), 1);
}

#[test]
fn an_empty_snapshot_is_one() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a"])).unwrap();
    journal.rewrite(&mut |_| {}).unwrap();
    assert_eq!(records_of(&disk), [""; 0]);
}

#[test]
fn a_large_snapshot_comes_back_in_order() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    let record = |n: u32| format!("{n:08}{}", "x".repeat(10_000));
    journal.rewrite(&mut |snapshot| (0..500).for_each(|n| snapshot.push(&[record(n).as_bytes()]))).unwrap();
    journal.append(&batch(&["last"])).unwrap();
    let records = records_of(&disk.power_cut(PowerCut::LoseUnsynced));
    assert_eq!(records.len(), 501);
    assert!(records.iter().take(500).zip(0..).all(|(found, n)| *found == record(n)));
}

#[test]
fn it_is_due_above_the_limit_and_twice_the_snapshot() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    let mib = "x".repeat(1024 * 1024);
    let until_due = |journal: &mut Journal| {
        while !journal.wants_rewrite() {
            journal.append(&batch(&[mib.as_str(); 4])).unwrap();
        }
        journal.byte_len()
    };
    let due = until_due(&mut journal);
    assert!((REWRITE_ABOVE_BYTES..REWRITE_ABOVE_BYTES + 5 * 1024 * 1024).contains(&due));
    journal.rewrite(&mut |snapshot| (0..12).for_each(|_| snapshot.push(&[mib.as_bytes()]))).unwrap();
    assert!(until_due(&mut journal) > 24 * 1024 * 1024);
    drop(journal);
    assert!(open(&disk).unwrap().0.wants_rewrite(), "after a restart nobody knows how much of it is alive");
}

#[test]
fn without_space_the_old_file_goes_on() {
    for free in [0, 20, 30, 100, 300] {
        let disk = SimulatedDisk::new();
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&batch(&["a"])).unwrap();
        disk.set_free_bytes(Some(free));
        let large = vec![0x78; 400];
        assert!(matches!(journal.rewrite(&mut |snapshot| snapshot.push(&[&large])), Err(JournalError::NoSpace { .. })));
        assert_eq!(disk.free_bytes(Path::new(DIR)).unwrap(), free, "what was written is given back");
        disk.set_free_bytes(None);
        journal.append(&batch(&["b"])).unwrap();
        assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["a", "b"]);
    }
}

#[test]
fn without_descriptors_the_old_file_goes_on() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a"])).unwrap();
    disk.refuse_opens(true);
    assert!(matches!(journal.rewrite(&mut two_records), Err(JournalError::Io { .. })));
    journal.append(&batch(&["b"])).unwrap();
    disk.refuse_opens(false);
    journal.rewrite(&mut two_records).unwrap();
    assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["s1", "s2"]);
}

#[test]
fn the_new_name_is_made_durable_without_a_descriptor_to_be_had() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["a"])).unwrap();
    let seen_by_fill = disk.clone();
    let rewritten = journal.rewrite(&mut |snapshot| {
        two_records(snapshot);
        seen_by_fill.refuse_opens(true);
    });
    assert_eq!(rewritten, Ok(()));
    journal.append(&batch(&["b"])).unwrap();
    assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["s1", "s2", "b"]);
}

#[test]
fn a_failed_write_of_the_snapshot_leaves_the_old_file() {
    for fail in [SimulatedDisk::fail_writes as fn(&SimulatedDisk, u64, u64), SimulatedDisk::fail_syncs] {
        let disk = SimulatedDisk::new();
        let (mut journal, _) = open(&disk).unwrap();
        journal.append(&batch(&["a"])).unwrap();
        fail(&disk, 0, 1);
        assert!(matches!(journal.rewrite(&mut two_records), Err(JournalError::Io { what: "rewriting", .. })));
        journal.append(&batch(&["b"])).unwrap();
        assert_eq!(records_of(&disk.power_cut(PowerCut::LoseUnsynced)), ["a", "b"]);
    }
}

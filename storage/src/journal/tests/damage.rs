use super::*;
use crate::journal::format::{BLOCK_HEADER_LEN, FILE_HEADER_LEN, RecordBatch};

/// A journal with the batches `a`, `b c`, `d` and where its blocks begin; the first is the one that opening it wrote.
fn three_batches(closed: bool) -> (Vec<u8>, Vec<usize>) {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    let mut starts = vec![FILE_HEADER_LEN];
    for records in [&["a"][..], &["b", "c"], &["d"]] {
        starts.push(usize::try_from(journal.byte_len()).unwrap());
        journal.append(&batch(records)).unwrap();
    }
    if closed {
        starts.push(usize::try_from(journal.byte_len()).unwrap());
        journal.close().unwrap();
    }
    (bytes_of(&disk), starts)
}

/// What is whole in the first `len` bytes.
fn whole_in(starts: &[usize], end: usize, len: usize) -> Vec<&'static str> {
    let batches = [&[][..], &["a"], &["b", "c"], &["d"], &[]];
    let ends = starts.iter().skip(1).copied().chain([end]);
    ends.zip(batches).take_while(|(end, _)| *end <= len).flat_map(|(_, records)| records.iter().copied()).collect()
}

#[test]
fn a_file_cut_at_any_byte_keeps_whole_batches() {
    let (bytes, starts) = three_batches(true);
    for len in FILE_HEADER_LEN..=bytes.len() {
        let disk = disk_with(&bytes[..len]);
        let (mut journal, records) = open(&disk).unwrap();
        assert_eq!(records, whole_in(&starts, bytes.len(), len), "cut at {len}");
        journal.append(&batch(&["after"])).unwrap();
        let again = records_of(&disk);
        assert_eq!((again.last().map(String::as_str), again.len()), (Some("after"), records.len() + 1), "cut at {len}");
    }
}

#[test]
fn a_file_without_its_header_is_refused() {
    let (bytes, _) = three_batches(false);
    for len in 0..FILE_HEADER_LEN {
        let disk = disk_with(&bytes[..len]);
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { offset: 0, .. }), "{error}");
        assert!(error.to_string().contains("move it away"), "{error}");
        assert_eq!(bytes_of(&disk), &bytes[..len]);
    }
}

#[test]
fn damage_in_the_middle_is_refused_and_can_be_given_up() {
    let (bytes, starts) = three_batches(true);
    let last = *starts.last().unwrap();
    for at in FILE_HEADER_LEN..last {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        let disk = disk_with(&bad);
        let error = open(&disk).unwrap_err();
        let start = starts.iter().copied().rfind(|start| *start <= at).unwrap();
        let JournalError::Damaged { offset, .. } = &error else { panic!("{error}") };
        assert_eq!(*offset, start as u64, "byte {at}");
        let remedy = format!("truncate -s {start} '{FILE}'");
        assert!(error.to_string().contains(&remedy) && error.to_string().contains("copy"), "{error}");
        assert_eq!(bytes_of(&disk), bad, "the file is left as it is");
        // What the message says.
        disk.open(Path::new(FILE)).unwrap().set_len(*offset).unwrap();
        assert_eq!(records_of(&disk), whole_in(&starts, bytes.len(), start));
    }
}

#[test]
fn a_bad_header_is_refused() {
    let (bytes, _) = three_batches(false);
    for at in 0..FILE_HEADER_LEN {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert!(matches!(open(&disk_with(&bad)).unwrap_err(), JournalError::Damaged { offset: 0, .. }));
    }
}

#[test]
fn damage_to_the_last_block_looks_torn_and_is_cut() {
    let (bytes, starts) = three_batches(false);
    let last = *starts.last().unwrap();
    for at in last..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert_eq!(records_of(&disk_with(&bad)), ["a", "b", "c"], "byte {at}");
    }
}

#[test]
fn zeros_and_garbage_behind_the_end_are_cut() {
    let (bytes, _) = three_batches(false);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for len in 1..200 {
        let garbage: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        for tail in [vec![0; len], garbage, b"HQJB".repeat(len)] {
            let disk = disk_with(&[bytes.clone(), tail].concat());
            assert_eq!(records_of(&disk), ["a", "b", "c", "d"]);
            assert_eq!(bytes_of(&disk).len(), bytes.len() + BLOCK_HEADER_LEN, "cut, and the block of opening written");
        }
    }
}

#[test]
fn a_missing_block_is_noticed() {
    let (bytes, starts) = three_batches(false);
    let without = [&bytes[..starts[2]], &bytes[starts[3]..]].concat();
    let JournalError::Damaged { offset, reason, .. } = open(&disk_with(&without)).unwrap_err() else { panic!() };
    assert_eq!((offset, reason.as_str()), (starts[2] as u64, "block 2 is missing, block 3 is there"));
}

#[test]
fn blocks_of_another_file_are_not_taken_for_ours() {
    let (ours, _) = three_batches(false);
    let (theirs, starts) = three_batches(false);
    let disk = disk_with(&[&ours[..], &theirs[starts[1]..]].concat());
    assert_eq!(records_of(&disk), ["a", "b", "c", "d"]);
}

#[test]
fn a_record_that_cannot_be_taken_is_refused_with_its_place() {
    let disk = SimulatedDisk::new();
    let (mut journal, _) = open(&disk).unwrap();
    journal.append(&batch(&["good"])).unwrap();
    let place = journal.byte_len();
    let mut bad = RecordBatch::default();
    bad.push(&[&[0xff]]);
    journal.append(&bad).unwrap();
    let JournalError::Damaged { offset, reason, .. } = open(&disk).unwrap_err() else { panic!() };
    assert_eq!(offset, place);
    assert!(reason.contains("utf-8"), "{reason}");
}

#[test]
fn any_file_is_read_without_harm() {
    let (bytes, _) = three_batches(true);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..3000 {
        let mut bad = bytes.clone();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bad.len());
            match random.u8(..3) {
                0 => bad[at] = random.u8(..),
                1 => drop(bad.drain(at..(at + random.usize(..40)).min(bad.len()))),
                _ => bad.insert(at, random.u8(..)),
            }
        }
        match open(&disk_with(&bad)) {
            Ok((_, records)) => assert!(["a", "b", "c", "d"].map(str::to_owned).starts_with(&records), "{records:?}"),
            Err(error) => assert!(matches!(error, JournalError::Damaged { .. }), "{error}"),
        }
    }
}

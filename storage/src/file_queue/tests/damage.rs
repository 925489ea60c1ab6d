//! Damage: reported, passed, and nothing else is lost.

use super::*;
use crate::file_queue::format::{DATA_START, ELEMENT_HEADER_LEN, SEAL_AT, SEAL_LEN};

const FIRST: usize = DATA_START as usize;

/// A closed queue of three files. Its files and its elements, each of 10,000 bytes and more.
fn three_files() -> (SimulatedDisk, Vec<PathBuf>, Vec<String>) {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    let texts: Vec<String> = (0..15).map(|n| format!("{n} {}", "x".repeat(10_000))).collect();
    texts.iter().for_each(|text| queue.offer(text.as_bytes()).unwrap());
    queue.close().unwrap();
    let segments = files(&disk, ".segment");
    assert_eq!(segments.len(), 3);
    (disk, segments, texts)
}

fn flip(disk: &SimulatedDisk, path: &Path, at: usize) {
    let byte = bytes_of(disk, path)[at];
    overwrite(disk, path, at, &[byte ^ 0x40]);
}

#[test]
fn a_damaged_byte_costs_one_element() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    let texts = ["one", "two", "", "four", "five"];
    texts.iter().for_each(|text| queue.offer(text.as_bytes()).unwrap());
    let killed = copy(&disk);
    queue.close().unwrap();
    let file = files(&disk, ".segment").remove(0);
    let mut ends = vec![FIRST];
    texts.iter().for_each(|text| ends.push(ends.last().unwrap() + ELEMENT_HEADER_LEN + text.len()));
    for at in FIRST..ends[5] {
        let hit = ends.iter().rposition(|end| *end <= at).unwrap();
        let mut wanted: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        wanted.remove(hit);
        for (disk, is_closed) in [(&disk, true), (&killed, false)] {
            let disk = copy(disk);
            flip(&disk, &file, at);
            let mut queue = open(&disk);
            let (found, lost) = drain(&mut queue);
            assert_eq!(found, wanted, "byte {at}, closed: {is_closed}");
            // The very last one looks like an offer that never returned, unless the queue was closed.
            let is_cut = hit == 4 && !is_closed;
            let offset = ends[hit] as u64;
            let expected = FileQueueError::Damaged { path: file.clone(), offset, elements: 1 };
            assert_eq!(lost, if is_cut { vec![] } else { vec![expected] }, "byte {at}, closed: {is_closed}");
            queue.offer(b"later").unwrap();
            drop(queue);
            assert_eq!(drain(&mut open(&disk)), (vec!["later".to_owned()], vec![]), "byte {at}, closed: {is_closed}");
        }
    }
}

#[test]
fn a_stretch_of_damage_is_counted() {
    let (disk, segments, texts) = three_files();
    overwrite(&disk, &segments[1], FIRST + 5000, &[7; 25_000]);
    let mut queue = open(&disk);
    let (found, lost) = drain(&mut queue);
    assert_eq!(lost_elements(&lost), 3, "{lost:?}");
    assert_eq!(found, [&texts[..6], &texts[9..]].concat());
    assert!(lost[0].to_string().contains("elements are lost"), "{}", lost[0]);
    assert!(lost.iter().all(FileQueueError::is_retryable));
}

#[test]
fn peek_says_what_is_lost_and_goes_on() {
    let (disk, segments, texts) = three_files();
    flip(&disk, &segments[0], FIRST + 100);
    let mut queue = open(&disk);
    assert!(matches!(queue.peek().unwrap_err(), FileQueueError::Damaged { elements: 1, .. }));
    assert_eq!(queue.peek().unwrap().unwrap(), texts[1].as_bytes());
    assert_eq!(queue.len(), 14);
}

#[test]
fn a_damaged_header_costs_the_elements_of_its_file_which_is_kept() {
    for n in 0..3 {
        let (disk, segments, texts) = three_files();
        flip(&disk, &segments[n], 20);
        let mut queue = open(&disk);
        let (found, _) = drain(&mut queue);
        // A damaged last file is known to be missing when the next one begins.
        queue.offer(b"later").unwrap();
        let mut wanted = texts.clone();
        let gone: Vec<String> = wanted.drain(n * 6..(n * 6 + 6).min(15)).collect();
        assert_eq!(found, wanted, "file {n}");
        assert_eq!(files(&disk, ".damaged").len(), 1);
        drop(queue);
        let (disk, segments, _) = three_files();
        flip(&disk, &segments[n], 20);
        let mut queue = open(&disk);
        queue.offer(b"later").unwrap();
        let (found, lost) = drain(&mut queue);
        assert_eq!(found.last().unwrap(), "later");
        assert_eq!(lost_elements(&lost), gone.len() as u64, "file {n}: {lost:?}");
        assert!(lost.iter().all(|lost| matches!(lost, FileQueueError::Missing { .. })), "{lost:?}");
    }
}

#[test]
fn a_file_that_is_gone_is_missed() {
    let (disk, segments, texts) = three_files();
    disk.remove_file(&segments[1]).unwrap();
    let (found, lost) = drain(&mut open(&disk));
    assert_eq!(found, [&texts[..6], &texts[12..]].concat());
    assert_eq!(lost, [FileQueueError::Missing { path: segments[2].clone(), elements: 6 }]);
}

#[test]
fn a_damaged_seal_costs_nothing() {
    let (disk, segments, texts) = three_files();
    for at in 0..SEAL_LEN {
        let disk = copy(&disk);
        flip(&disk, &segments[0], usize::try_from(SEAL_AT).unwrap() + at);
        assert_eq!(drain(&mut open(&disk)), (texts.clone(), vec![]), "byte {at} of the seal");
    }
}

#[test]
fn without_an_index_it_begins_at_the_oldest_file() {
    let (disk, segments, texts) = three_files();
    let mut queue = open(&disk);
    (0..8).for_each(|_| drop(queue.poll().unwrap().unwrap()));
    queue.close().unwrap();
    let index = Path::new(DIR).join("index");
    for is_removed in [false, true] {
        let disk = copy(&disk);
        if is_removed {
            disk.remove_file(&index).unwrap();
        } else {
            overwrite(&disk, &index, 0, &[1; 8192]);
        }
        let mut queue = open(&disk);
        assert_eq!(files(&disk, ".segment"), segments[1..]);
        assert_eq!(drain(&mut queue), (texts[6..].to_vec(), vec![]));
        queue.offer(b"later").unwrap();
        drop(queue);
        assert_eq!(drain(&mut open(&disk)), (vec!["later".to_owned()], vec![]));
    }
}

#[test]
fn one_slot_of_the_index_is_enough() {
    let (disk, _, texts) = three_files();
    let mut queue = open(&disk);
    (0..3).for_each(|_| drop(queue.poll().unwrap().unwrap()));
    drop(queue);
    for slot in [0, 4096] {
        let disk = copy(&disk);
        flip(&disk, &Path::new(DIR).join("index"), slot + 30);
        let (found, lost) = drain(&mut open(&disk));
        assert_eq!(lost, []);
        assert!(found.len() <= 13 && texts.ends_with(&found), "at most the last change of the index is lost: {}", found.len());
    }
}

#[test]
fn an_end_that_is_lost_though_the_index_knows_it_was_there_is_missed() {
    let (disk, segments, texts) = three_files();
    disk.open(&segments[2]).unwrap().set_len((FIRST + 10_100) as u64).unwrap();
    let mut queue = open(&disk);
    queue.offer(b"later").unwrap();
    let (found, lost) = drain(&mut queue);
    assert_eq!(found, [&texts[..13], &["later".to_owned()]].concat());
    assert_eq!(lost_elements(&lost), 2, "{lost:?}");
}

#[test]
fn what_cannot_be_read_stays_until_it_is_given_up() {
    let (disk, segments, texts) = three_files();
    let mut queue = open(&disk);
    let second = FIRST + ELEMENT_HEADER_LEN + texts[0].len();
    disk.make_unreadable(&segments[0], (second + 4096) as u64..(second + 4200) as u64).unwrap();
    assert_eq!(queue.poll().unwrap().unwrap(), texts[0].as_bytes(), "what is before can be read");
    for _ in 0..3 {
        let error = queue.poll().unwrap_err();
        assert!(matches!(error, FileQueueError::Io { what: "read", .. }), "{error}");
    }
    assert_eq!(queue.len(), 14);
    let (writer, mut reader) = queue.split();
    let given_up = reader.give_up_unreadable().unwrap_err();
    assert_eq!(given_up, FileQueueError::Damaged { path: segments[0].clone(), offset: second as u64, elements: 1 });
    let mut queue = FileQueue::unsplit(writer, reader).unwrap();
    assert_eq!(drain(&mut queue), (texts[2..].to_vec(), vec![]));
}

#[test]
fn any_bytes_in_place_of_a_file_are_read_without_harm() {
    let (disk, segments, texts) = three_files();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..100 {
        let disk = copy(&disk);
        for path in [&segments[random.usize(..3)], &Path::new(DIR).join("index")] {
            let len = bytes_of(&disk, path).len();
            for _ in 0..random.usize(..4) {
                let bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
                overwrite(&disk, path, random.usize(..len), &bytes);
            }
        }
        let mut queue = open(&disk);
        queue.offer(b"later").unwrap();
        let (found, _) = drain(&mut queue);
        let mut rest = texts.iter();
        let (last, before) = found.split_last().unwrap();
        assert!(before.iter().all(|text| rest.any(|known| known == text)), "in order, and nothing that was not offered");
        assert_eq!(last, "later");
    }
}

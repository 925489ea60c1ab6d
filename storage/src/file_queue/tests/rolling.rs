//! Files follow one another, and are used again.

use super::*;
use crate::file_queue::format::{DATA_START, Seal, SegmentHeader};

#[test]
fn a_full_file_says_where_it_ends_and_which_is_the_next() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    (0..10).for_each(|_| queue.offer(&[1; 10_000]).unwrap());
    let segments = files(&disk, ".segment");
    let page = bytes_of(&disk, &segments[0]);
    let header = SegmentHeader::decode(&page).unwrap();
    assert_eq!((header.number, header.first_element), (1, 0));
    let seal = Seal::decode(&page, header.epoch).unwrap();
    assert_eq!(seal, Seal { next: 2, end: DATA_START + 6 * 10_032, next_element: 6 });
    let page = bytes_of(&disk, &segments[1]);
    let second = SegmentHeader::decode(&page).unwrap();
    assert_eq!((second.number, second.first_element, Seal::decode(&page, second.epoch)), (2, 6, None));
}

#[test]
fn files_are_used_again_and_have_a_fixed_size() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    for n in 0..500u32 {
        queue.offer(&n.to_be_bytes().repeat(500)).unwrap();
        assert_eq!(queue.poll().unwrap().unwrap(), n.to_be_bytes().repeat(500));
    }
    let files = [files(&disk, ".segment"), files(&disk, ".spare")].concat();
    assert!((1..=3).contains(&files.len()), "{files:?}");
    assert!(files.iter().all(|path| bytes_of(&disk, path).len() == 64 << 10));
}

#[test]
fn a_queue_of_many_files_goes_on_over_openings() {
    let disk = SimulatedDisk::new();
    let mut polled = 0u32;
    for life in 0..20u32 {
        let mut queue = open(&disk);
        (0..20).for_each(|n| queue.offer(&(life * 20 + n).to_be_bytes().repeat(1000)).unwrap());
        for _ in 0..15 {
            assert_eq!(queue.poll().unwrap().unwrap()[..4], polled.to_be_bytes());
            polled += 1;
        }
        assert_eq!(queue.len(), u64::from((life + 1) * 5));
        if life % 2 == 0 { queue.close().unwrap() } else { drop(queue) }
    }
}

#[test]
fn sizes_may_change_from_one_opening_to_the_next() {
    let disk = SimulatedDisk::new();
    for segment_bytes in [256 << 10, 64 << 10, 1 << 20] {
        let mut queue = open_with(&disk, FileQueueOptions { segment_bytes, ..strict() }).unwrap();
        (0..60).for_each(|n| queue.offer(&[n; 10_000]).unwrap());
        (0..50).for_each(|_| drop(queue.poll().unwrap().unwrap()));
        queue.close().unwrap();
    }
    let mut queue = open(&disk);
    let found: Vec<u8> = std::iter::from_fn(|| queue.poll().unwrap()).map(|element| element[0]).collect();
    assert_eq!(found, (30..60).collect::<Vec<u8>>());
}

#[test]
fn clear_removes_everything_for_good_and_gives_files_back() {
    let disk = SimulatedDisk::new();
    let mut queue = open_with(&disk, FileQueueOptions { polls: LATER, ..strict() }).unwrap();
    (0..40).for_each(|_| queue.offer(&[1; 10_000]).unwrap());
    assert!(queue.peek().unwrap().is_some());
    queue.clear().unwrap();
    assert_eq!((queue.len(), queue.peek().unwrap()), (0, None));
    assert_eq!((files(&disk, ".segment").len(), files(&disk, ".spare").len()), (1, 2));
    queue.offer(b"new").unwrap();
    let disk = kill(&disk, queue);
    assert_eq!(drain(&mut open(&disk)), (vec!["new".to_owned()], vec![]));
    open(&SimulatedDisk::new()).clear().unwrap();
}

//! A disk that fails or is full: what was acknowledged stays, what was refused is not there, polling goes on.

use super::*;
use crate::disk::PowerCut;

#[test]
fn after_a_failed_sync_nothing_is_taken_until_it_is_reopened() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    queue.offer(b"safe").unwrap();
    disk.fail_syncs(0, 1);
    let error = queue.offer(b"uncertain").unwrap_err();
    assert!(matches!(error, FileQueueError::Poisoned { .. }) && !error.is_retryable(), "{error}");
    assert!(matches!(queue.offer(b"later").unwrap_err(), FileQueueError::Poisoned { .. }));
    assert_eq!(drain(&mut queue), (vec!["safe".to_owned()], vec![]), "polling goes on");
    assert!(queue.close().is_err());
    let mut queue = open(&disk);
    queue.offer(b"after").unwrap();
    let (found, lost) = drain(&mut queue);
    assert!(found == ["after"] || found == ["uncertain", "after"], "{found:?}");
    assert_eq!(lost, []);
}

#[test]
fn what_a_failed_sync_left_in_memory_is_written_again_before_it_is_shown() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    disk.fail_syncs(1, 1);
    queue.offer(b"uncertain").unwrap_err();
    let disk = kill(&disk, queue);
    let queue = open(&disk);
    let len = queue.len();
    let after = disk.power_cut(PowerCut::LoseUnsynced);
    drop(queue);
    assert_eq!(open(&after).len(), len, "what an opening has found is durable");
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    disk.set_free_bytes(Some(100_000));
    let mut offered = 0;
    let error = loop {
        match queue.offer(&[7; 3000]) {
            Ok(()) => offered += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, FileQueueError::NoSpace { .. }) && error.is_retryable(), "{error}");
    assert!(offered > 20, "{offered}");
    assert!(matches!(queue.offer_all(&[[1; 20_000], [2; 20_000]]).unwrap_err(), FileQueueError::NoSpace { .. }));
    let disk = kill(&disk, queue);
    let mut queue = open(&disk);
    assert_eq!(queue.len(), offered, "what was refused is not there");
    // Polling makes room.
    disk.set_free_bytes(Some(0));
    (0..25).for_each(|_| drop(queue.poll().unwrap().unwrap()));
    (0..10).for_each(|n| queue.offer(&[n; 3000]).unwrap());
    assert_eq!(queue.len(), offered - 15);
}

#[test]
fn a_batch_that_does_not_fit_leaves_nothing_behind() {
    for free in (0..40_000).step_by(1777) {
        let disk = SimulatedDisk::new();
        let mut queue = open(&disk);
        queue.offer(b"one").unwrap();
        disk.set_free_bytes(Some(free));
        let batch: Vec<Vec<u8>> = (0..10).map(|n| vec![b'0' + n; 4000]).collect();
        let fits = queue.offer_all(&batch).is_ok();
        disk.set_free_bytes(None);
        // Of another length, so that what is left of the batch would stand behind it.
        queue.offer(b"two").unwrap();
        let disk = kill(&disk, queue);
        let (found, lost) = drain(&mut open(&disk));
        assert_eq!((found.len(), lost), (if fits { 12 } else { 2 }, vec![]), "{free} bytes free");
    }
}

#[test]
fn a_limit_of_all_files_is_kept_and_polling_makes_room() {
    let disk = SimulatedDisk::new();
    let options = FileQueueOptions { max_bytes: Some(128 << 10), polls: LATER, ..strict() };
    let mut queue = open_with(&disk, options).unwrap();
    let mut offered = 0;
    let error = loop {
        match queue.offer(&[7; 3000]) {
            Ok(()) => offered += 1,
            Err(error) => break error,
        }
    };
    let wanted = "is full: with another segment its files would have 196608 bytes, the limit is 131072";
    assert!(error.to_string().contains(wanted) && error.is_retryable(), "{error}");
    for _ in 0..offered {
        assert!(queue.poll().unwrap().is_some());
    }
    (0..10).for_each(|_| queue.offer(&[8; 3000]).unwrap());
    let all =
        files(&disk, "").iter().filter(|path| !path.ends_with("index")).map(|path| bytes_of(&disk, path).len()).sum::<usize>();
    assert!(all <= 128 << 10, "{all}");
}

#[test]
fn sizes_beyond_the_limits_are_refused() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    let error = queue.offer(&[0; (32 << 10) + 1]).unwrap_err();
    assert_eq!(error.to_string(), "an element of 32769 bytes: the limit is 32768");
    let error = queue.offer_all(&[[0; 30_000]; 3]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "elements that take 90096 bytes at once, 32 of them for each: the limit is 61440, what a segment holds"
    );
    queue.offer_all::<&[u8]>(&[]).unwrap();
    assert!(queue.is_empty());
    queue.offer(&[0; 32 << 10]).unwrap();
    assert!(matches!(
        open_with(&SimulatedDisk::new(), FileQueueOptions { segment_bytes: 1, ..strict() }),
        Err(FileQueueError::BadOption(_))
    ));
}

#[test]
fn an_element_is_given_though_the_disk_refuses_to_note_its_poll() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    queue.offer_all(&["one", "two"]).unwrap();
    disk.fail_syncs(0, 2);
    assert_eq!(queue.poll().unwrap().unwrap(), b"one");
    assert!(matches!(queue.poll().unwrap_err(), FileQueueError::Io { .. }), "nothing more until the first is noted");
    assert_eq!(queue.poll().unwrap().unwrap(), b"two");
    let disk = disk.power_cut(PowerCut::LoseUnsynced);
    assert!(open(&disk).is_empty());
}

#[test]
fn without_file_descriptors_it_goes_on_later() {
    let disk = SimulatedDisk::new();
    let mut queue = open(&disk);
    (0..4).for_each(|_| queue.offer(&[1; 14_000]).unwrap());
    disk.refuse_opens(true);
    assert!(matches!(queue.offer(&[2; 14_000]).unwrap_err(), FileQueueError::Io { .. }));
    assert!(matches!(queue.poll().unwrap_err(), FileQueueError::Io { .. }));
    disk.refuse_opens(false);
    queue.offer(&[2; 14_000]).unwrap();
    assert_eq!(queue.len(), 5);
    let found: Vec<u8> = std::iter::from_fn(|| queue.poll().unwrap()).map(|element| element[0]).collect();
    assert_eq!(found, [1, 1, 1, 1, 2]);
}

#[test]
fn polls_of_what_was_never_synced_are_not_durable_before_it() {
    let disk = SimulatedDisk::new();
    let mut queue = open_with(&disk, FileQueueOptions { offers: LATER, polls: LATER, ..strict() }).unwrap();
    queue.offer_all(&["one", "two"]).unwrap();
    assert_eq!(queue.poll().unwrap().unwrap(), b"one");
    let lost = disk.power_cut(PowerCut::LoseUnsynced);
    drop(queue);
    let mut queue = open(&lost);
    assert!(queue.is_empty());
    queue.offer(b"three").unwrap();
    assert_eq!(
        drain(&mut queue),
        (vec!["three".to_owned()], vec![]),
        "its number is that of an element that was polled and lost"
    );
}

//! Two ends in two threads, locks, and what is made durable later.

use std::thread;
use std::time::Instant;

use super::*;
use crate::disk::PowerCut;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn one_thread_offers_and_another_polls() {
    let disk = SimulatedDisk::new();
    let (mut writer, mut reader) = open(&disk).split();
    let offering = thread::spawn(move || {
        for n in 0..3000u32 {
            writer.offer(&n.to_be_bytes().repeat(1 + n as usize % 300)).unwrap();
        }
    });
    for n in 0..3000u32 {
        assert_eq!(reader.poll_within(LONG).unwrap().unwrap()[..4], n.to_be_bytes());
    }
    offering.join().unwrap();
    assert_eq!(reader.poll_until_end().unwrap(), None, "the writer is gone");
}

#[test]
fn a_poll_waits_as_long_as_it_was_told_to() {
    let disk = SimulatedDisk::new();
    let (mut writer, mut reader) = open(&disk).split();
    let began = Instant::now();
    assert_eq!(reader.poll_within(Duration::from_millis(30)).unwrap(), None);
    assert!(began.elapsed() >= Duration::from_millis(30));
    writer.offer(b"one").unwrap();
    assert_eq!(reader.poll_within(LONG).unwrap().unwrap(), b"one");
    drop(writer);
    assert_eq!(reader.poll_within(LONG).unwrap(), None);
}

#[test]
fn an_open_queue_is_not_opened_again_until_both_ends_are_gone() {
    let disk = SimulatedDisk::new();
    let queue = open(&disk);
    let refused = || open_with(&disk, strict()).unwrap_err();
    assert_eq!(refused(), FileQueueError::InUse { dir: PathBuf::from(DIR) });
    let (mut writer, reader) = queue.split();
    drop(reader);
    assert_eq!(refused().to_string(), "the file queue /data/queue is in use, by this process or another");
    writer.offer(b"one").unwrap();
    drop(writer);
    assert_eq!(open(&disk).len(), 1);
}

#[test]
fn ends_of_two_queues_do_not_go_together() {
    let (one, two) = (SimulatedDisk::new(), SimulatedDisk::new());
    let ((writer, other_reader), (other_writer, reader)) = (open(&one).split(), open(&two).split());
    let (writer, reader) = *FileQueue::unsplit(writer, reader).unwrap_err();
    assert!(FileQueue::unsplit(writer, other_reader).is_ok());
    assert!(FileQueue::unsplit(other_writer, reader).is_ok());
}

/// Waits for what a thread of the queue does by itself.
fn wait_until(mut done: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < until, "it does not come");
        thread::yield_now();
    }
}

#[test]
fn what_need_not_be_durable_at_once_is_durable_soon() {
    let disk = SimulatedDisk::new();
    let soon = SyncWhen::Within(Duration::from_millis(5));
    let mut queue = open_with(&disk, FileQueueOptions { offers: soon, polls: soon, ..strict() }).unwrap();
    queue.offer_all(&["one", "two"]).unwrap();
    wait_until(|| queue.writer.opened().shared.state().unsynced_since.is_none());
    assert_eq!(queue.poll().unwrap().unwrap(), b"one");
    wait_until(|| queue.writer.opened().shared.state().polled_since.is_none());
    let after = disk.power_cut(PowerCut::LoseUnsynced);
    assert_eq!(drain(&mut open(&after)).0, ["two"]);
}

#[test]
fn a_failure_in_the_background_is_told() {
    let disk = SimulatedDisk::new();
    let soon = SyncWhen::Within(Duration::from_millis(1));
    let mut queue = open_with(&disk, FileQueueOptions { offers: soon, ..strict() }).unwrap();
    queue.offer(b"one").unwrap();
    wait_until(|| queue.writer.opened().shared.state().unsynced_since.is_none());
    disk.fail_syncs(0, 1);
    queue.offer(b"two").unwrap();
    wait_until(|| matches!(queue.offer(b"more"), Err(FileQueueError::Poisoned { .. })));
    assert!(queue.poll().unwrap().is_some(), "polling goes on");
    assert!(queue.close().is_err());
    assert!(open(&disk).peek().unwrap().is_some());
}

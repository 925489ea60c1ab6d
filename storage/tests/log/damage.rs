//! Bytes of segment files change under the store (case S1): what is not touched is served, what is damaged is reported, and a start
//! never fails or panics.

use hqueue_storage::conformance::Message;
use hqueue_storage::disk::{Disk, SimulatedDisk};
use hqueue_storage::store::MissingReason;

use crate::support::{Lab, Ledger, Opened, copy, edit, long, run, segments, used};

const PARTITIONS: i16 = 3;

/// A closed store of some segments, and what is in it.
struct Base {
    lab: Lab,
    disk: SimulatedDisk,
    wanted: Vec<Vec<Message>>,
}

impl Base {
    async fn new() -> Self {
        let lab = Lab::new(PARTITIONS);
        let disk = lab.disk();
        let opened = lab.open(disk.clone()).await;
        let mut ledger = Ledger::new(&lab);
        for n in 0..150 {
            ledger.put(&opened.queue, n as i16 % PARTITIONS, 1 + n % 4, n * 37 % 900).await.unwrap();
            lab.clock.advance(1);
        }
        let mut wanted = Vec::new();
        for partition in 0..PARTITIONS {
            wanted.push(opened.queue.all(partition).await.messages);
        }
        opened.store.close().await;
        Self { lab, disk, wanted }
    }

    /// Opens a copy in which `change` was made in a segment.
    async fn damaged(&self, path: &std::path::Path, change: impl FnOnce(&mut Vec<u8>)) -> (SimulatedDisk, Opened) {
        let disk = self.lab.disk();
        copy(&self.disk, &disk);
        edit(&disk, path, change);
        let opened = self.lab.open(disk.clone()).await;
        (disk, opened)
    }

    /// Nothing is served that was not put. Returns what is lost.
    async fn lost(&self, opened: &Opened, what: &str) -> Vec<Message> {
        let mut lost = Vec::new();
        for (partition, wanted) in self.wanted.iter().enumerate() {
            let found = opened.queue.all(partition as i16).await;
            let mut rest = found.messages.iter().peekable();
            let mut lost_here = Vec::new();
            for message in wanted {
                if rest.next_if(|next| *next == message).is_none() {
                    lost_here.push(message.clone());
                }
            }
            assert_eq!(rest.next(), None, "{what}: served, and never put so");
            let is_end = wanted.ends_with(&lost_here);
            // A segment that is not there may have expired as well, for all that the log knows.
            let told = found.missing_because(MissingReason::Damaged) + found.missing_because(MissingReason::Expired);
            assert!(is_end || told == lost_here.len() as u64, "{what}: {} are lost, {told} are reported", lost_here.len());
            lost.extend(lost_here);
        }
        lost
    }

    /// Are these what one partition ends with?
    fn is_the_end(&self, lost: &[Message]) -> bool {
        self.wanted.iter().any(|wanted| wanted.ends_with(lost))
    }

    /// The store goes on: new messages get ids above and stay.
    async fn goes_on(&self, disk: SimulatedDisk, opened: Opened, what: &str) {
        let mut ids = Vec::new();
        for partition in 0..PARTITIONS {
            let found = opened.queue.all(partition).await.ids();
            let id = opened.queue.put(partition, &["later"]).await[0];
            assert!(found.last() < Some(&id), "{what}: {id} was given after {:?}", found.last());
            ids.push(id);
        }
        opened.store.close().await;
        let opened = self.lab.open(disk).await;
        for (partition, id) in ids.iter().enumerate() {
            assert_eq!(opened.queue.all(partition as i16).await.ids().last(), Some(id), "{what}");
        }
        opened.store.close().await;
    }
}

/// Positions to damage: every seventh in the long form, some of them else.
fn positions(len: usize, quick: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(if long() { 7 } else { (len / quick).max(1) })
}

#[test]
fn a_changed_byte_costs_one_block_at_most() {
    run(async {
        let base = Base::new().await;
        let segments = segments(&base.disk);
        assert!(segments.len() >= 3, "the base has {} segments", segments.len());
        let mut losses = 0;
        for path in &segments {
            let len = used(&base.disk, path);
            for at in positions(len, 40) {
                let what = format!("{} byte {at}", path.display());
                let (disk, opened) = base.damaged(path, |bytes| bytes[at] ^= 0x41).await;
                let lost = base.lost(&opened, &what).await;
                let values: std::collections::BTreeSet<_> = lost.iter().map(put_of).collect();
                assert!(values.len() <= 1, "{what}: more than one put is lost: {values:?}");
                losses += lost.len();
                if !lost.is_empty() {
                    assert!(opened.store.counters().damaged_blocks > 0 || base.is_the_end(&lost), "{what}: not counted");
                }
                if at % 5 == 0 { base.goes_on(disk, opened, &what).await } else { opened.store.close().await }
            }
        }
        assert!(losses > 0, "no change met a message");
    });
}

/// Which put a message was part of: partition and number of the put.
fn put_of(message: &Message) -> String {
    String::from_utf8_lossy(&message.value).split('/').take(2).collect::<Vec<_>>().join("/")
}

/// Behind the last block of any segment: zeros, noise, or a piece of the segment itself.
#[test]
fn bytes_behind_the_end_cost_nothing() {
    run(async {
        let base = Base::new().await;
        for path in segments(&base.disk) {
            let mut random = fastrand::Rng::with_seed(64);
            let noise: Vec<u8> = (0..64).map(|_| random.u8(..)).collect();
            for (what, tail) in [("zeros", vec![0; 64]), ("noise", noise), ("its own blocks", Vec::new())] {
                let what = format!("{what} behind {}", path.display());
                let len = used(&base.disk, &path);
                let (disk, opened) = base
                    .damaged(&path, |bytes| {
                        let tail = if tail.is_empty() { bytes[4096..len].to_vec() } else { tail };
                        bytes.truncate(len);
                        bytes.extend(tail);
                    })
                    .await;
                assert_eq!(base.lost(&opened, &what).await, [], "{what}");
                base.goes_on(disk, opened, &what).await;
            }
        }
    });
}

/// The last segment ends before its time: only what stood in the missing bytes is lost.
#[test]
fn a_shorter_last_segment_loses_its_end() {
    run(async {
        let base = Base::new().await;
        let segments = segments(&base.disk);
        let path = segments.last().unwrap();
        let len = used(&base.disk, path);
        let cuts = if long() { 5000 } else { 64 };
        for cut in 1..=cuts.min(len) {
            let what = format!("{} is cut by {cut} bytes", path.display());
            let (disk, opened) = base.damaged(path, |bytes| bytes.truncate(len - cut)).await;
            let lost = base.lost(&opened, &what).await;
            let bytes: usize = lost.iter().map(|message| message.fields.len() + 25).sum();
            assert!(bytes < cut + 4096, "{what}: {bytes} bytes of messages are lost");
            base.goes_on(disk, opened, &what).await;
        }
    });
}

#[test]
fn a_lost_or_emptied_segment_is_reported() {
    run(async {
        let base = Base::new().await;
        let segments = segments(&base.disk);
        for path in &segments[..segments.len() - 1] {
            for emptied in [false, true] {
                let what = format!("{} is {}", path.display(), if emptied { "empty" } else { "gone" });
                let disk = base.lab.disk();
                copy(&base.disk, &disk);
                if emptied {
                    edit(&disk, path, Vec::clear)
                } else {
                    disk.remove_file(path).unwrap()
                }
                let opened = base.lab.open(disk.clone()).await;
                let lost = base.lost(&opened, &what).await;
                let all: usize = base.wanted.iter().map(Vec::len).sum();
                assert!(!lost.is_empty() && lost.len() <= all / 2, "{what}: {} of {all} messages are lost", lost.len());
                base.goes_on(disk, opened, &what).await;
            }
        }
    });
}

/// The bytes change while the store runs and has nothing of them in memory.
#[test]
fn damage_under_a_running_store() {
    run(async {
        let mut base = Base::new().await;
        base.lab.options.tail_cache_bytes = 0;
        for path in segments(&base.disk) {
            let len = used(&base.disk, &path);
            for at in positions(len, 12) {
                let what = format!("{} byte {at}, while it is open", path.display());
                let disk = base.lab.disk();
                copy(&base.disk, &disk);
                let opened = base.lab.open(disk.clone()).await;
                edit(&disk, &path, |bytes| bytes[at] ^= 0x41);
                let lost = base.lost(&opened, &what).await;
                let puts: std::collections::BTreeSet<_> = lost.iter().map(put_of).collect();
                assert!(puts.len() <= 1, "{what}: more than one put is lost: {puts:?}");
                opened.store.close().await;
            }
        }
    });
}

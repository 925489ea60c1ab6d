//! A queue of a limited size: what makes room is gone for good, over power cuts and damage, and its files are given back.

use std::time::{Duration, Instant};

use hqueue_protocol::id::MessageId;
use hqueue_storage::conformance::batch;
use hqueue_storage::disk::{Disk, PowerCut, SimulatedDisk};
use hqueue_storage::store::{MissingReason, SizeLimit, StoreError, WhenFull};

use crate::support::{Lab, Opened, has_power, run, segments, with_seeds};

const LIMIT: u64 = 300_000;
const PARTITIONS: i16 = 3;

fn lab(when_full: WhenFull) -> Lab {
    let mut lab = Lab::new(PARTITIONS);
    lab.spec.limit = Some(SizeLimit { max_bytes: LIMIT, when_full, keep_unread: false });
    lab
}

/// What was acknowledged, in order, and what was found last.
#[derive(Debug, Default)]
struct Book {
    acknowledged: Vec<(i16, MessageId, u64)>,
    first: [Option<MessageId>; PARTITIONS as usize],
    last: [Option<MessageId>; PARTITIONS as usize],
}

impl Book {
    /// Puts some batches at the same time. False if one fails.
    async fn put(&mut self, random: &mut fastrand::Rng, opened: &Opened) -> bool {
        let mut waiting = Vec::new();
        for _ in 0..random.usize(1..8) {
            let partition = random.i16(0..PARTITIONS);
            let value = "v".repeat(random.usize(..4000));
            let batch = batch("t", &vec![&value[..]; random.usize(1..4)]);
            let bytes = batch.byte_len() as u64;
            let Ok(append) = opened.queue.store.append(partition, batch) else { return false };
            waiting.push((partition, append, bytes));
        }
        let mut is_fine = true;
        for (partition, append, bytes) in waiting {
            if matches!(append.done.await, Ok(Ok(()))) {
                self.acknowledged.push((partition, append.ids.iter().last().unwrap(), bytes));
            } else {
                is_fine = false;
            }
        }
        is_fine
    }

    /// What is there is within the limit, has no hole, does not begin before what was the first once, and has the newest third.
    async fn check(&mut self, opened: &Opened) -> Result<(), String> {
        let bytes = opened.queue.bytes().await;
        if bytes > LIMIT {
            return Err(format!("{bytes} bytes are there"));
        }
        let mut there = Vec::new();
        for partition in 0..PARTITIONS {
            let at = usize::try_from(partition).unwrap();
            let found = opened.queue.all(partition).await;
            if found.missing_because(MissingReason::Damaged) > 0 {
                return Err(format!("partition {partition} looks damaged"));
            }
            let numbers: Vec<u64> = found.messages.iter().map(|message| message.number).collect();
            if !numbers.windows(2).all(|two| two[0] + 1 == two[1]) {
                return Err(format!("partition {partition} has a hole"));
            }
            let ids = found.ids();
            let first = ids.first().copied();
            let is_back = self.first[at].is_some_and(|before| first.is_some_and(|first| first < before));
            let all_were_gone = self.first[at].is_none() && self.last[at] >= first && first.is_some();
            if is_back || all_were_gone {
                return Err(format!("partition {partition}: {first:?} is back, {:?} was the first", self.first[at]));
            }
            self.first[at] = first;
            self.last[at] = opened.queue.committed(partition).last;
            there.push(ids);
        }
        let mut newest = 0;
        for (partition, id, bytes) in self.acknowledged.iter().rev() {
            newest += bytes;
            if newest < LIMIT / 3 && there[usize::try_from(*partition).unwrap()].binary_search(id).is_err() {
                return Err(format!("{id} of partition {partition} is missing, {newest} bytes from the end"));
            }
        }
        Ok(())
    }
}

async fn survive(seed: u64) -> Result<(), String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let lab = lab(WhenFull::DropOldest);
    let mut disk = lab.disk();
    let mut book = Book::default();
    for round in 0..8 {
        disk.cut_power_after(random.bool().then(|| random.u64(..150)));
        let opened = lab.try_open(disk.clone()).await;
        if let Ok(opened) = &opened
            && has_power(&disk)
        {
            disk.cut_power_after(None);
            if has_power(&disk) {
                book.check(opened).await.map_err(|what| format!("round {round}: {what}"))?;
            }
            disk.cut_power_after(random.bool().then(|| random.u64(..150)));
            let mut puts = random.usize(..60);
            while puts > 0 && book.put(&mut random, opened).await {
                puts -= 1;
            }
            disk.cut_power_after(None);
            if has_power(&disk) {
                book.check(opened).await.map_err(|what| format!("round {round}, behind the puts: {what}"))?;
            }
        }
        if random.u8(..) < 180 || !has_power(&disk) {
            disk = disk.power_cut(PowerCut::Random(random.u64(..)));
        }
        if let Ok(opened) = opened {
            opened.store.close().await;
        }
        if random.u8(..) < 50 {
            lab.drop_index();
        }
    }
    disk.cut_power_after(None);
    let opened = lab.open(disk).await;
    let checked = book.check(&opened).await;
    opened.store.close().await;
    checked
}

#[test]
fn what_made_room_stays_gone_over_power_cuts_and_the_newest_stay() {
    with_seeds(15, 2000, |seed| run(survive(seed)).unwrap());
}

/// 300 KB in segments of 64 KiB, and one at each end. A file is given back once nobody holds it.
async fn wait_for_few_files(disk: &SimulatedDisk) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while segments(disk).len() > 8 {
        assert!(Instant::now() < deadline, "{} segments are still there after 10 s", segments(disk).len());
        tokio::task::yield_now().await;
    }
}

/// Some 10 MB go through.
#[test]
fn files_are_given_back() {
    run(async {
        let lab = lab(WhenFull::DropOldest);
        let disk = lab.disk();
        let opened = lab.open(disk.clone()).await;
        let mut random = fastrand::Rng::with_seed(3);
        let mut book = Book::default();
        for _ in 0..400 {
            assert!(book.put(&mut random, &opened).await);
            wait_for_few_files(&disk).await;
        }
        book.check(&opened).await.unwrap();
        assert!(opened.store.counters().dropped_messages > 1000);
        opened.store.close().await;
    });
}

#[test]
fn damage_in_the_oldest_messages_does_not_keep_room_from_being_made() {
    run(async {
        let lab = lab(WhenFull::DropOldest);
        let disk = lab.disk();
        let opened = lab.open(disk.clone()).await;
        let mut random = fastrand::Rng::with_seed(5);
        let mut book = Book::default();
        while opened.store.counters().dropped_messages == 0 {
            assert!(book.put(&mut random, &opened).await);
        }
        opened.store.close().await;
        for path in segments(&disk).iter().take(3) {
            let file = disk.open(path).unwrap();
            hqueue_storage::disk::write_all_at(&*file, &mut [std::io::IoSlice::new(&[7; 9000])], 20_000).unwrap();
        }
        let opened = lab.open(disk.clone()).await;
        for _ in 0..200 {
            assert!(book.put(&mut random, &opened).await);
        }
        // All that was damaged has gone.
        book.check(&opened).await.unwrap();
        wait_for_few_files(&disk).await;
        opened.store.close().await;
    });
}

#[test]
fn a_limit_that_was_made_smaller_counts_from_the_next_put() {
    run(async {
        let mut lab = lab(WhenFull::Reject);
        let disk = lab.disk();
        let opened = lab.open(disk.clone()).await;
        let mut random = fastrand::Rng::with_seed(9);
        let mut book = Book::default();
        while book.put(&mut random, &opened).await {}
        let full = opened.queue.bytes().await;
        assert!((LIMIT - 13_000..=LIMIT).contains(&full), "{full}");
        opened.store.close().await;
        lab.spec.limit = Some(SizeLimit { max_bytes: LIMIT / 2, when_full: WhenFull::DropOldest, keep_unread: false });
        let opened = lab.open(disk).await;
        assert_eq!(opened.queue.bytes().await, full);
        opened.queue.put(0, &["v"]).await;
        let bytes = opened.queue.bytes().await;
        assert!(bytes <= LIMIT / 2 && bytes > LIMIT / 2 - 50_000, "{bytes}");
        opened.store.close().await;
    });
}

/// With `async` what is gone is synced before it is gone for readers.
#[test]
fn with_async_durability_gone_is_gone_too() {
    run(async {
        let mut lab = lab(WhenFull::DropOldest);
        lab.options.durability = hqueue_storage::store::Durability::Async;
        let disk = lab.disk();
        let opened = lab.open(disk.clone()).await;
        let mut random = fastrand::Rng::with_seed(13);
        let mut book = Book::default();
        for _ in 0..100 {
            assert!(book.put(&mut random, &opened).await);
        }
        let firsts = |opened: &Opened| {
            let queue = opened.queue.store.clone();
            async move {
                let mut firsts = Vec::new();
                for partition in 0..PARTITIONS {
                    firsts.push(queue.statistics(partition).await.unwrap().first);
                }
                firsts
            }
        };
        let before = firsts(&opened).await;
        let after = disk.power_cut(PowerCut::LoseUnsynced);
        opened.store.close().await;
        let opened = lab.open(after).await;
        let found = firsts(&opened).await;
        assert!(found.iter().zip(&before).all(|(found, before)| found.is_none() || found >= before), "{found:?} {before:?}");
        opened.store.close().await;
    });
}

#[test]
fn a_refusal_says_what_would_have_fitted() {
    run(async {
        let lab = lab(WhenFull::Reject);
        let opened = lab.open(lab.disk()).await;
        let value = "v".repeat(100_000);
        let mut taken = 0;
        let refusal = loop {
            match opened.queue.try_put(0, &[&value]).await {
                Ok(_) => taken += 1,
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(taken, 2);
        let StoreError::QueueFull { put_bytes, used_bytes, limit_bytes, .. } = refusal else { panic!("{refusal}") };
        assert_eq!((used_bytes, limit_bytes), (2 * put_bytes, LIMIT));
        // A smaller one still fits.
        opened.queue.put(1, &["small"]).await;
        opened.store.close().await;
    });
}

//! Segments fill, expire and are used again, with power cuts in between: bytes of an earlier use never pass for messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hqueue_protocol::id::MessageId;
use hqueue_storage::conformance::scan;
use hqueue_storage::disk::PowerCut;
use hqueue_storage::store::{Cursor, MissingReason, QueueStore};
use tokio::task::JoinHandle;

use crate::support::{Lab, Ledger, Opened, has_power, long, run, segments, with_seeds};

const TTL_MS: i64 = 1_000;

/// What lives within the TTL fits in less.
const MOST_SEGMENTS: usize = 16;

/// Batches of puts, all answered before the clock goes on by a tenth of the TTL.
async fn work(random: &mut fastrand::Rng, lab: &Lab, opened: &Opened, ledger: &mut Ledger, batches: usize) -> bool {
    for _ in 0..batches {
        let mut waiting = Vec::new();
        for _ in 0..random.usize(1..5) {
            let filler = random.usize(..12_000);
            waiting.extend(ledger.append(&opened.queue, random.i16(0..3), random.usize(1..4), filler).ok());
        }
        let mut alive = !waiting.is_empty();
        for one in waiting {
            alive &= ledger.settle(one).await.is_ok();
        }
        if !alive {
            return false;
        }
        lab.clock.advance(100);
        ledger.expire(TTL_MS);
    }
    true
}

async fn survive(seed: u64) -> Result<(), String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let lab = Lab::with_ttl(3, TTL_MS);
    let mut disk = lab.disk();
    let mut ledger = Ledger::new(&lab);
    for round in 0..6 {
        disk.cut_power_after(random.bool().then(|| random.u64(..200)));
        if let Ok(opened) = lab.try_open(disk.clone()).await {
            work(&mut random, &lab, &opened, &mut ledger, 25).await;
            // A copy, as what was not answered may still show up behind the cut.
            match ledger.clone().check(&opened.queue).await {
                Err(what) if has_power(&disk) => return Err(format!("round {round}: {what}")),
                _ => {}
            }
            disk = disk.power_cut(PowerCut::Random(random.u64(..)));
            opened.store.close().await;
        } else {
            disk = disk.power_cut(PowerCut::Random(random.u64(..)));
        }
        let opened = lab.open(disk.clone()).await;
        ledger.check(&opened.queue).await.map_err(|what| format!("behind the cut of round {round}: {what}"))?;
        opened.store.close().await;
    }
    Ok(())
}

#[test]
fn segments_roll_and_recycle_under_cuts() {
    with_seeds(15, 2000, |seed| run(survive(seed)).unwrap());
}

/// Some 10 MB go through a queue that holds about 300 KB at a time.
#[test]
fn the_disk_does_not_grow_with_what_went_through() {
    run(async {
        let lab = Lab::with_ttl(3, TTL_MS);
        let disk = lab.disk();
        let mut ledger = Ledger::new(&lab);
        let mut random = fastrand::Rng::with_seed(7);
        let opened = lab.open(disk.clone()).await;
        for _ in 0..40 {
            assert!(work(&mut random, &lab, &opened, &mut ledger, 10).await);
            // What has expired is given back without another put.
            let deadline = Instant::now() + Duration::from_secs(10);
            while segments(&disk).len() > MOST_SEGMENTS {
                assert!(Instant::now() < deadline, "{} segments are still there after 10 s", segments(&disk).len());
                tokio::task::yield_now().await;
            }
        }
        ledger.check(&opened.queue).await.unwrap();
        opened.store.close().await;
        let opened = lab.open(disk).await;
        ledger.check(&opened.queue).await.unwrap();
        opened.store.close().await;
    });
}

/// Readers go on beside writers, expiry and recycling: what they get is right, and nothing looks damaged to them.
#[test]
fn readers_beside_recycling_see_no_damage() {
    run(async {
        let mut lab = Lab::with_ttl(3, TTL_MS);
        lab.options.tail_cache_bytes = 0;
        lab.options.read_threads = 2;
        let mut ledger = Ledger::new(&lab);
        let opened = lab.open(lab.disk()).await;
        let reads: Arc<[AtomicU64; 3]> = Arc::default();
        let wanted = if long() { 1000 } else { 30 };
        let readers: Vec<_> = (0..3)
            .map(|partition| tokio::spawn(read_until(wanted, Arc::clone(&reads), Arc::clone(&opened.queue.store), partition)))
            .collect();
        let mut random = fastrand::Rng::with_seed(11);
        while !readers.iter().all(JoinHandle::is_finished) {
            assert!(work(&mut random, &lab, &opened, &mut ledger, 5).await);
        }
        for reader in readers {
            reader.await.unwrap();
        }
        ledger.check(&opened.queue).await.unwrap();
        opened.store.close().await;
    });
}

/// Reads the partition from the beginning again and again, and follows it from where it was, until every reader has come so far.
async fn read_until(wanted: u64, reads: Arc<[AtomicU64; 3]>, queue: Arc<dyn QueueStore>, partition: i16) {
    let mut follow = Cursor::at(MessageId::MIN);
    while reads.iter().any(|reads| reads.load(SeqCst) < wanted) {
        for from in [Cursor::at(MessageId::MIN), follow] {
            let found = scan(&*queue, partition, from, 30_000).await;
            assert_eq!(found.missing_because(MissingReason::Damaged), 0, "partition {partition}: {:?}", found.missing);
            let own = format!("{partition}/");
            assert!(found.texts().iter().all(|text| text.starts_with(&own)));
            follow = found.next.unwrap();
        }
        reads[partition as usize].fetch_add(1, SeqCst);
    }
}

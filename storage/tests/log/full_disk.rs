//! A full disk (case S6): puts are refused with the reason, the rest goes on, nothing is deleted, and puts resume alone.

use hqueue_storage::disk::{PowerCut, SimulatedDisk};
use hqueue_storage::store::StoreError;

use crate::support::{Lab, Ledger, Lie, Opened, ProcessDisk, PutState, long, run};

/// How much is free at the beginning.
fn amounts() -> impl Iterator<Item = u64> {
    (0..400_000).step_by(if long() { 512 } else { 16_384 })
}

/// Opens a store and puts until the disk, of which `free` bytes are free, is full.
async fn fill(lab: &Lab, disk: &SimulatedDisk, process: &ProcessDisk, ledger: &mut Ledger, free: u64) -> Opened {
    disk.set_free_bytes(Some(free));
    let opened = match lab.try_open(process.clone()).await {
        Ok(opened) => opened,
        Err(error) => {
            assert!(matches!(error, StoreError::NoSpace { .. }), "{free} bytes free: open answers {error}");
            disk.set_free_bytes(None);
            lab.open(process.clone()).await
        }
    };
    for n in 0..200 {
        let Err(error) = ledger.put(&opened.queue, n as i16 % 3, 4, 900).await else { continue };
        assert!(error.is_retryable(), "{free} bytes free: {error}");
        assert!(matches!(&error, StoreError::NoSpace { path, .. } if path.starts_with("/data")), "{free} bytes free: {error}");
        refused_and_unseen(ledger, &opened, free).await;
        break;
    }
    opened
}

/// Large puts of all partitions at once are refused too, and no refused put is visible.
async fn refused_and_unseen(ledger: &mut Ledger, opened: &Opened, free: u64) {
    let waiting: Vec<_> = (0..3).map(|partition| ledger.append(&opened.queue, partition, 4, 60_000).unwrap()).collect();
    for one in waiting {
        let again = ledger.settle(one).await;
        assert!(matches!(again, Err(StoreError::NoSpace { .. })), "{free} bytes free, again: {again:?}");
    }
    let mut seen = ledger.clone();
    seen.check(&opened.queue).await.unwrap();
    assert!(seen.puts.iter().flatten().all(|put| put.state != PutState::Found), "a refused put is visible");
}

async fn resume(ledger: &mut Ledger, opened: &Opened, free: u64) {
    for partition in 0..3 {
        let resumed = ledger.put(&opened.queue, partition, 2, 300).await;
        resumed.unwrap_or_else(|error| panic!("{free} bytes free, resumed: {error}"));
    }
    // A copy, as what was refused may still show up after a restart.
    let mut seen = ledger.clone();
    seen.check(&opened.queue).await.unwrap_or_else(|what| panic!("{free} bytes free, resumed: {what}"));
}

#[test]
fn puts_resume_alone_when_there_is_space() {
    run(async {
        for free in amounts() {
            let lab = Lab::new(3);
            let disk = lab.disk();
            let process = ProcessDisk::new(disk.clone(), Lie::None);
            let mut ledger = Ledger::new(&lab);
            let opened = fill(&lab, &disk, &process, &mut ledger, free).await;
            disk.set_free_bytes(None);
            resume(&mut ledger, &opened, free).await;
            // What the refused puts have left behind the others is no part of the log.
            process.end();
            opened.store.close().await;
            for start in 0..2 {
                let opened = lab.open(disk.clone()).await;
                ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{free} bytes free, start {start}: {what}"));
                opened.store.close().await;
            }
        }
    });
}

#[test]
fn a_start_on_a_full_disk_serves_what_is_there() {
    run(async {
        for free in amounts() {
            let lab = Lab::new(3);
            let disk = lab.disk();
            let process = ProcessDisk::new(disk.clone(), Lie::None);
            let mut ledger = Ledger::new(&lab);
            let opened = fill(&lab, &disk, &process, &mut ledger, free).await;
            opened.store.close().await;
            let disk = disk.power_cut(PowerCut::Random(free));
            disk.set_free_bytes(Some(0));
            let opened = lab.open(disk.clone()).await;
            ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{free} bytes free, started full: {what}"));
            disk.set_free_bytes(None);
            resume(&mut ledger, &opened, free).await;
            opened.store.close().await;
            let opened = lab.open(disk).await;
            ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{free} bytes free, in the end: {what}"));
            opened.store.close().await;
        }
    });
}

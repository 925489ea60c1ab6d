//! Writes and syncs that fail, and a disk that is full (case S6).

use hqueue_storage::disk::PowerCut;
use hqueue_storage::store::StoreError;

use crate::support::{Lab, Ledger, long, run};

const PUTS: usize = 12;

/// At which calls to fail: so many that the opening and every put are met.
fn moments() -> std::ops::Range<u64> {
    0..if long() { 200 } else { 40 }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Write,
    Sync,
}

/// Puts until one fails. Where that leaves the log in doubt, every further one must fail with the reason, while reading goes on.
async fn put_until_it_fails(lab: &Lab, ledger: &mut Ledger, opened: &crate::support::Opened) -> Option<StoreError> {
    for n in 0..PUTS {
        let partition = n as i16 % 3;
        let Err(error) = ledger.put(&opened.queue, partition, 3, 700 * n).await else { continue };
        for partition in 0..3 {
            let again = ledger.put(&opened.queue, partition, 1, 10).await;
            match error {
                StoreError::Poisoned { .. } => {
                    assert!(matches!(again, Err(StoreError::Poisoned { .. })), "behind {error} a put answers {again:?}");
                }
                // Nothing of the log was touched: a new segment could not be begun.
                _ => assert!(again.is_ok(), "behind {error} a put answers {again:?}"),
            }
            opened.queue.all(partition).await;
        }
        return Some(error);
    }
    lab.clock.advance(1);
    None
}

async fn fail_at(fault: Fault, moment: u64, then: PowerCut) -> bool {
    let lab = Lab::new(3);
    let disk = lab.disk();
    let at = format!("{fault:?} {moment} fails, then {then:?}");
    let mut ledger = Ledger::new(&lab);
    match fault {
        Fault::Write => disk.fail_writes(moment, 1),
        Fault::Sync => disk.fail_syncs(moment, 1),
    }
    let failed = match lab.try_open(disk.clone()).await {
        Err(_) => true,
        Ok(opened) => {
            let failed = put_until_it_fails(&lab, &mut ledger, &opened).await;
            let disk_again = disk.clone();
            if failed.is_some() && moment.is_multiple_of(2) {
                // The process lives on: opening the queue again is enough.
                let queue = lab.open_queue(&opened.store).await.unwrap_or_else(|error| panic!("{at}: {error}"));
                ledger.check(&queue).await.unwrap_or_else(|what| panic!("{at}, opened again: {what}"));
                ledger.put(&queue, 0, 2, 10).await.unwrap_or_else(|error| panic!("{at}, opened again: {error}"));
            }
            drop(disk_again);
            opened.store.close().await;
            failed.is_some()
        }
    };
    let disk = disk.power_cut(then);
    for _ in 0..2 {
        let opened = lab.open(disk.clone()).await;
        ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{at}: {what}"));
        for partition in 0..3 {
            ledger.put(&opened.queue, partition, 2, 10).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        }
        opened.store.close().await;
    }
    failed
}

#[test]
fn a_failed_write_at_any_moment() {
    run(async {
        let mut failed = 0;
        for moment in moments() {
            failed += u64::from(fail_at(Fault::Write, moment, PowerCut::KeepAll).await);
            failed += u64::from(fail_at(Fault::Write, moment, PowerCut::LoseUnsynced).await);
        }
        assert!(failed > 20, "only {failed} faults were met");
    });
}

#[test]
fn a_failed_sync_at_any_moment() {
    run(async {
        let mut failed = 0;
        for moment in moments() {
            for then in [PowerCut::KeepAll, PowerCut::LoseUnsynced, PowerCut::Random(moment)] {
                failed += u64::from(fail_at(Fault::Sync, moment, then).await);
            }
        }
        assert!(failed > 20, "only {failed} faults were met");
    });
}

//! Removing, making anew and truncating a queue, cut off by the power at every moment: all of it is there or nothing, and what was
//! answered holds.

use hqueue_storage::disk::{PowerCut, SimulatedDisk};
use hqueue_storage::store::QueueSpec;
use uuid::Uuid;

use crate::support::{Lab, Ledger, Opened, run};

/// At most so many calls change the disk in one command.
const MOST_OPERATIONS: u64 = 60;

const CUTS: [PowerCut; 4] = [PowerCut::LoseUnsynced, PowerCut::KeepAll, PowerCut::Random(1), PowerCut::Random(2)];

/// Some segments full of messages, reopened.
async fn filled(lab: &Lab) -> (SimulatedDisk, Opened, Ledger) {
    let disk = lab.disk();
    let opened = lab.open(disk.clone()).await;
    let mut ledger = Ledger::new(lab);
    for n in 0..30 {
        ledger.put(&opened.queue, n % 3, 3, 2000).await.unwrap();
    }
    opened.store.close().await;
    let opened = lab.open(disk.clone()).await;
    (disk, opened, ledger)
}

/// Everything or nothing; nothing if that was answered.
async fn check(lab: &Lab, disk: SimulatedDisk, mut ledger: Ledger, answered: bool, at: &str) {
    let opened = lab.open(disk.clone()).await;
    let here = opened.queue.all(0).await.messages.len() + opened.queue.all(2).await.messages.len();
    assert!(!answered || here == 0, "{at}: answered, and {here} messages are there");
    if here == 0 {
        ledger.all_gone();
    }
    ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{at}: {what}"));
    for partition in 0..3 {
        ledger.put(&opened.queue, partition, 2, 10).await.unwrap();
    }
    opened.store.close().await;
    let opened = lab.open(disk).await;
    ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{at}, and a later start: {what}"));
    opened.store.close().await;
}

#[test]
fn a_truncation_is_whole() {
    run(async {
        let mut answered = 0;
        for moment in 0..MOST_OPERATIONS {
            let how = CUTS[moment as usize % 4];
            let lab = Lab::new(3);
            let (disk, opened, ledger) = filled(&lab).await;
            disk.cut_power_after(Some(moment));
            let is_done = opened.queue.store.truncate().await.is_ok();
            answered += u64::from(is_done);
            let disk = disk.power_cut(how);
            opened.store.close().await;
            check(&lab, disk, ledger, is_done, &format!("cut {moment}, {how:?}")).await;
        }
        assert!((1..MOST_OPERATIONS).contains(&answered), "{answered} truncations were answered");
    });
}

#[test]
fn a_removal_is_whole() {
    run(async {
        let mut answered = 0;
        for moment in 0..MOST_OPERATIONS {
            let how = CUTS[moment as usize % 4];
            let lab = Lab::new(3);
            let (disk, opened, ledger) = filled(&lab).await;
            disk.cut_power_after(Some(moment));
            let is_done = opened.store.remove_queue(&lab.spec.name, lab.spec.uid).await.is_ok();
            answered += u64::from(is_done);
            let disk = disk.power_cut(how);
            opened.store.close().await;
            check(&lab, disk, ledger, is_done, &format!("cut {moment}, {how:?}")).await;
        }
        assert!((1..MOST_OPERATIONS).contains(&answered), "{answered} removals were answered");
    });
}

/// The same name with another uid: the earlier queue's messages never pass for the later one's.
#[test]
fn a_successor_never_has_messages_of_its_predecessor() {
    run(async {
        for moment in 0..MOST_OPERATIONS {
            let how = CUTS[moment as usize % 4];
            let mut lab = Lab::new(3);
            let (disk, opened, _) = filled(&lab).await;
            opened.store.close().await;
            lab.spec = QueueSpec { uid: Uuid::new_v4(), ..lab.spec.clone() };
            let mut ledger = Ledger::new(&lab);
            disk.cut_power_after(Some(moment));
            if let Ok(opened) = lab.try_open(disk.clone()).await {
                for partition in 0..3 {
                    // The power may be off by now.
                    let _ = ledger.put(&opened.queue, partition, 2, 10).await;
                }
                opened.store.close().await;
            }
            check_successor(&lab, disk.power_cut(how), ledger, &format!("cut {moment}, {how:?}")).await;
        }
    });
}

async fn check_successor(lab: &Lab, disk: SimulatedDisk, mut ledger: Ledger, at: &str) {
    for start in 0..2 {
        let opened = lab.open(disk.clone()).await;
        ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{at}, start {start}: {what}"));
        ledger.put(&opened.queue, 1, 2, 10).await.unwrap();
        opened.store.close().await;
    }
}

//! The process ends or the power fails at any moment, again and again: what was acknowledged is there, nothing else appears, ids rise
//! (case S4).

use hqueue_storage::conformance::START_MS;
use hqueue_storage::disk::PowerCut;
use hqueue_storage::store::StoreError;

use crate::support::{Lab, Ledger, Lie, Opened, ProcessDisk, copy_folder, has_power, run, with_seeds};

const PARTITIONS: i16 = 3;

const HOUR_MS: i64 = 3_600_000;

/// Puts at random, many at once, until the store answers with an error or there were enough.
async fn work(random: &mut fastrand::Rng, lab: &Lab, opened: &Opened, ledger: &mut Ledger) {
    let mut waiting = Vec::new();
    let mut alive = true;
    for _ in 0..random.usize(1..80) {
        let filler = if random.u8(..) < 8 { random.usize(..40_000) } else { random.usize(..300) };
        match ledger.append(&opened.queue, random.i16(0..PARTITIONS), random.usize(1..6), filler) {
            Ok(one) => waiting.push(one),
            Err(StoreError::Busy { .. }) => {}
            Err(_) => alive = false,
        }
        lab.clock.advance(random.i64(0..3));
        if random.u8(..) < 4 {
            lab.clock.set_wall(START_MS + random.i64(-HOUR_MS..HOUR_MS));
        }
        if !alive || waiting.len() > random.usize(..12) {
            for one in waiting.drain(..) {
                alive &= ledger.settle(one).await.is_ok();
            }
        }
        if !alive {
            break;
        }
    }
    if random.bool() {
        for one in waiting.drain(..) {
            // After a failure every answer is one: nothing is acknowledged on a guess.
            let _ = ledger.settle(one).await;
        }
    }
    // The others are under way when the end comes.
}

/// A put that is written and not synced when the end comes.
async fn leave_unsynced(random: &mut fastrand::Rng, process: &ProcessDisk, opened: &Opened, ledger: &mut Ledger) {
    process.hold_syncs();
    if ledger.append(&opened.queue, random.i16(0..PARTITIONS), 3, 100).is_ok() {
        process.wait_for_sync();
    }
}

/// Some rounds of work, each ended by the end of the process or a power cut.
async fn survive(seed: u64, rounds: usize, lie: Lie) -> Result<(), String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let lab = Lab::new(PARTITIONS);
    let mut disk = lab.disk();
    let mut ledger = Ledger::new(&lab);
    for round in 0..rounds {
        // Also within the opening, and within the recovery from the cut before.
        disk.cut_power_after(random.bool().then(|| random.u64(..120)));
        let process = ProcessDisk::new(disk.clone(), lie);
        let opened = lab.try_open(process.clone()).await;
        if let Ok(opened) = &opened {
            match ledger.check(&opened.queue).await {
                Err(what) if has_power(&disk) => return Err(format!("round {round}: {what}")),
                Err(_) => {}
                Ok(()) => work(&mut random, &lab, opened, &mut ledger).await,
            }
            match random.u8(..) {
                0..64 => opened.store.close().await,
                64..128 if has_power(&disk) => leave_unsynced(&mut random, &process, opened, &mut ledger).await,
                _ => {}
            }
        }
        process.end();
        process.release_syncs();
        if random.bool() || !has_power(&disk) {
            disk = disk.power_cut(PowerCut::Random(random.u64(..)));
        }
        if let Ok(opened) = opened {
            opened.store.close().await;
        }
        change_index(&mut random, &lab);
    }
    disk.cut_power_after(None);
    let opened = lab.open(ProcessDisk::new(disk, lie)).await;
    let checked = ledger.check(&opened.queue).await;
    opened.store.close().await;
    checked
}

/// The index is now and then lost, or an earlier one.
fn change_index(random: &mut fastrand::Rng, lab: &Lab) {
    let (index, copy) = (lab.index(), lab.scratch("index"));
    match random.u8(..) {
        0..50 => lab.drop_index(),
        50..80 if index.exists() && !copy.exists() => copy_folder(&index, &copy),
        80..120 if copy.exists() => {
            lab.drop_index();
            copy_folder(&copy, &index);
        }
        _ => {}
    }
}

#[test]
fn what_was_acknowledged_survives_random_ends() {
    with_seeds(30, 3000, |seed| run(survive(seed, 6, Lie::None)).unwrap());
}

/// The test can tell: on a disk that only says that it has synced, acknowledged messages are lost, and it notices.
#[test]
fn a_disk_that_lies_about_data_is_found_out() {
    assert!(is_noticed(Lie::Data), "no loss was noticed on a disk that syncs no data");
}

#[test]
fn a_disk_that_lies_about_names_is_found_out() {
    assert!(is_noticed(Lie::Names), "no loss was noticed on a disk that syncs no folder");
}

fn is_noticed(lie: Lie) -> bool {
    // An id that is given twice is noticed by a panic.
    let is_fine = |seed| std::panic::catch_unwind(|| run(survive(seed, 4, lie)).is_ok()).unwrap_or(false);
    !(0..10).all(is_fine)
}

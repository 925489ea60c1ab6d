//! What an answer promises: with `sync` the power may fail, with `async` the process may end (case S4).

use std::time::{Duration, Instant};

use hqueue_storage::conformance::Message;
use hqueue_storage::disk::PowerCut;
use hqueue_storage::store::{Durability, MissingReason};

use crate::support::{Lab, Ledger, run};

async fn puts_then(
    durability: Durability,
    async_sync: Duration,
    how: PowerCut,
) -> (Lab, Ledger, hqueue_storage::disk::SimulatedDisk) {
    let mut lab = Lab::new(3);
    lab.options.durability = durability;
    lab.options.async_sync = async_sync;
    let disk = lab.disk();
    let mut ledger = Ledger::new(&lab);
    let opened = lab.open(disk.clone()).await;
    for n in 0..100 {
        ledger.put(&opened.queue, n % 3, 2, 300).await.unwrap();
    }
    let disk = disk.power_cut(how);
    opened.store.close().await;
    (lab, ledger, disk)
}

#[test]
fn sync_survives_both() {
    run(async {
        for how in [PowerCut::KeepAll, PowerCut::LoseUnsynced, PowerCut::Random(1), PowerCut::Random(2)] {
            let (lab, mut ledger, disk) = puts_then(Durability::Sync, Duration::from_millis(100), how).await;
            let opened = lab.open(disk).await;
            ledger.check(&opened.queue).await.unwrap_or_else(|what| panic!("{how:?}: {what}"));
            opened.store.close().await;
        }
    });
}

#[test]
fn async_survives_the_end_of_the_process() {
    run(async {
        let (lab, mut ledger, disk) = puts_then(Durability::Async, Duration::from_secs(3600), PowerCut::KeepAll).await;
        let opened = lab.open(disk).await;
        ledger.check(&opened.queue).await.unwrap();
        opened.store.close().await;
    });
}

/// What was not synced may be lost, and whatever is lost is reported unless it is the end; the store goes on with the rest.
#[test]
fn async_loses_only_what_was_not_synced_in_a_power_cut() {
    run(async {
        for how in (0..20).map(PowerCut::Random).chain([PowerCut::LoseUnsynced]) {
            let (lab, ledger, disk) = puts_then(Durability::Async, Duration::from_secs(3600), how).await;
            let opened = lab.open(disk.clone()).await;
            let mut kept = Vec::new();
            for (partition, puts) in ledger.puts.iter().enumerate() {
                let found = opened.queue.all(partition as i16).await;
                let is_put = |message: &Message| puts.iter().any(|put| put.has(message));
                assert!(found.messages.iter().all(is_put), "{how:?}: there is something else");
                let lost_inside = found.messages.last().map_or(0, |last| last.number + 1) - found.messages.len() as u64;
                let told = found.missing_because(MissingReason::Damaged);
                assert!(told >= lost_inside, "{how:?}: {lost_inside} are lost before others, {told} are reported");
                let mut ids = found.ids();
                ids.extend(opened.queue.put(partition as i16, &["later"]).await);
                assert!(ids.is_sorted_by(|a, b| a < b), "{how:?}");
                kept.push(ids);
            }
            opened.store.close().await;
            let opened = lab.open(disk).await;
            for (partition, ids) in kept.iter().enumerate() {
                assert_eq!(opened.queue.all(partition as i16).await.ids(), *ids, "{how:?}");
            }
            opened.store.close().await;
        }
    });
}

/// Written bytes are synced soon, without another put that would bring it about; and a close syncs what is left.
#[test]
fn async_is_synced_in_the_background_and_at_the_close() {
    run(async {
        let mut lab = Lab::new(3);
        lab.options.durability = Durability::Async;
        lab.options.async_sync = Duration::from_millis(5);
        let disk = lab.disk();
        let mut ledger = Ledger::new(&lab);
        let opened = lab.open(disk.clone()).await;
        let before = disk.operations();
        ledger.put(&opened.queue, 0, 2, 10).await.unwrap();
        let written = disk.operations();
        assert!(written > before);
        let deadline = Instant::now() + Duration::from_secs(10);
        while opened.store.counters().syncs == 0 || disk.operations() == written {
            assert!(Instant::now() < deadline, "nothing was synced in 10 s");
            tokio::task::yield_now().await;
        }
        let disk = disk.power_cut(PowerCut::LoseUnsynced);
        opened.store.close().await;
        lab.options.async_sync = Duration::from_secs(3600);
        let opened = lab.open(disk.clone()).await;
        ledger.check(&opened.queue).await.unwrap();
        ledger.put(&opened.queue, 1, 2, 10).await.unwrap();
        opened.store.close().await;
        let opened = lab.open(disk.power_cut(PowerCut::LoseUnsynced)).await;
        ledger.check(&opened.queue).await.unwrap();
        opened.store.close().await;
    });
}

//! What the tests of the segment log share.

mod between;
mod files;
mod lab;
mod ledger;
mod recording;

pub(crate) use between::{Lie, ProcessDisk};
pub(crate) use files::{copy, copy_folder, edit, has_power, segments, used};
pub(crate) use lab::{Lab, Opened, memory_folder};
pub(crate) use ledger::{Ledger, PutState};
pub(crate) use recording::{Change, RecordingDisk, replay};

/// Should tests take their long form? (`HQUEUE_LONG_TESTS=1`)
pub(crate) fn long() -> bool {
    std::env::var_os("HQUEUE_LONG_TESTS").is_some()
}

/// Runs `test` with some seeds and prints each before it is used; `HQUEUE_SEED` names a single one.
pub(crate) fn with_seeds(quick: u64, in_long_form: u64, mut test: impl FnMut(u64)) {
    if let Some(seed) = std::env::var("HQUEUE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        println!("seed {seed}");
        return test(seed);
    }
    let first = fastrand::u64(..1_000_000_000);
    for seed in first..first + if long() { in_long_form } else { quick } {
        println!("seed {seed} (again with HQUEUE_SEED={seed})");
        test(seed);
    }
}

/// Runs a test to its end on a runtime of its own, within a deadline.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limit = std::time::Duration::from_secs(if long() { 3600 } else { 120 });
    runtime.block_on(async { tokio::time::timeout(limit, test).await.expect("the test ends within its deadline") })
}

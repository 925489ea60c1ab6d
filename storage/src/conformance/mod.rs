//! What every store must do, as tests that run against any implementation of the seam.
//!
//! An implementation brings a [`Harness`], which opens its stores, and names every case as a test of its own with
//! [`conformance_tests!`](crate::conformance_tests):
//!
//! ```text
//! hqueue_storage::conformance_tests!(in_memory: MemoryHarness::default());
//! ```
//!
//! A case fails by a panic that says what was expected. Time is a [`ManualClock`]: no case waits for a real second.

// This is test code that has to be public, so that the tests of every implementation can reach it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod appends;
mod clock;
mod concurrency;
mod counts;
mod cursors;
mod ids;
mod lifecycle;
mod limits;
mod recorder;
mod retention;
mod scan;
mod table;
mod truncation;
mod ttl;
mod world;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

pub use self::clock::ManualClock;
pub use self::recorder::Recorder;
pub use self::scan::{Message, Scanned, scan, try_scan};
pub use self::table::{CASES, LIMIT_CASES};
pub use self::world::{Queue, START_MS, Topic, World, batch};
use crate::store::{MessageStore, StoreError};

/// No case may take longer unless the harness says so; one that does waits for something that never comes.
const DEADLINE: Duration = Duration::from_secs(60);

/// Opens the stores of one implementation. Each case gets a harness of its own, with nothing in it.
pub trait Harness: Send + Sync + 'static {
    /// A store over what earlier stores of this harness have left; the case has closed those. Time is taken from `clock`.
    fn open(&self, clock: Arc<ManualClock>) -> BoxFuture<'_, Result<Arc<dyn MessageStore>, StoreError>>;

    /// How long a case may take.
    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// One named behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// `file::behaviour`.
    pub name: &'static str,
    run: for<'a> fn(&'a mut World) -> BoxFuture<'a, ()>,
}

/// Runs the case of that name.
///
/// # Panics
/// If the store does not do what the case says, or there is no such case.
pub fn run(name: &str, harness: impl Harness) {
    let case =
        CASES.iter().chain(LIMIT_CASES).find(|case| case.name == name).unwrap_or_else(|| panic!("there is no case {name}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let deadline = harness.deadline();
    runtime.block_on(async {
        let all = async {
            let mut world = World::new(Box::new(harness)).await;
            (case.run)(&mut world).await;
            world.store.close().await;
        };
        tokio::time::timeout(deadline, all).await.unwrap_or_else(|_| panic!("{name} is not done after {deadline:?}"));
    });
}

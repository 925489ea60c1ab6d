//! Clocks that tests turn by hand.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use crate::clock::Clock;

/// Stands still until it is told otherwise; the wall clock and the monotonic one move apart when a test wants it.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicI64,
}

impl ManualClock {
    /// The wall clock shows `wall_ms` milliseconds since 1970 UTC.
    #[must_use]
    pub const fn at(wall_ms: i64) -> Self {
        Self { wall_ms: AtomicI64::new(wall_ms), monotonic_ms: AtomicI64::new(0) }
    }

    /// Time passes: both clocks go forward by `ms` milliseconds.
    pub fn advance(&self, ms: i64) {
        self.wall_ms.fetch_add(ms, SeqCst);
        self.monotonic_ms.fetch_add(ms, SeqCst);
    }

    /// Somebody sets the wall clock, forward or back; no time passes.
    pub fn set_wall(&self, wall_ms: i64) {
        self.wall_ms.store(wall_ms, SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.wall_ms.load(SeqCst)
    }

    fn monotonic_ms(&self) -> i64 {
        self.monotonic_ms.load(SeqCst)
    }
}

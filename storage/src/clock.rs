//! Time as the stores see it; tests bring their own.

use std::fmt::Debug;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A wall clock, which may jump, beside a monotonic one, which does not.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Milliseconds since 1970 UTC by the wall clock.
    fn now_ms(&self) -> i64;
    /// Milliseconds since some fixed moment; never steps back.
    fn monotonic_ms(&self) -> i64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

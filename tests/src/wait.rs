//! Waiting for a condition, with a deadline.

use std::panic::Location;
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const STEP: Duration = Duration::from_millis(5);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not hold within `limit`.
#[track_caller]
pub fn wait(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, limit, || condition().then_some(()));
}

/// Waits until `look` finds something, and returns it.
///
/// # Panics
/// When it finds nothing within `limit`.
#[track_caller]
pub fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let caller = Location::caller();
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{caller}: not within {limit:?}: {what}");
        std::thread::sleep(STEP);
    }
}

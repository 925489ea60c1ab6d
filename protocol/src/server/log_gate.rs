//! A log line at most once a second.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lets one line pass a second and counts the others.
#[derive(Debug, Default)]
pub(super) struct LogGate {
    /// When the next line may pass, in milliseconds.
    open_at: AtomicU64,
    held_back: AtomicU64,
}

impl LogGate {
    /// `Some` if a line may be written at `now` (in milliseconds), with how many were held back since the last one.
    pub(super) fn pass(&self, now: u64) -> Option<u64> {
        let open_at = self.open_at.load(Ordering::Relaxed);
        let takes = |next| self.open_at.compare_exchange(open_at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now >= open_at && takes(now.saturating_add(1000)) {
            Some(self.held_back.swap(0, Ordering::Relaxed))
        } else {
            self.held_back.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_with_the_count_of_the_others() {
        let gate = LogGate::default();
        assert_eq!(gate.pass(0), Some(0));
        assert_eq!(gate.pass(1), None);
        assert_eq!(gate.pass(999), None);
        assert_eq!(gate.pass(1000), Some(2));
        assert_eq!(gate.pass(1001), None);
    }
}

//! How fast a transfer has to go.

use std::time::Duration;

/// The limits of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaceLimits {
    /// Without any progress, in milliseconds.
    pub(super) stall: u64,
    /// In all, in milliseconds, and longer by what the bytes take at `rate`.
    pub(super) total: u64,
    /// Bytes a second.
    pub(super) rate: u64,
}

impl PaceLimits {
    pub(super) fn new(stall: Duration, total: Duration, rate: u32) -> Self {
        Self { stall: millis(stall), total: millis(total), rate: rate.max(1).into() }
    }
}

/// A transfer under way: one byte every now and then does not keep it alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    began: u64,
    progress: u64,
    bytes: u64,
}

impl Pace {
    /// It begins at `now`, in milliseconds.
    pub(super) fn begin(now: u64) -> Self {
        Self { began: now, progress: now, bytes: 0 }
    }

    pub(super) fn advance(&mut self, now: u64, bytes: usize) {
        self.progress = now;
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// When it is given up unless it gets on, in milliseconds.
    pub(super) fn deadline(&self, limits: PaceLimits) -> u64 {
        let stalled = self.progress.saturating_add(limits.stall);
        let earned = self.bytes.saturating_mul(1000) / limits.rate;
        stalled.min(self.began.saturating_add(limits.total).saturating_add(earned))
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PaceLimits = PaceLimits { stall: 30_000, total: 60_000, rate: 1000 };

    #[test]
    fn a_byte_now_and_then_does_not_prolong_a_transfer_for_ever() {
        let mut pace = Pace::begin(0);
        for now in (29_000..=58_000).step_by(29_000) {
            assert!(pace.deadline(LIMITS) > now);
            pace.advance(now, 1);
        }
        assert!(pace.deadline(LIMITS) < 60_100);
    }

    #[test]
    fn a_large_transfer_at_the_least_rate_is_given_its_time() {
        let mut pace = Pace::begin(0);
        for second in 1..600 {
            assert!(pace.deadline(LIMITS) > second * 1000);
            pace.advance(second * 1000, 1000);
        }
    }

    #[test]
    fn silence_ends_it() {
        let mut pace = Pace::begin(5);
        pace.advance(100, 1 << 30);
        assert_eq!(pace.deadline(LIMITS), 30_100);
    }
}

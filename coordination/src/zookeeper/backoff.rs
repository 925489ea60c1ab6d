//! How long to wait before the next attempt to get a session.

use std::time::Duration;

const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(5);

/// Doubles from 200 ms to 5 s; each wait is random between 100 ms and that, so that clients that lost their server together do
/// not come back together.
#[derive(Debug)]
pub(super) struct Backoff {
    ceiling: Duration,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { ceiling: LEAST }
    }

    pub(super) fn next(&mut self, random: f64) -> Duration {
        self.ceiling = (self.ceiling * 2).min(MOST);
        LEAST + (self.ceiling - LEAST).mul_f64(random.clamp(0.0, 1.0))
    }

    /// The next wait is a short one again.
    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_within_their_bounds() {
        let mut backoff = Backoff::new();
        let longest: Vec<_> = (0..8).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(longest, [200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(backoff.next(0.0), LEAST);
        backoff.reset();
        assert!(backoff.next(fastrand::f64()) <= Duration::from_millis(200));
    }
}

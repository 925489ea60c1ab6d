//! A limit on how much is sent in a second.

use std::time::Duration;

use tokio::time::Instant;

/// Tokens that come back with time, at most those of a second. What is taken beyond them has to be waited for.
#[derive(Debug)]
pub struct Bucket {
    per_second: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// Full. 0 a second: without a limit.
    #[must_use]
    pub fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second: per_second.into(), tokens: per_second.into(), at: now }
    }

    /// Takes `amount`, and says how long to wait before it may be used.
    pub fn take(&mut self, amount: u64, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact to the last bit")]
        let amount = amount as f64;
        self.tokens = (self.tokens + passed * self.per_second).min(self.per_second) - amount;
        if self.tokens >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-self.tokens / self.per_second) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_gives_what_it_may_and_no_more() {
        let begin = Instant::now();
        let mut bucket = Bucket::new(100, begin);
        let mut now = begin;
        let mut taken = 0;
        while now < begin + Duration::from_secs(10) {
            now += bucket.take(7, now);
            taken += 7;
        }
        assert!((1_090..=1_110).contains(&taken), "{taken} in ten seconds and one second's stock");
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let now = Instant::now();
        assert_eq!(Bucket::new(0, now).take(u64::MAX, now), Duration::ZERO);
    }
}

//! How long pushes took.

use std::time::Duration;

use crate::output::say;

/// Times of all lines, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<u32>);

impl Times {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    /// Says how many messages there were and how long they took.
    pub(super) fn report(&mut self) {
        self.0.sort_unstable();
        if let (Some(median), Some(p99)) = (self.percentile(50), self.percentile(99)) {
            let count = self.0.len();
            say(format_args!("\n{count} messages, from put to push: median {median:.2} ms, 99 of 100 within {p99:.2} ms"));
        }
    }

    /// In milliseconds, of times that are sorted: so many of 100 took no longer.
    fn percentile(&self, of_100: usize) -> Option<f64> {
        let place = (self.0.len() * of_100).div_ceil(100).saturating_sub(1);
        self.0.get(place).map(|micros| f64::from(*micros) / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_seen() {
        let times = |n: u32| Times((1..=n).map(|ms| ms * 1000).collect());
        assert_eq!((times(100).percentile(50), times(100).percentile(99)), (Some(50.0), Some(99.0)));
        assert_eq!((times(1).percentile(50), times(1).percentile(99)), (Some(1.0), Some(1.0)));
        assert_eq!((times(3).percentile(50), times(1000).percentile(99)), (Some(2.0), Some(990.0)));
        assert_eq!(times(0).percentile(50), None);
    }
}

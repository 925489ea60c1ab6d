//! How long to wait before something that failed is tried again.

use std::time::Duration;

/// The wait before repetition number `failures` (1 is the first): `min` doubling to `max`, with 20 % of jitter either way.
/// `dice` is uniform in 0..1.
#[must_use]
pub fn delay(min: Duration, max: Duration, failures: u32, dice: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let plain = min.saturating_mul(1u32 << doublings).min(max);
    plain.mul_f64(0.8 + 0.4 * dice.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_from_min_to_max() {
        let wait = |n| delay(Duration::from_secs(1), Duration::from_secs(60), n, 0.5);
        assert_eq!(wait(1), Duration::from_secs(1));
        assert_eq!(wait(2), Duration::from_secs(2));
        assert_eq!(wait(6), Duration::from_secs(32));
        assert_eq!(wait(7), Duration::from_secs(60));
        assert_eq!(wait(u32::MAX), Duration::from_secs(60));
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        let wait = |dice| delay(Duration::from_secs(10), Duration::from_secs(60), 1, dice);
        assert_eq!(wait(0.0), Duration::from_secs(8));
        assert_eq!(wait(1.0), Duration::from_secs(12));
    }
}

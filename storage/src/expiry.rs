//! The time by which messages expire: the wall clock, unless it has just jumped.
//!
//! A wall clock that goes a day ahead by mistake must not make a day's messages expire. So a jump of more than [`JUMP_MS`] against the
//! monotonic clock is doubted until the two have agreed for [`BELIEVED_AFTER_MS`]; until then time goes on as the monotonic clock says
//! (or as the wall clock says, if that is earlier: messages that arrive behind a step back carry its time, and must have their whole
//! TTL). After a restart the wall clock is believed at once, as there is nothing to hold against it.

use std::sync::{Mutex, PoisonError};

use crate::clock::Clock;

/// A difference that is not yet a jump. Milliseconds.
pub const JUMP_MS: i64 = 60_000;

/// A jump is believed when the wall clock has gone on beside the monotonic one for so long. Milliseconds.
pub const BELIEVED_AFTER_MS: i64 = 600_000;

/// Tells the time by which messages expire. It learns of jumps only when it is asked: ask it at least every few minutes.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryClock {
    /// The last moment at which the wall clock was believed, by both clocks.
    believed: Moment,
    doubted: Option<Jump>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    wall_ms: i64,
    monotonic_ms: i64,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    by_ms: i64,
    since_monotonic_ms: i64,
}

/// What the clock has to report, once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockReport {
    /// The wall clock has jumped by so many milliseconds; expiry does not follow it yet.
    Doubted { by_ms: i64 },
    /// It has stayed there long enough; expiry follows it from now on.
    Believed { by_ms: i64 },
    /// It has come back to where it should be; expiry has followed it no time.
    Corrected,
}

impl ExpiryClock {
    /// Believes the wall clock as it is now. Milliseconds.
    #[must_use]
    pub const fn starting(wall_ms: i64, monotonic_ms: i64) -> Self {
        Self { believed: Moment { wall_ms, monotonic_ms }, doubted: None }
    }

    /// The time to expire by, in milliseconds since 1970 UTC, when the clocks show this; and what is to be reported.
    pub fn now(&mut self, wall_ms: i64, monotonic_ms: i64) -> (i64, Option<ClockReport>) {
        let passed_ms = monotonic_ms.saturating_sub(self.believed.monotonic_ms);
        let expected_ms = self.believed.wall_ms.saturating_add(passed_ms);
        let by_ms = wall_ms.saturating_sub(expected_ms);
        if within(by_ms, JUMP_MS) {
            self.believed = Moment { wall_ms, monotonic_ms };
            return (wall_ms, self.doubted.take().map(|_| ClockReport::Corrected));
        }
        let unless_later = wall_ms.min(expected_ms);
        match self.doubted {
            Some(jump) if within(by_ms.saturating_sub(jump.by_ms), JUMP_MS) => {
                if monotonic_ms.saturating_sub(jump.since_monotonic_ms) < BELIEVED_AFTER_MS {
                    return (unless_later, None);
                }
                *self = Self::starting(wall_ms, monotonic_ms);
                (wall_ms, Some(ClockReport::Believed { by_ms }))
            }
            _ => {
                self.doubted = Some(Jump { by_ms, since_monotonic_ms: monotonic_ms });
                (unless_later, Some(ClockReport::Doubted { by_ms }))
            }
        }
    }
}

/// The same clock for many, with its reports in the log.
#[derive(Debug)]
pub struct SharedExpiryClock(Mutex<ExpiryClock>);

impl SharedExpiryClock {
    /// Believes the wall clock as it is now.
    #[must_use]
    pub fn starting(clock: &dyn Clock) -> Self {
        Self(Mutex::new(ExpiryClock::starting(clock.now_ms(), clock.monotonic_ms())))
    }

    /// The time by which messages expire. Milliseconds since 1970 UTC.
    pub fn now_ms(&self, clock: &dyn Clock) -> i64 {
        let mut expiry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now_ms, report) = expiry.now(clock.now_ms(), clock.monotonic_ms());
        drop(expiry);
        match report {
            Some(ClockReport::Doubted { by_ms }) => tracing::warn!(
                by_ms,
                "the wall clock has jumped: messages expire as if it had not, until it has stayed so for 10 minutes"
            ),
            Some(ClockReport::Believed { by_ms }) => {
                tracing::warn!(by_ms, "the wall clock has stayed where it jumped to: messages expire by it from now on");
            }
            Some(ClockReport::Corrected) => tracing::info!("the wall clock is back where it should be"),
            None => {}
        }
        now_ms
    }
}

const fn within(difference_ms: i64, limit_ms: i64) -> bool {
    difference_ms.unsigned_abs() <= limit_ms.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const NOON: i64 = 1_700_000_000_000;

    #[test]
    fn the_wall_clock_counts_while_it_agrees() {
        let mut clock = ExpiryClock::starting(NOON, 5);
        assert_eq!(clock.now(NOON + 10, 15), (NOON + 10, None));
        // Set back and forward by less than a minute.
        assert_eq!(clock.now(NOON - 40_000, 20), (NOON - 40_000, None));
        assert_eq!(clock.now(NOON + 15_000, 25), (NOON + 15_000, None));
        // A day without a question.
        assert_eq!(clock.now(NOON + 24 * HOUR, 24 * HOUR), (NOON + 24 * HOUR, None));
    }

    #[test]
    fn a_jump_ahead_is_followed_after_ten_minutes() {
        let mut clock = ExpiryClock::starting(NOON, 0);
        let jumped = NOON + 24 * HOUR;
        assert_eq!(clock.now(jumped, 0), (NOON, Some(ClockReport::Doubted { by_ms: 24 * HOUR })));
        for minute in 1..10 {
            assert_eq!(clock.now(jumped + minute * MINUTE, minute * MINUTE), (NOON + minute * MINUTE, None));
        }
        let believed = Some(ClockReport::Believed { by_ms: 24 * HOUR });
        assert_eq!(clock.now(jumped + 10 * MINUTE, 10 * MINUTE), (jumped + 10 * MINUTE, believed));
        assert_eq!(clock.now(jumped + 11 * MINUTE, 11 * MINUTE), (jumped + 11 * MINUTE, None));
    }

    #[test]
    fn a_jump_that_is_corrected_leaves_no_trace() {
        let mut clock = ExpiryClock::starting(NOON, 0);
        clock.now(NOON + 24 * HOUR, 0);
        assert_eq!(clock.now(NOON + MINUTE, MINUTE), (NOON + MINUTE, Some(ClockReport::Corrected)));
        // The next one is doubted for ten minutes of its own.
        assert_eq!(clock.now(NOON + 24 * HOUR, 9 * MINUTE).0, NOON + 9 * MINUTE);
        assert_eq!(clock.now(NOON + 24 * HOUR + 10 * MINUTE, 18 * MINUTE).0, NOON + 18 * MINUTE);
    }

    #[test]
    fn another_jump_is_doubted_anew() {
        let mut clock = ExpiryClock::starting(NOON, 0);
        clock.now(NOON + HOUR, 0);
        let (now, report) = clock.now(NOON + 3 * HOUR, 9 * MINUTE);
        assert_eq!((now, report), (NOON + 9 * MINUTE, Some(ClockReport::Doubted { by_ms: 3 * HOUR - 9 * MINUTE })));
        assert_eq!(clock.now(NOON + 3 * HOUR + 9 * MINUTE, 18 * MINUTE), (NOON + 18 * MINUTE, None));
    }

    #[test]
    fn behind_a_step_back_the_earlier_time_counts() {
        let mut clock = ExpiryClock::starting(NOON, 0);
        assert_eq!(clock.now(NOON - HOUR, 0), (NOON - HOUR, Some(ClockReport::Doubted { by_ms: -HOUR })));
        assert_eq!(clock.now(NOON - HOUR + MINUTE, MINUTE), (NOON - HOUR + MINUTE, None));
    }

    #[test]
    fn extreme_times_saturate() {
        let mut clock = ExpiryClock::starting(i64::MIN, 0);
        assert_eq!(clock.now(i64::MAX, i64::MAX).0, -1);
        let mut clock = ExpiryClock::starting(i64::MAX, 0);
        assert_eq!(clock.now(i64::MIN, i64::MAX).0, i64::MIN);
    }
}

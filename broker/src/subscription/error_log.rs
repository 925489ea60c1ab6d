//! Which failures of a subscription get a line in the log: enough to see an outage, never a flood.

use std::time::{Duration, Instant};

/// Failures of a period share its lines.
const PERIOD: Duration = Duration::from_secs(60);
/// A period has a line for its first failure, and up to so many in all while the reasons change.
const LINES: u32 = 4;

/// Decides failure by failure.
#[derive(Debug, Default)]
pub(super) struct ErrorLog {
    began: Option<Instant>,
    lines: u32,
    held_back: u64,
}

impl ErrorLog {
    /// `Some` if this failure gets a line, with how many before it got none. `is_new`: its reason is another than that of the last.
    pub(super) fn pass(&mut self, now: Instant, is_new: bool) -> Option<u64> {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= PERIOD) {
            self.began = Some(now);
            self.lines = 0;
        }
        if self.lines > 0 && (!is_new || self.lines >= LINES) {
            self.held_back += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reason_is_a_line_a_period_with_a_count() {
        let (mut log, start) = (ErrorLog::default(), Instant::now());
        assert_eq!(log.pass(start, true), Some(0));
        for second in 1..60 {
            assert_eq!(log.pass(start + Duration::from_secs(second), false), None);
        }
        assert_eq!(log.pass(start + PERIOD, false), Some(59));
        assert_eq!(log.pass(start + PERIOD, false), None);
    }

    #[test]
    fn reasons_that_alternate_are_a_few_lines() {
        let (mut log, start) = (ErrorLog::default(), Instant::now());
        let lines = (0..1000).filter(|_| log.pass(start, true).is_some()).count();
        assert_eq!(lines, 4);
        assert_eq!(log.pass(start + PERIOD, true), Some(996));
    }
}

//! The sweep: gives back what has expired, and makes durable what readers were told has.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::intake::Command;
use super::queue::QueueLog;

/// What a sweep has to do with one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expired {
    Nothing,
    /// All segments of a lower epoch.
    Below(u64),
    /// Everything.
    All,
}

/// Which segments have expired, given the epoch of each and the arrival of the last block up to its end, the oldest first. A segment
/// never outlives a later one: a block that came while the clock was far ahead does not keep its file for ever.
pub(super) fn expired(segments: &[(u64, i64)], newest_has_blocks: bool, is_expired: impl Fn(i64) -> bool) -> Expired {
    let last_expired = segments.iter().rposition(|(_, last_arrival_ms)| is_expired(*last_arrival_ms));
    match last_expired {
        None => Expired::Nothing,
        Some(n) if n + 1 == segments.len() && newest_has_blocks => Expired::All,
        Some(n) => match segments.get((n + 1).min(segments.len() - 1)) {
            Some((epoch, _)) if segments.len() > 1 => Expired::Below(*epoch),
            _ => Expired::Nothing,
        },
    }
}

impl QueueLog {
    /// Has done what a sweep has to do, without waiting for it.
    pub(super) fn sweep(self: &Arc<Self>) {
        let now_ms = self.shared.expiry_now_ms();
        let segments = self.segments.all();
        let newest_has_blocks = segments.last().is_some_and(|newest| newest.has_blocks());
        let arrivals: Vec<(u64, i64)> = segments.iter().map(|segment| (segment.epoch, segment.last_arrival_ms())).collect();
        drop(segments);
        let command = match expired(&arrivals, newest_has_blocks, |arrival_ms| self.is_expired(arrival_ms, now_ms)) {
            Expired::All => Some(Command::DropAll),
            Expired::Below(epoch) => Some(Command::DropBelow(epoch)),
            Expired::Nothing if !self.unkept_trims().is_empty() => Some(Command::KeepTrims),
            Expired::Nothing => self.has_retired.load(Relaxed).then_some(Command::GiveBack),
        };
        if let Some(command) = command {
            // Whoever commits reports what goes wrong; the next sweep tries again.
            drop(self.command(command));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn before_100(ms: i64) -> bool {
        ms < 100
    }

    #[test]
    fn segments_go_from_the_oldest_on_and_the_newest_only_with_all_others() {
        assert_eq!(expired(&[], false, before_100), Expired::Nothing);
        assert_eq!(expired(&[(1, 100), (2, 200)], true, before_100), Expired::Nothing);
        assert_eq!(expired(&[(1, 50), (2, 99), (3, 100), (7, 200)], true, before_100), Expired::Below(3));
        assert_eq!(expired(&[(1, 50), (2, 99)], true, before_100), Expired::All);
        assert_eq!(expired(&[(2, 99)], true, before_100), Expired::All);
        assert_eq!(expired(&[(1, 50), (2, 99)], false, before_100), Expired::Below(2));
        assert_eq!(expired(&[(2, 99)], false, before_100), Expired::Nothing);
    }

    #[test]
    fn a_segment_from_the_future_goes_with_the_ones_behind_it() {
        assert_eq!(expired(&[(1, i64::MAX), (2, 50), (3, 100)], true, before_100), Expired::Below(3));
        assert_eq!(expired(&[(1, 50), (2, i64::MAX), (3, 100)], true, before_100), Expired::Below(2));
    }
}

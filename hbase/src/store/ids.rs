//! Which ids may be given: the decisions behind [`Marks`](hqueue_storage::marks).

use hqueue_protocol::id::MessageId;
use hqueue_storage::marks::Mark;

/// Why no id may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NoSession,
    /// The partition was acquired in an earlier one.
    AnotherSession,
    /// They are not reserved yet.
    NoIds,
}

/// May a partition that was acquired in `session` give ids up to the millisecond `reach_ms`?
pub(super) fn may_give(current: Option<Mark>, session: u64, reach_ms: i64) -> Result<Mark, Refusal> {
    let mark = current.ok_or(Refusal::NoSession)?;
    if mark.session != session {
        return Err(Refusal::AnotherSession);
    }
    if reach_ms < mark.below_ms { Ok(mark) } else { Err(Refusal::NoIds) }
}

/// Whoever acquires a partition gives ids above this: `highest_ms` is the highest mark of all brokers, 0 if there is none.
pub(super) fn floor_of(highest_ms: i64) -> Option<MessageId> {
    (highest_ms > 0).then(|| MessageId::new(highest_ms - 1, i16::MAX))
}

/// Ids are reserved so far ahead of those that are given.
const AHEAD_MS: i64 = 5_000;
/// Once they run ahead of the clock by so much, they are reserved in small steps: whoever takes a partition over begins at the mark, and many
/// partitions that change hands in a short time would carry ids far into the future.
const FAR_AHEAD_MS: i64 = 10_000;
const SMALL_STEP_MS: i64 = 100;

const fn step_ms(reach_ms: i64, now_ms: i64) -> i64 {
    if reach_ms.saturating_sub(now_ms) > FAR_AHEAD_MS { SMALL_STEP_MS } else { AHEAD_MS }
}

/// Up to where ids are reserved when those up to `reach_ms` are wanted.
pub(super) const fn reserve_to(reach_ms: i64, now_ms: i64) -> i64 {
    reach_ms.saturating_add(step_ms(reach_ms, now_ms))
}

/// With fewer milliseconds than this left, more are reserved.
pub(super) const fn reserve_below(reach_ms: i64, now_ms: i64) -> i64 {
    step_ms(reach_ms, now_ms) * 2 / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_that_change_often_do_not_carry_ids_far_ahead() {
        let now = 1_700_000_000_000;
        let mut mark = now;
        for _ in 0..100 {
            let reach = floor_of(mark).unwrap().timestamp + 1;
            mark = reserve_to(reach, now);
            assert!(reserve_below(reach, now) < mark - reach, "what was just reserved is enough");
        }
        assert!(mark < now + 30_000, "{}", mark - now);
        assert_eq!(reserve_to(now, now), now + AHEAD_MS);
    }
}

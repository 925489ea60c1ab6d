//! What is gone for good, although its rows may still be there: truncated, or expired by a clock that has stepped back since.

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::MissingReason;

/// At most so many steps are kept; only a clock that goes back again and again makes more than one.
const MAX_STEPS: usize = 16;

/// What readers of a partition must not see any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gone {
    /// Everything up to this id, and the running number behind it.
    pub(super) truncated: Option<Truncated>,
    /// Rising ids, falling times.
    pub(super) expired: Vec<Expired>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truncated {
    pub(super) to: MessageId,
    /// Of the first message behind it.
    pub(super) number: u64,
}

/// What has an id up to `to` and arrived before `before_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expired {
    pub(super) to: MessageId,
    pub(super) before_ms: i64,
}

impl Gone {
    /// Notes that everything up to `to` that arrived before `before_ms` has been seen to be expired.
    pub(super) fn note_expired(&mut self, to: MessageId, before_ms: i64) {
        if self.expired.iter().any(|step| step.to >= to && step.before_ms >= before_ms) {
            return;
        }
        self.expired.retain(|step| step.to > to || step.before_ms > before_ms);
        let at = self.expired.partition_point(|step| step.to <= to);
        self.expired.insert(at, Expired { to, before_ms });
        if self.expired.len() > MAX_STEPS {
            self.expired.remove(0);
        }
    }

    /// Why a message is gone, with those that arrived before `cut_ms` expired by now.
    pub(super) fn why(&self, id: MessageId, arrival_ms: i64, cut_ms: i64) -> Option<MissingReason> {
        if self.truncated.is_some_and(|truncated| id <= truncated.to) {
            return Some(MissingReason::Truncated);
        }
        let is_expired = arrival_ms < cut_ms || self.expired.iter().any(|step| id <= step.to && arrival_ms < step.before_ms);
        is_expired.then_some(MissingReason::Expired)
    }

    /// The first id that is not truncated, from `from` on.
    pub(super) fn begin(&self, from: MessageId) -> MessageId {
        self.truncated.map_or(from, |truncated| from.max(truncated.to.successor()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: i64) -> MessageId {
        MessageId::new(ms, 0)
    }

    #[test]
    fn later_notes_swallow_earlier_ones() {
        let mut gone = Gone::default();
        gone.note_expired(id(10), 5);
        gone.note_expired(id(20), 7);
        gone.note_expired(id(15), 6);
        assert_eq!(gone.expired, [Expired { to: id(20), before_ms: 7 }]);
    }

    #[test]
    fn a_clock_that_stepped_back_leaves_a_step() {
        let mut gone = Gone::default();
        gone.note_expired(id(10), 500);
        gone.note_expired(id(20), 50);
        assert_eq!(gone.why(id(10), 499, 0), Some(MissingReason::Expired));
        assert_eq!(gone.why(id(11), 499, 0), None);
        assert_eq!(gone.why(id(11), 49, 0), Some(MissingReason::Expired));
        assert_eq!(gone.why(id(21), 49, 0), None);
        assert_eq!(gone.why(id(21), 49, 50), Some(MissingReason::Expired));
    }

    #[test]
    fn steps_are_bounded() {
        let mut gone = Gone::default();
        (0..100).for_each(|n| gone.note_expired(id(n), 1000 - n));
        assert_eq!(gone.expired.len(), MAX_STEPS);
        assert_eq!(gone.why(id(99), 900, 0), Some(MissingReason::Expired));
    }
}

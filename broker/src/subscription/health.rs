//! What is known of an endpoint's life, and which end of a call without an answer counts as an attempt.
//!
//! When several calls are under way and one ends without an answer, it may not have been that one's fault: a message that ends its
//! consumer takes the calls beside it along. None is charged then, and calls are made one at a time until one ends alone, or all that may
//! have been to blame have had their turn.

use super::outcome::Silence;

/// What is known of an endpoint's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// It answered a call since its last end without an answer: the next such end counts as an attempt.
    known_to_live: bool,
    /// It has to answer an empty call before messages are sent.
    pub(super) to_be_asked: bool,
    /// Empty calls without an answer in a row.
    unanswered: u32,
    /// Calls of any kind without an answer in a row.
    failed_in_a_row: u32,
    /// It has answered, once.
    has_answered: bool,
    /// It was said that it is passed over.
    said: bool,
    /// Calls with messages under way.
    calls: u32,
    /// There were several at a time since there was none.
    overlapped: bool,
    /// Calls with messages that were answered, ever.
    answers: u64,
    /// So many calls are still to be made one at a time.
    one_at_a_time: u32,
}

/// A call with messages that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnderWay {
    /// Answers before it began.
    answers: u64,
}

/// How a call with messages ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Answered,
    Silent(Silence),
}

/// After so many calls in a row without an answer others are preferred.
const PASSED_OVER_AFTER: u32 = 2;

impl Health {
    pub(super) const fn is_passed_over(&self) -> bool {
        self.failed_in_a_row >= PASSED_OVER_AFTER
    }

    /// Calls are made one at a time now; or it is to be asked whether it is there, and one question is enough.
    pub(super) const fn is_for_one(&self) -> bool {
        self.one_at_a_time > 0 || self.to_be_asked
    }

    /// The same while no call is under way.
    pub(super) const fn at_rest(self) -> Self {
        Self { calls: 0, overlapped: false, ..self }
    }

    /// It has answered a call, be it long ago.
    pub(super) const fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// It is passed over now. True: that is to be said, since it was not yet.
    pub(super) const fn say_passed_over(&mut self) -> bool {
        !std::mem::replace(&mut self.said, true)
    }

    /// Messages were answered. True: that is to be said, since it was said to be passed over.
    pub(super) const fn say_back(&mut self) -> bool {
        std::mem::replace(&mut self.said, false)
    }

    /// An empty call was answered.
    pub(super) const fn answered_empty(&mut self) {
        self.has_answered = true;
        self.known_to_live = true;
        self.to_be_asked = false;
        self.unanswered = 0;
        // It is there; whether it takes messages the next call tells, and if not, that is enough.
        if self.failed_in_a_row >= PASSED_OVER_AFTER {
            self.failed_in_a_row = PASSED_OVER_AFTER - 1;
        }
    }

    /// An empty call was not answered; returns how many in a row.
    pub(super) const fn silent(&mut self) -> u32 {
        self.unanswered = self.unanswered.saturating_add(1);
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        self.unanswered
    }

    /// A call with messages begins.
    pub(super) const fn begin(&mut self) -> UnderWay {
        self.calls += 1;
        self.overlapped |= self.calls > 1;
        UnderWay { answers: self.answers }
    }

    /// It ended, while so many partitions stood in line. True: an end without an answer counts as an attempt.
    pub(super) fn end(&mut self, call: UnderWay, end: End, line: usize) -> bool {
        let others = self.overlapped;
        self.calls = self.calls.saturating_sub(1);
        if self.calls == 0 {
            self.overlapped = false;
        }
        let End::Silent(silence) = end else {
            self.answers += 1;
            self.has_answered = true;
            self.known_to_live = true;
            self.failed_in_a_row = 0;
            self.one_at_a_time = self.one_at_a_time.saturating_sub(1);
            return true;
        };
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        if !silence.may_have_arrived() {
            return false;
        }
        // Another was answered meanwhile: it lives, and it is this call that hangs.
        let hangs_alone = silence == Silence::TimedOut && self.answers > call.answers;
        let lived = std::mem::take(&mut self.known_to_live) || hangs_alone;
        if others && !hangs_alone {
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            self.one_at_a_time = self.one_at_a_time.max(line.saturating_add(self.calls).saturating_add(1));
            return false;
        }
        if lived {
            self.one_at_a_time = 0;
        }
        lived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_one_attempt_however_long_it_lasts() {
        let mut health = Health::default();
        let call = health.begin();
        assert!(!health.end(call, End::Silent(Silence::Broken), 0), "it was never known to live");
        health.answered_empty();
        let call = health.begin();
        assert!(health.end(call, End::Silent(Silence::TimedOut), 0));
        let call = health.begin();
        assert!(!health.end(call, End::Silent(Silence::TimedOut), 0), "not twice");
        health.silent();
        assert!(health.is_passed_over());
        let call = health.begin();
        assert!(health.end(call, End::Answered, 0) && !health.is_passed_over());
    }

    #[test]
    fn one_that_answers_only_empty_calls_is_passed_over_at_once() {
        let mut health = Health::default();
        for _ in 0..2 {
            let call = health.begin();
            health.end(call, End::Silent(Silence::TimedOut), 0);
            health.answered_empty();
        }
        assert!(!health.is_passed_over(), "it may be back");
        let call = health.begin();
        health.end(call, End::Silent(Silence::TimedOut), 0);
        assert!(health.is_passed_over());
    }

    #[test]
    fn calls_that_end_together_are_repeated_one_at_a_time() {
        let mut health = Health::default();
        health.answered_empty();
        let calls = [health.begin(), health.begin(), health.begin()];
        for call in calls {
            assert!(!health.end(call, End::Silent(Silence::Broken), 0), "nobody knows whose fault it is");
        }
        health.answered_empty();
        for _ in 0..2 {
            assert!(health.is_for_one());
            let call = health.begin();
            health.end(call, End::Answered, 0);
        }
        let call = health.begin();
        assert!(health.end(call, End::Silent(Silence::Broken), 0), "it ended alone");
        assert!(!health.is_for_one());
    }

    #[test]
    fn after_an_outage_they_go_on_together() {
        let mut health = Health::default();
        health.answered_empty();
        let calls = [health.begin(), health.begin()];
        for call in calls {
            health.end(call, End::Silent(Silence::Broken), 1);
        }
        health.answered_empty();
        let mut answered = 0;
        while health.is_for_one() {
            let call = health.begin();
            health.end(call, End::Answered, 0);
            answered += 1;
        }
        assert_eq!(answered, 3, "those that ended, and who stood in line before them");
    }

    #[test]
    fn one_that_hangs_while_others_are_answered_is_charged() {
        let mut health = Health::default();
        let (hangs, other) = (health.begin(), health.begin());
        health.end(other, End::Answered, 0);
        let other = health.begin();
        assert!(health.end(hangs, End::Silent(Silence::TimedOut), 0) && !health.is_for_one());
        health.end(other, End::Answered, 0);
    }

    /// Several connections, a message that ends the process each time: nobody else is charged.
    #[test]
    fn only_the_one_to_blame_is_charged() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let (partitions, connections) = (random.usize(2..20), random.usize(2..6));
            let poison = random.usize(0..partitions);
            let mut line: std::collections::VecDeque<usize> = (0..partitions).collect();
            let (mut health, mut charges) = (Health::default(), 0);
            health.answered_empty();
            for step in 0.. {
                assert!(step < 10_000, "seed {seed}: it is not found");
                let most = if health.is_for_one() { 1 } else { connections };
                let mut calls: Vec<(usize, UnderWay)> =
                    line.drain(..random.usize(1..=most).min(line.len())).map(|p| (p, health.begin())).collect();
                random.shuffle(&mut calls);
                let dies = calls.iter().any(|(p, _)| *p == poison);
                for (partition, call) in calls {
                    let answered = !dies || (partition != poison && random.u8(0..4) == 0);
                    let end = if answered { End::Answered } else { End::Silent(Silence::Broken) };
                    if health.end(call, end, line.len()) && !answered {
                        assert_eq!(partition, poison, "seed {seed}");
                        charges += 1;
                    }
                    line.push_back(partition);
                }
                health.answered_empty();
                if charges == 3 {
                    break;
                }
            }
        }
    }
}

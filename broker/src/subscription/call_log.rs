//! The last calls of a broker, kept in memory for those who ask what became of a message.
//!
//! A ring that all subscriptions share: an entry a call, however many messages it carried, and one for whatever else moves a checkpoint. It
//! is a help for people: it begins empty with the broker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hqueue_protocol::id::MessageId;

use super::outcome::Outcome;
use crate::time::Moment;

/// So many calls are kept, and as many other events at most.
const KEPT: usize = 10_000;
/// Of the events of one message the last so many are told.
const TOLD: usize = 100;
/// Bytes of the longest reason that is kept.
const MAX_REASON: usize = 300;

/// What has happened to messages.
#[derive(Debug, Default)]
pub struct CallLog {
    ring: Mutex<Ring>,
    lives: AtomicU64,
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Entry>,
    calls: usize,
}

#[derive(Debug)]
struct Entry {
    life: u64,
    /// `None`: all.
    partition: Option<i16>,
    event: Event,
}

/// Something has happened.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: Moment,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// A call has ended.
    Call(Call),
    /// The checkpoint was moved by somebody.
    Moved { by: Mover, from: MessageId, to: MessageId },
    /// A message became a dead letter.
    Buried { id: MessageId },
    /// Messages from `from` on and before `to` were not there when they were to be read.
    Missed { from: MessageId, to: MessageId },
    /// Until now these topics were wanted.
    Topics { before: Arc<[Vec<u8>]> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// A command.
    Seek,
    /// A consumer that pulls.
    Commit,
    /// Somebody wrote the checkpoint's node.
    Hand,
}

/// A call that has ended.
#[derive(Clone, Debug)]
pub struct Call {
    pub first: MessageId,
    pub last: MessageId,
    /// Everything that it carried up to there is consumed.
    pub consumed_to: Option<MessageId>,
    pub endpoint: Arc<str>,
    /// Which attempt it was; if it did not count, those before it.
    pub attempt: u32,
    pub result: CallResult,
    /// A dead letter got another chance.
    pub is_redelivery: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallResult {
    Consumed,
    Busy,
    Refused,
    Failed(Box<str>),
    /// No answer; whether that counts as an attempt.
    NoAnswer(Box<str>),
}

impl CallResult {
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Consumed(_) => Self::Consumed,
            Outcome::Busy => Self::Busy,
            Outcome::Refused => Self::Refused,
            Outcome::Failed(reason) => Self::Failed(short(reason)),
            Outcome::NoAnswer { reason, .. } => Self::NoAnswer(short(reason)),
        }
    }
}

fn short(reason: &str) -> Box<str> {
    let end = (0..=MAX_REASON.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or_default();
    reason.get(..end).unwrap_or_default().into()
}

impl CallLog {
    fn push(&self, entry: Entry) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.calls += usize::from(entry.event.what.is_call());
        ring.events.push_back(entry);
        while ring.calls > KEPT || ring.events.len() - ring.calls > KEPT {
            let Some(oldest) = ring.events.pop_front() else { break };
            ring.calls -= usize::from(oldest.event.what.is_call());
        }
    }
}

impl What {
    const fn is_call(&self) -> bool {
        matches!(self, Self::Call(_))
    }

    /// It may have to do with the message of this id.
    fn touches(&self, id: MessageId) -> bool {
        match self {
            Self::Call(call) => (call.first..=call.last).contains(&id),
            Self::Moved { from, to, .. } => *from.min(to) < id && id <= *from.max(to),
            Self::Buried { id: buried } => *buried == id,
            Self::Missed { from, to } => (*from..*to).contains(&id),
            Self::Topics { .. } => true,
        }
    }
}

/// What one subscription notes, from when it was added until it is deleted: a later one of its name has nothing to do with it.
#[derive(Clone, Debug)]
pub struct Calls {
    log: Arc<CallLog>,
    life: u64,
}

impl Calls {
    /// Those of a subscription that begins.
    #[must_use]
    pub fn new(log: &Arc<CallLog>) -> Self {
        Self { log: Arc::clone(log), life: log.lives.fetch_add(1, Ordering::Relaxed) }
    }

    /// Notes what happens now. `partition`: `None` for all.
    pub(super) fn note(&self, partition: Option<i16>, what: What) {
        let event = Event { at: Moment::now(), what };
        self.log.push(Entry { life: self.life, partition, event });
    }

    /// What has happened to a message, oldest first, as far as it is known still.
    #[must_use]
    pub fn of(&self, partition: i16, id: MessageId) -> Vec<Event> {
        let ring = self.log.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |entry: &&Entry| {
            entry.life == self.life && entry.partition.is_none_or(|p| p == partition) && entry.event.what.touches(id)
        };
        let mut events: Vec<Event> = ring.events.iter().rev().filter(is_its).take(TOLD).map(|e| e.event.clone()).collect();
        drop(ring);
        events.reverse();
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: i64) -> MessageId {
        MessageId::new(ms, 0)
    }

    fn call(first: i64, last: i64) -> What {
        What::Call(Call {
            first: id(first),
            last: id(last),
            consumed_to: Some(id(last)),
            endpoint: "a:1".into(),
            attempt: 1,
            result: CallResult::Consumed,
            is_redelivery: false,
        })
    }

    #[test]
    fn the_last_calls_are_kept_and_no_more() {
        let log = Arc::new(CallLog::default());
        let calls = Calls::new(&log);
        let kept = i64::try_from(KEPT).unwrap();
        for ms in 0..kept + 5 {
            calls.note(Some(0), call(ms, ms));
            // Others do not push calls out.
            calls.note(Some(0), What::Buried { id: id(ms) });
        }
        let ring = log.ring.lock().unwrap();
        assert_eq!((ring.calls, ring.events.len()), (KEPT, 2 * KEPT));
        drop(ring);
        assert!(calls.of(0, id(4)).is_empty());
        assert_eq!(calls.of(0, id(5)).len(), 2);
        for _ in 0..3 * KEPT {
            calls.note(Some(0), What::Buried { id: id(1) });
        }
        let ring = log.ring.lock().unwrap();
        assert!(ring.events.len() - ring.calls <= KEPT, "nor do events without calls pile up");
    }

    #[test]
    fn everybody_sees_what_is_theirs() {
        let log = Arc::new(CallLog::default());
        let (one, other) = (Calls::new(&log), Calls::new(&log));
        one.note(Some(3), call(10, 20));
        one.note(Some(3), What::Moved { by: Mover::Seek, from: id(20), to: id(12) });
        one.note(None, What::Topics { before: Arc::from([]) });
        let kinds = |calls: &Calls, partition, ms| calls.of(partition, id(ms)).len();
        assert_eq!((kinds(&one, 3, 9), kinds(&one, 3, 10), kinds(&one, 3, 12), kinds(&one, 3, 13)), (1, 2, 2, 3));
        assert_eq!((kinds(&one, 3, 20), kinds(&one, 3, 21), kinds(&one, 2, 15), kinds(&other, 3, 15)), (3, 1, 1, 0));
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let reason = "é".repeat(MAX_REASON);
        let CallResult::Failed(kept) = CallResult::of(&Outcome::Failed(reason)) else { panic!("it failed") };
        assert_eq!(kept.len(), MAX_REASON);
        assert_eq!(CallResult::of(&Outcome::Consumed(3)), CallResult::Consumed);
    }
}

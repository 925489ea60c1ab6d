//! The front of a queue's log: gives ids, and gathers what waits for the next group.

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredSlice, TopicTable};
use tokio::sync::oneshot;

use crate::store::{IdRun, IdRuns, StoreError};

/// A clock that is further behind the last id is reported. Milliseconds.
const CLOCK_BEHIND_MS: i64 = 60_000;

/// Tells who waits for a batch or a command how it went.
pub(super) type Answer = oneshot::Sender<Result<(), StoreError>>;

/// Held under the log's short lock.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) status: Status,
    /// The last id given, committed or not, and the floor; by partition.
    last_ids: Vec<Option<MessageId>>,
    pub(super) waiting: Waiting,
    /// Bytes that wait or are being written.
    pub(super) waiting_bytes: usize,
    /// A thread is at work on this log, or is about to be.
    pub(super) committing: bool,
    /// When it was last reported that the clock is behind, by the monotonic clock.
    clock_reported_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Open,
    /// A write or a sync failed; reading goes on.
    Poisoned(String),
    Closed,
}

/// What the next group consists of.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) parts: Vec<WaitingPart>,
    pub(super) commands: Vec<(Command, Answer)>,
}

/// One batch.
#[derive(Debug)]
pub(super) struct WaitingPart {
    pub(super) partition: i16,
    pub(super) slice: StoredSlice,
    pub(super) topics: TopicTable,
    pub(super) answer: Answer,
}

/// What is to be done between two groups.
#[derive(Debug)]
pub(super) enum Command {
    /// Remove all messages.
    Truncate,
    /// Make the trims durable.
    KeepTrims,
    /// Give back segments of a lower epoch, all of which has expired.
    DropBelow(u64),
    /// Begin a new segment, since all of the last one has expired, and give back the others.
    DropAll,
    /// Keep or delete the files of segments that are gone.
    GiveBack,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.commands.is_empty()
    }

    /// Answers everything with an error.
    pub(super) fn refuse(self, error: &StoreError) {
        let parts = self.parts.into_iter().map(|part| part.answer);
        for answer in parts.chain(self.commands.into_iter().map(|(_, answer)| answer)) {
            // Nobody may be waiting any more.
            let _ = answer.send(Err(error.clone()));
        }
    }
}

impl Intake {
    pub(super) fn new(last_ids: Vec<Option<MessageId>>) -> Self {
        Self {
            status: Status::Open,
            last_ids,
            waiting: Waiting::default(),
            waiting_bytes: 0,
            committing: false,
            clock_reported_ms: None,
        }
    }

    /// New ids of the partition will be above `floor`.
    pub(super) fn raise_ids(&mut self, partition: i16, floor: MessageId) {
        if let Some(last) = self.last_ids.get_mut(partition.unsigned_abs() as usize) {
            *last = (*last).max(Some(floor));
        }
    }

    /// Gives the ids of a batch and lets it wait. `None` if the partition has no ids left, which takes a floor at the end of time.
    pub(super) fn take(&mut self, partition: i16, batch: PutBatch, now_ms: i64, answer: Answer) -> Option<IdRuns> {
        let last = self.last_ids.get_mut(partition.unsigned_abs() as usize)?;
        let runs = id_runs(*last, now_ms, batch.count())?;
        let topics = batch.topics().clone();
        let mut next = *last;
        let slice = batch.seal(partition, || {
            let id = MessageId::next(next, now_ms);
            next = Some(id);
            id
        })?;
        *last = next;
        self.waiting_bytes += slice.bytes.len();
        self.waiting.parts.push(WaitingPart { partition, slice, topics, answer });
        Some(runs)
    }

    /// By how many milliseconds the clock is behind the last id of the partition, if that is to be reported: it is more than a minute,
    /// and nothing was reported for a minute of the monotonic clock.
    pub(super) fn clock_behind(&mut self, partition: i16, now_ms: i64, monotonic_ms: i64) -> Option<i64> {
        let last = self.last_ids.get(partition.unsigned_abs() as usize).copied().flatten()?;
        let behind_ms = last.timestamp.saturating_sub(now_ms);
        let is_new = |reported_ms| monotonic_ms.saturating_sub(reported_ms) > CLOCK_BEHIND_MS;
        let to_report = behind_ms > CLOCK_BEHIND_MS && self.clock_reported_ms.is_none_or(is_new);
        to_report.then(|| {
            self.clock_reported_ms = Some(monotonic_ms);
            behind_ms
        })
    }
}

/// The ids of `count` messages behind `last`. `None` if there are not so many.
fn id_runs(last: Option<MessageId>, now_ms: i64, count: usize) -> Option<IdRuns> {
    let mut runs = IdRuns::default();
    let mut left = count;
    let mut first = MessageId::next(last, now_ms);
    while left > 0 {
        if last.is_some_and(|last| first <= last) {
            return None;
        }
        let room = usize::from(first.sequence.abs_diff(i16::MAX)) + 1;
        let taken = left.min(room);
        runs.0.push(IdRun { first, count: u16::try_from(taken).unwrap_or(u16::MAX) });
        left -= taken;
        let end = MessageId::new(first.timestamp, i16::MAX);
        first = end.successor();
        if left > 0 && first <= end {
            return None;
        }
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_the_ids_that_are_given(
            last in proptest::option::of((0i64..3, any::<u8>())), now_ms in -1i64..3, count in 0usize..70_000,
        ) {
            let last = last.map(|(ms, n)| MessageId::new(ms, i16::MAX - i16::from(n)));
            let mut next = last;
            let wanted: Vec<MessageId> = (0..count).map(|_| {
                let id = MessageId::next(next, now_ms);
                next = Some(id);
                id
            }).collect();
            prop_assert_eq!(id_runs(last, now_ms, count).unwrap().iter().collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn ids_end_at_the_end_of_time_and_never_repeat() {
        let end = MessageId::new(i64::MAX, i16::MAX - 1);
        assert!(id_runs(Some(end), 0, 1).is_some());
        assert_eq!(id_runs(Some(end), 0, 2), None);
        assert_eq!(id_runs(Some(MessageId::MAX), 0, 1), None);
    }

    #[test]
    fn a_clock_that_falls_behind_is_reported_once_a_minute() {
        let mut intake = Intake::new(vec![Some(MessageId::new(100_000, 0)), None]);
        assert_eq!(intake.clock_behind(0, 50_000, 0), None);
        assert_eq!(intake.clock_behind(0, 39_999, 10), Some(60_001));
        assert_eq!(intake.clock_behind(1, 39_999, 20), None);
        assert_eq!(intake.clock_behind(0, 39_999, 60_010), None);
        assert_eq!(intake.clock_behind(0, 0, 60_011), Some(100_000));
    }
}

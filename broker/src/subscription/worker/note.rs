//! Notes for those who ask what became of a message: before it shows in the checkpoint.

use hqueue_protocol::id::MessageId;

use super::{Batch, SubscriptionWorker};
use crate::partition::MessageScanner;
use crate::subscription::call_log::{Call, CallResult, Mover, What};
use crate::subscription::outcome::Outcome;
use crate::subscription::under_way::OnItsWay;

impl SubscriptionWorker {
    fn note(&self, what: What) {
        self.shared.calls.note(Some(self.partition), what);
    }

    /// A call has ended. `charge`: an end without an answer counts as an attempt.
    pub(super) fn note_call(&self, call: Option<OnItsWay>, batch: &Batch, outcome: &Outcome, charge: bool) {
        let Some(OnItsWay { first, last, endpoint, attempts, is_redelivery, .. }) = call else { return };
        let is_attempt = match outcome {
            Outcome::Busy => false,
            Outcome::NoAnswer { silence, .. } => charge && silence.may_have_arrived(),
            Outcome::Consumed(_) | Outcome::Failed(_) | Outcome::Refused => true,
        };
        let consumed_to = match outcome {
            Outcome::Consumed(k) if *k < batch.messages => batch.id_of(*k),
            Outcome::Consumed(_) => Some(last),
            _ => None,
        };
        let attempt = attempts.saturating_add(u32::from(is_attempt));
        let result = CallResult::of(outcome);
        self.note(What::Call(Call { first, last, consumed_to, endpoint, attempt, result, is_redelivery }));
    }

    pub(super) fn note_buried(&self, id: MessageId) {
        self.note(What::Buried { id });
    }

    pub(super) fn note_moved(&self, by: Mover, from: MessageId, to: MessageId) {
        if from != to {
            self.note(What::Moved { by, from, to });
        }
    }

    /// What a scanner has found missing is noted, once however often it is read again. False: all of it was known.
    pub(super) fn note_missed(&self, scanner: &mut MessageScanner) -> bool {
        let holes = scanner.take_holes();
        let Some(end) = holes.iter().map(|(_, to)| *to).max() else { return true };
        let known = {
            let mut progress = self.lock();
            let missed_to = progress.missed_to.max(end);
            std::mem::replace(&mut progress.missed_to, missed_to)
        };
        for (from, to) in holes.into_iter().filter(|(_, to)| *to > known) {
            self.note(What::Missed { from, to });
        }
        end > known
    }
}

impl Batch {
    /// The first and the last id.
    pub(in crate::subscription) fn ends(&self) -> Option<(MessageId, MessageId)> {
        Some((self.slices.first()?.first, self.slices.last()?.last))
    }

    /// The id of the `k`th message, from 1 on.
    fn id_of(&self, k: u32) -> Option<MessageId> {
        let mut left = k;
        for slice in &self.slices {
            if left <= slice.count {
                let nth = usize::try_from(left.checked_sub(1)?).ok()?;
                return slice.messages().nth(nth)?.ok().map(|message| message.id);
            }
            left -= slice.count;
        }
        None
    }
}

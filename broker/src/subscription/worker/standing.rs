//! Where a message stands with a worker at this moment.

use std::time::Duration;

use hqueue_protocol::id::MessageId;
use tokio::time::Instant;

use super::SubscriptionWorker;
use crate::subscription::flights::FlightPlace;
use crate::subscription::under_way::OnItsWay;

/// A worker's state as far as it tells where a message is.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Everything wanted at or below it is done.
    pub checkpoint: MessageId,
    /// The subscription began behind it, if that is known.
    pub began: Option<MessageId>,
    /// Attempts of the oldest batch, and its last id.
    pub attempts: u32,
    pub attempts_to: Option<MessageId>,
    /// Several calls at once.
    pub is_without_order: bool,
    /// Without order: the batch of the message, if it was read already.
    pub flight: Option<FlightPlace>,
    /// Without order: the oldest batch that is not done keeps further ones from being sent.
    pub span_is_full: bool,
    /// As many calls are under way as may be.
    pub calls_are_full: bool,
    /// The next message is in the way.
    pub is_blocked: bool,
    /// This one becomes a dead letter before anything else is sent.
    pub burying: Option<MessageId>,
    /// The endpoint asked to come again later.
    pub is_busy: bool,
    /// What failed is not tried again before.
    pub wait: Option<Duration>,
    /// A batch waits for so long because of a rate.
    pub pace: Option<Duration>,
    pub calls: Vec<OnItsWay>,
}

impl SubscriptionWorker {
    /// Where the message of this id stands.
    #[must_use]
    pub fn standing(&self, id: MessageId) -> Standing {
        let now = Instant::now();
        let left = |at: Instant| Some(at.saturating_duration_since(now)).filter(|left| !left.is_zero());
        let options = &self.shared.options;
        let is_without_order = self.is_without_order();
        let p = self.lock();
        let calls = self.under_way.all();
        Standing {
            checkpoint: p.checkpoint.id,
            began: p.checkpoint.began,
            attempts: p.checkpoint.attempts,
            attempts_to: p.checkpoint.attempts_to,
            is_without_order,
            flight: p.flights.place(id, now),
            span_is_full: is_without_order && p.flights.span() >= options.max_span,
            calls_are_full: if is_without_order {
                p.flights.in_flight() >= options.calls as usize
            } else {
                calls.iter().any(|call| !call.is_redelivery)
            },
            is_blocked: p.blocked,
            burying: p.letter.as_ref().map(|letter| letter.message.first),
            is_busy: p.busy > 0,
            wait: p.not_before.and_then(left),
            pace: p.paced_to.and_then(left),
            calls,
        }
    }

    /// A batch waits for so long because of a rate; zero: no longer.
    pub(in crate::subscription) fn set_pace(&self, wait: Duration) {
        self.lock().paced_to = (!wait.is_zero()).then(|| Instant::now() + wait);
    }

    /// Attempts of the batch before its next call.
    pub(super) fn attempts_of(&self, flight: Option<MessageId>) -> u32 {
        let progress = self.lock();
        flight.map_or(progress.checkpoint.attempts, |key| progress.flights.attempts(key))
    }
}

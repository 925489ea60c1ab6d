//! Running numbers of places where readers stopped, so that they can go straight on.

use std::collections::{BTreeMap, VecDeque};

use hqueue_protocol::id::MessageId;

/// So many places of a partition are remembered.
const PLACES: usize = 64;

/// What is known of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// How many messages there were below it, in all time.
    pub(super) number: u64,
    /// When the last message before it arrived. Milliseconds.
    pub(super) before_ms: i64,
}

/// The places of a partition; the oldest are forgotten.
#[derive(Debug, Default)]
pub(super) struct Known {
    places: BTreeMap<MessageId, Place>,
    order: VecDeque<MessageId>,
}

impl Known {
    /// Remembers a place; what is known of it already stays.
    pub(super) fn note(&mut self, at: MessageId, place: Place) {
        if self.places.get(&at).is_some_and(|known| known.before_ms >= place.before_ms) {
            return;
        }
        if self.places.insert(at, place).is_none() {
            self.order.push_back(at);
        }
        if self.order.len() > PLACES
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }

    pub(super) fn at(&self, at: MessageId) -> Option<Place> {
        self.places.get(&at).copied()
    }
}

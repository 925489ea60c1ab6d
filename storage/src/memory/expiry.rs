//! When messages of the memory store go.

use super::partition::{Entry, Partition, State};
use crate::store::MissingReason;

impl Partition {
    /// Lets go of every block that is older than `ttl_ms` at `now_ms`. Returns how many messages that were.
    pub(super) fn expire(&mut self, now_ms: i64, ttl_ms: i64) -> u64 {
        let is_expired = |arrival_ms: i64| now_ms.saturating_sub(arrival_ms) > ttl_ms;
        // Mostly nothing is due: the whole list is looked at only when something is.
        if !self.oldest_arrival_ms.is_some_and(is_expired) {
            return 0;
        }
        let mut expired = 0;
        for entry in &mut self.entries {
            if entry.block().is_some_and(|block| is_expired(block.arrival_ms)) {
                entry.state = State::Gone(MissingReason::Expired);
                expired += u64::from(entry.count);
            }
        }
        self.oldest_arrival_ms = self.entries.iter().filter_map(Entry::block).map(|block| block.arrival_ms).min();
        expired
    }
}

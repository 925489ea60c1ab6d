//! The status of a subscription.

use hqueue_protocol::generated::{TCheckpoint, TSubscriptionStatus};

use crate::message::Id;

/// The status of a subscription: what a broker always fills in.
#[derive(Clone, Debug)]
pub struct Subscription(pub TSubscriptionStatus);

impl Subscription {
    #[must_use]
    pub fn lag(&self) -> i64 {
        self.0.lag_messages.expect("a lag")
    }

    #[must_use]
    pub fn state(&self) -> &str {
        self.0.state.as_deref().expect("a state")
    }

    #[must_use]
    pub fn attempts(&self) -> i32 {
        self.0.attempts.expect("attempts")
    }

    #[must_use]
    pub fn delivered(&self) -> i64 {
        self.0.delivered.expect("delivered")
    }

    #[must_use]
    pub fn expired(&self) -> i64 {
        self.0.expired_messages.expect("expired messages")
    }

    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        let mut endpoints = self.0.endpoints.clone().expect("endpoints");
        endpoints.sort();
        endpoints
    }

    #[must_use]
    pub fn last_error(&self) -> &str {
        self.0.last_error.as_deref().unwrap_or_default()
    }

    /// The checkpoint of a partition.
    #[must_use]
    pub fn checkpoint(&self, partition: i16) -> Option<Id> {
        let of_partition = |c: &&TCheckpoint| c.partition == Some(partition);
        let checkpoint = self.0.checkpoints.iter().flatten().find(of_partition)?;
        Some(checkpoint.id.as_deref().expect("a checkpoint has an id").parse().expect("an id"))
    }
}

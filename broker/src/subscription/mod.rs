//! Pushing: subscriptions, and what carries a message from a partition to an endpoint.
//!
//! A commit wakes the [`SubscriptionWorker`]s of its partition. A worker with something to send stands in the line of its
//! endpoint; a `MessageSender` serves the line over one connection: it takes the next worker, has its scanner fill a batch,
//! calls, and settles what the endpoint answered. The [`CheckpointUpdater`] writes the checkpoints that have moved.

mod backoff;
mod checkpoint;
mod endpoint;
mod error_log;
mod options;
mod outcome;
mod sender;
mod shared;
#[expect(clippy::module_inception, reason = "the file is named after its type")]
mod subscription;
mod topics_json;
mod turn;
mod worker;

pub use checkpoint::{Checkpoint, CheckpointUpdater};
pub use endpoint::{Endpoint, EndpointSpec};
pub use options::SubscriptionOptions;
pub use shared::{SubscriptionShared, TaskScope};
pub use subscription::{Subscription, SubscriptionRecord};
pub use worker::{SubscriptionWorker, before};

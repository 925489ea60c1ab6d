//! Pushing: subscriptions, and what carries a message from a partition to an endpoint.
//!
//! A commit wakes the [`SubscriptionWorker`]s of its partition. A worker with something to send stands in the line of its
//! endpoint; a `MessageSender` serves the line over one connection: it takes the next worker, has its scanner fill a batch,
//! calls, and settles what the endpoint answered. The [`CheckpointUpdater`] writes the checkpoints that have moved.

pub mod backoff;
mod call_log;
mod caller;
mod checkpoint;
mod endpoint;
mod error_log;
mod flights;
mod health;
mod letter;
mod options;
mod outcome;
mod policy;
mod rate;
mod replace;
mod sender;
mod shared;
#[cfg(test)]
mod simulation;
mod spread;
#[expect(clippy::module_inception, reason = "the file is named after its type")]
mod subscription;
mod topics_json;
mod turn;
mod under_way;
mod unread;
mod window;
mod worker;

pub use call_log::{Call, CallLog, CallResult, Calls, Event, Mover, What};
pub use checkpoint::{Checkpoint, CheckpointUpdater};
pub use endpoint::{EndpointSpec, Takes};
pub use flights::FlightPlace;
pub use letter::{DeadLetter, DeadLetterBox, SharedDeadLetterBox};
pub use options::{OPTION_NAMES, OptionError, SubscriptionOptions};
pub use shared::{SubscriptionShared, TaskScope};
pub use subscription::{Subscription, SubscriptionRecord, SubscriptionState};
pub use topics_json::{from_slice as topics_from_json, to_vec as topics_to_json};
pub use under_way::OnItsWay;
pub use unread::{Readers, Unread};
pub use worker::{Standing, SubscriptionWorker, Unaccepted, before};

//! The queues of this broker and their subscribers: followed, changed, found, reported.
//!
//! ```text
//! follow   one task for each queue: reads coordination (desired), opens, claims, makes subscriptions so (apply)
//! hand_over, empty   where brokers share the store: partitions that come and go, and what needs that nobody has one
//! catalog, subscribers, registrations, set_options, commit   commands: write to coordination, wait until follow has done it
//! elsewhere   the part of a command that belongs to other brokers
//! ```

mod apply;
#[expect(clippy::module_inception, reason = "the file is named after its type")]
mod catalog;
mod commit;
mod desired;
mod elsewhere;
mod empty;
mod follow;
mod hand_over;
mod lock;
mod merge;
mod moves;
mod offline;
mod queue;
mod record;
mod registered;
mod registrations;
mod set_options;
mod status;
mod steer;
mod subscribers;
mod waiting;
mod watchdog;

pub use catalog::{Catalog, CatalogParts};
pub use elsewhere::{Route, of_peer, was_not_sent};
pub use merge::{merge_statuses, merge_summaries};
pub use queue::Queue;
pub use record::{QueueRecord, QueueState};
pub use registrations::LIFETIME;
pub use status::{queue_status, queue_summary, subscription_status};
pub use subscribers::{NewSubscriber, check_address};

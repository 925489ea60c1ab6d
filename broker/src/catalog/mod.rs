//! The queues of this broker and their subscribers: made, changed, found, reported.

#[expect(clippy::module_inception, reason = "the file is named after its type")]
mod catalog;
mod queue;
mod record;
mod registrations;
mod status;
mod subscribers;

pub use catalog::Catalog;
pub use queue::Queue;
pub use record::QueueState;
pub use registrations::LIFETIME;
pub use status::{queue_status, queue_summary, subscription_status};
pub use subscribers::NewSubscriber;

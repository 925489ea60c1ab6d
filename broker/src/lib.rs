//! HQueue's broker: takes puts, keeps them in a store, pushes them to subscribers.
//!
//! ```text
//! client -> gateway -> store (group commit) -> partition (who waits) -> subscription (worker, sender) -> endpoint
//!              |                                                            |
//!              +--> catalog (queues, subscribers) <---- coordination <------+ checkpoints
//! ```

mod catalog;
mod data_folder;
mod descriptors;
mod gateway;
mod http;
mod options;
mod partition;
mod paths;
mod refusal;
mod standalone;
mod subscription;
mod time;

pub use hqueue_storage::store::Durability;
pub use options::{Options, OptionsError};
pub use standalone::{Standalone, StartError};

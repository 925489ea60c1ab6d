//! HQueue's broker: takes puts, keeps them in a store, pushes them to subscribers.
//!
//! ```text
//! client -> gateway -> store (group commit) -> partition (who waits) -> subscription (worker, sender) -> endpoint
//!              |                                                            |
//!              +--> catalog (queues, subscribers) <---- coordination <------+ checkpoints
//! ```

mod advertised;
mod broker;
mod catalog;
mod cluster;
mod data_folder;
mod dead_letters;
mod descriptors;
mod explain;
mod gateway;
mod http;
mod identity;
mod options;
mod partition;
mod paths;
mod refusal;
mod solitary;
mod store_kind;
mod stores;
mod subscription;
mod time;
mod trace;

pub use broker::{Broker, StartError};
pub use hqueue_hbase::store::HBaseOptions;
pub use hqueue_storage::store::Durability;
pub use options::{Coordination, MESSAGE_BYTES_LIMIT, Options, OptionsError, SMALLEST_TAIL_CACHE, Store};
pub use subscription::{OptionError, SubscriptionOptions};

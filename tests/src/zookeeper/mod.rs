//! Real ZooKeeper servers, and what can go wrong on the way to them.

mod ensemble;
mod proxy;
mod server;

pub use ensemble::Ensemble;
pub use proxy::{Proxy, Way};
pub use server::ZooKeeper;

//! What the end-to-end tests share: real broker processes, the command line, consumers and clients on the stock Thrift library, and
//! waiting for things to happen.
//!
//! A test begins with [`Broker::start`], adds [`Consumer`]s, puts through [`Broker::gateway`] or [`Broker::run`] and waits for what
//! has to come with [`wait`]. Everything that was started ends with its value, also when the test fails; then the end of the
//! broker's log is shown.
//!
//! Functions of this crate panic when something is not as the test wants it.

pub mod acknowledged;
mod binary;
mod broker;
pub mod cluster;
mod command;
pub mod consumer;
pub mod explained;
pub mod figures;
pub mod gateway;
pub mod hand;
pub mod hbase;
mod healthy;
pub mod letters;
pub mod load;
pub mod matrix;
pub mod message;
mod metrics;
pub mod order;
mod port;
pub mod raw;
pub mod rising;
mod seed;
pub mod silent;
pub mod small_disk;
mod subscription;
pub mod text;
mod wait;
pub mod zookeeper;

pub use binary::hqueue;
pub use broker::{Broker, Meeting, Setup};
pub use cluster::Cluster;
pub use command::{Done, Follower, run};
pub use consumer::{Answer, Consumer};
pub use gateway::{Admin, Dialect, Gateway, queue_spec, refusal};
pub use hand::{Hand, Registered};
pub use healthy::Healthy;
pub use message::{Id, Message};
pub use metrics::{Metrics, get as http_get};
pub use port::free_port;
pub use seed::seed;
pub use subscription::Subscription;
pub use wait::{PATIENCE, wait, wait_for};

/// The value of an environment variable that asks for the long form of a test, if it is set: how often, or how much.
///
/// # Panics
/// If the value is no number.
#[must_use]
pub fn long_form(variable: &str) -> Option<usize> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is {value:?}, no number")))
}

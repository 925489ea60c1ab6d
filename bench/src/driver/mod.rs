//! What drives every side alike: producers, a receiver, and the calls that set HQueue up.

mod admin;
mod clock;
mod dialect;
mod frames;
mod latency;
mod producer;
mod receiver;

pub use admin::Admin;
pub use clock::Clock;
pub use dialect::{Dialect, FloorDialect, ThriftDialect};
pub use frames::Frames;
pub use latency::Latencies;
pub use producer::{Load, Producers, Puts, Until};
pub use receiver::{Behaviour, Receiver};

//! What drives every side alike: producers, a receiver, and the calls that set HQueue up.

mod admin;
mod clock;
mod counter;
mod dialect;
mod flights;
mod frames;
mod intake;
mod latency;
mod link;
mod producer;
mod receiver;
mod ticker;

pub use admin::Admin;
pub use clock::Clock;
pub use dialect::{BridgeDialect, Dialect, FloorDialect, ThriftDialect};
pub use flights::Flights;
pub use frames::Frames;
pub use intake::{Ages, Behaviour, Intake};
pub use latency::Latencies;
pub use link::{FrameLink, Link, Place};
pub use producer::{Load, Pace, Producers, Puts, Until};
pub use receiver::Receiver;

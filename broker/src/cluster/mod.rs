//! The other brokers: who is there, who has which partition, and the proof that it is still ours.
//!
//! ```text
//! Members   keeps our own node, knows the addresses of the others
//! Balancer  the eldest candidate gives the partitions of a new queue to brokers (Assignment); where they share the store, anew
//!           (giving, spreading) when brokers come and go for longer than a blink (grace)
//! claims    makes the owner nodes of our partitions in our session
//! Marks     up to where we may give ids, in a store that brokers share
//! Ownership what of a queue is ours at this moment; asked before every put, push and checkpoint
//! Peers     connections to the others, for calls that belong to them
//! ```
//! A standalone broker has no others: everything is its own for as long as it runs.

mod assignment;
mod balancer;
mod claims;
mod giving;
mod grace;
mod lease;
mod marks;
mod members;
mod ownership;
mod pace;
mod peers;
#[cfg(test)]
mod simulation;
mod spreading;

use std::sync::Arc;

pub use assignment::Assignment;
pub use balancer::{Balancer, make_roots, remove_queue_nodes};
pub use claims::{Claimed, Claims, OwnerRecord, release};
pub use giving::SWITCHED_OFF;
pub use lease::Lease;
pub use marks::BrokerMarks;
pub use members::{Members, hex};
pub use ownership::{Ownership, Stay};
pub use pace::Pace;
pub use peers::Peers;

/// What a broker among others works with.
#[derive(Debug)]
pub struct Cluster {
    pub members: Arc<Members>,
    pub balancer: Arc<Balancer>,
    pub claims: Claims,
    pub peers: Peers,
}

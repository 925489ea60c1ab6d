//! Coordination against real ZooKeeper servers: a module is a behaviour. `cargo test -p hqueue-tests --test zookeeper silence`
//! runs one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

mod bursts;
mod closed_by_another;
mod conformance;
mod ensemble;
mod first_contact;
mod flapping;
mod foreign_nodes;
mod logs;
mod many_watches;
mod process;
mod raw;
mod restart;
mod rights;
mod sessions;
mod silence;
mod stopped;
mod support;

//! Where HQueue's messages are.
//!
//! [`store`] is the seam: what a broker asks of a store, and what a store promises. [`log`] keeps messages in segment files with
//! a group commit, [`memory`] in memory for tests. [`disk`] is the file system as the log sees it, [`expiry`] the time by which messages
//! expire, [`journal`] a small synced list of records for metadata, [`marks`] what keeps brokers that share a store from giving an id twice, [`tails`] the bytes that
//! the newest messages take in memory.
//! [`conformance`] says as tests what every store must do.

pub mod clock;
pub mod conformance;
pub mod disk;
pub mod expiry;
pub mod file_queue;
pub mod journal;
pub mod log;
pub mod marks;
pub mod memory;
pub mod store;
pub mod tails;

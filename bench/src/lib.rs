//! Measurements of HQueue against the floor of the machine. `README.md` beside this crate says what is measured and how to read it.
//!
//! ```text
//! hqueue-bench run     driver: producers and receiver, the same for every side ----> side (its own process) ----> receiver
//! hqueue-bench floor   a side: the least that a durable push queue has to do
//! hqueue-bench echo    a bare call over the loopback
//! hqueue-bench-counted a side: the broker under a counting allocator
//! ```

pub mod driver;
pub mod echo;
pub mod failure;
pub mod floor;
pub mod hbase;
pub mod messages;
pub mod peers;
pub mod report;
pub mod scenarios;
pub mod setting;
pub mod sides;

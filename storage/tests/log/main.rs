//! The segment log behind faults: every file is a behaviour.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod commands;
mod conformance;
mod damage;
mod durability;
mod failed_writes;
mod full_disk;
mod gone;
mod index_loss;
mod let_go;
mod power_cut;
mod recycling;
mod retention;
mod slow_disk;
mod start;
mod support;
mod torn_tail;

//! The embedded coordinator, as its users see it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod conformance;
mod faults;
mod gate;
mod lifecycle;
mod power;
mod support;
mod visibility;

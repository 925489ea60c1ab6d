//! The wire codec against the generated code of the `thrift` crate, and against hostile bytes.
// Helpers of tests stand outside of test functions, where clippy.toml does not allow it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod delimiting;
mod detection;
mod hostile;
mod pushes;
mod put_limits;
mod puts;
mod slices;
mod support;
mod values;

//! The generated code: `thrift --gen rs -out src ../../idl/hqueue.thrift`.

#[allow(warnings, clippy::all)]
#[rustfmt::skip]
pub mod hqueue;

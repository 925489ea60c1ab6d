//! Calls of HBase's Thrift2 gateway.

mod args;
mod connection;
mod error;
mod options;
mod pool;
mod probe;
mod put;
mod reply;
mod scan;

pub(crate) use args::{args, decode};
pub use error::GatewayError;
pub use options::GatewayOptions;
pub use pool::Gateways;
pub use probe::{Found, probe};
pub(crate) use put::{Cell, PutCall};
pub(crate) use reply::{Row, list_field, nothing, optional, rows, string_field, struct_field};
pub(crate) use scan::{Column, Scan, Values};

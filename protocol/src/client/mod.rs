//! Calling a broker: an async client for framed binary Thrift over TCP.
//!
//! One connection carries many calls. They are written in the order in which they were made and answered in that order, each reply
//! known by its sequence number. A connection is made by the first call that needs one, and again after it broke.
//!
//! A connection is one task that owns the socket:
//!
//! ```text
//! call ── permit (64) ──> queue ──> writes, notes the call ──> broker
//!   <── oneshot ───────────────── reads, finds the call   <──
//! ```

mod addresses;
mod connection;
mod error;
mod frame;
mod rpc_client;
#[cfg(test)]
mod tests;

pub use addresses::ChangingAddresses;
pub use error::ClientError;
pub use rpc_client::{ClientOptions, PendingCall, RpcClient};

/// Calls of one connection that wait for their replies. A further one waits until another is answered.
pub const MAX_OUTSTANDING: usize = 64;

//! Calling `consumeMessages` of a subscriber's Thrift server.
//!
//! ```text
//! EndpointCaller::consume ── idle connection, else connect ── dialect: given, remembered, or found by empty calls
//!        │                                                        EndpointMemory, shared by the callers of an endpoint
//!        └─ stored::consume_call ──> Connection::call ──> ReplyReader ──> the returned number, or a CallError
//! ```

mod caller;
mod connect;
mod connection;
mod error;
mod memory;
mod options;
mod reply;

pub use caller::EndpointCaller;
pub use connection::IdleEnd;
pub use error::CallError;
pub use memory::EndpointMemory;
pub use options::EndpointOptions;

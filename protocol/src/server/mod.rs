//! A Thrift server on tokio: it tells each connection's dialect from the first bytes and answers in kind.
//!
//! ```text
//! Server::run ── accepts, sweeps deadlines, owns and joins ──> Connection, a task each
//!
//! socket ──> Input ──cut──> Request ──> Service::call ──> Pipeline ──in order──> reply::encode ──> Pieces ──> socket
//! ```
//!
//! Memory follows what has arrived, never what was announced. A connection that waits has neither a buffer nor a timer.

mod budget;
mod connection;
mod connections;
mod counters;
mod listen;
mod log_gate;
mod options;
mod pace;
mod pipeline;
mod reply;
mod request;
mod service;
mod shared;
mod watch;

pub use budget::FREE_BYTES;
pub use counters::ServerCounters;
pub use listen::{Server, Stopped};
pub use options::{BadServerOption, ServerOptions};
pub use service::{Call, Hurry, Reply, ReplyFuture, Service};

//! What a server asks of whoever answers the calls.

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

use bytes::Bytes;

use crate::wire::Protocol;

/// The answer under way.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Answers the calls of all connections of a server.
pub trait Service: Debug + Send + Sync + 'static {
    /// May calls of this method be under way together on one connection? `call` is made in the order of arrival, replies leave in
    /// that order; of a method that does not overlap, `call` waits until every earlier reply is ready, and no other `call` of that
    /// connection is made before its own is.
    fn overlaps(&self, method: &[u8]) -> bool;

    /// Answers a call. Reads the arguments before it returns: they stand in the connection's buffer. The future is dropped where it
    /// stands if its connection breaks, or is cut off at a stop. It has no deadline but the service's own.
    fn call(&self, call: Call) -> ReplyFuture;
}

/// One request. Its bytes are complete, well-formed Thrift of allowed depth and size.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Bytes,
    pub protocol: Protocol,
    /// The arguments' struct, encoded.
    pub args: Bytes,
    pub peer: SocketAddr,
}

/// What to answer.
#[derive(Debug)]
pub enum Reply {
    /// The result's struct, encoded in the call's protocol, in pieces that follow one another.
    Result(Vec<Bytes>),
    /// There is no such method.
    UnknownMethod,
    /// A `TApplicationException` of kind `PROTOCOL_ERROR`: the arguments could not be read.
    BadArguments(String),
    /// A `TApplicationException` of kind `INTERNAL_ERROR`.
    Failed(String),
}

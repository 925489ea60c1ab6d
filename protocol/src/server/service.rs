//! What a server asks of whoever answers the calls.

use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

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

    /// May a call of this method wait long for something to happen? Such a call gets a [`Hurry`], and gives up waiting when it is told to.
    fn waits(&self, _method: &[u8]) -> bool {
        false
    }

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
    /// Of a method that [`waits`](Service::waits).
    pub hurry: Hurry,
}

/// Tells a call that waits for something to happen that its reply is needed now, because
///
/// * a later reply of its connection is ready, and has to leave behind it;
/// * a call has arrived that cannot begin before it is answered;
/// * the peer sends nothing more (mostly, it is gone);
/// * the server stops.
///
/// Its future is polled once more when that happens, so it need not be woken: it asks whenever it is polled.
#[derive(Clone, Debug, Default)]
pub struct Hurry(Option<Arc<AtomicBool>>);

impl Hurry {
    pub(super) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// True: it was not told before.
    pub(super) fn tell(&self) -> bool {
        self.0.as_ref().is_some_and(|told| !told.swap(true, Ordering::Relaxed))
    }

    /// The call may wait, and was not told to hurry.
    pub(super) fn is_patient(&self) -> bool {
        self.0.as_ref().is_some_and(|told| !told.load(Ordering::Relaxed))
    }

    /// The reply is needed now.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.0.as_ref().is_some_and(|told| told.load(Ordering::Relaxed))
    }

    /// Waits until the reply is needed: for the call's own future, which is polled again then.
    pub async fn told(&self) {
        std::future::poll_fn(|_| if self.is_told() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
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

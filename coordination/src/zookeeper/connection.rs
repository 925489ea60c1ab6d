//! The calls under way on one connection.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::wire::Wire;
use crate::CoordinationError as E;

/// Calls under way at the same time. With the reads for watches and a heartbeat that is 49 requests: with 64 the crate stops for
/// ever when it wants to ping.
const CONCURRENT_CALLS: usize = 24;

/// What callers use while a session is held.
#[derive(Debug)]
pub(super) struct Connection {
    wire: Arc<Wire>,
    /// The client's own runtime: calls end with it.
    runtime: Handle,
    slots: Arc<Semaphore>,
    closing: AtomicBool,
    /// Every call is answered within this time.
    limit: Duration,
}

impl Connection {
    pub(super) fn new(wire: Arc<Wire>, runtime: Handle, limit: Duration) -> Self {
        Self { wire, runtime, slots: Arc::new(Semaphore::new(CONCURRENT_CALLS)), closing: AtomicBool::new(false), limit }
    }

    /// Carries out a call, in a task of its own that goes on if the caller does not wait: the crate mixes up answers to requests
    /// that were cancelled.
    pub(super) async fn call<T, F>(&self, call: impl FnOnce(Arc<Wire>) -> F) -> Result<T, E>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let deadline = Instant::now() + self.limit;
        let slot = timeout_at(deadline, Arc::clone(&self.slots).acquire_owned()).await;
        if self.closing.load(Ordering::Acquire) {
            return Err(E::Closed);
        }
        let slot = match slot {
            Ok(Ok(slot)) => slot,
            Ok(Err(_)) => return Err(ended()),
            Err(_) => {
                return Err(E::Away(format!("{CONCURRENT_CALLS} calls are under way and none was answered in {:?}", self.limit)));
            }
        };
        let call = call(Arc::clone(&self.wire));
        let task = self.runtime.spawn(async move {
            let answer = call.await;
            drop(slot);
            answer
        });
        match timeout_at(deadline, task).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) if panic.is_panic() => Err(E::Failed("the ZooKeeper client cannot read the answer".to_owned())),
            Ok(Err(_)) => Err(ended()),
            Err(_) => Err(E::Away(format!("ZooKeeper has not answered within {:?}", self.limit))),
        }
    }

    /// Carries out what does not wait for its turn, in a task as well; `None`: the client has ended.
    pub(super) async fn at_once<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.runtime.spawn(request).await.ok()
    }

    /// No further calls; waits for those under way.
    pub(super) async fn drain(&self) {
        self.closing.store(true, Ordering::Release);
        // An error: they have ended already.
        let _ = self.slots.acquire_many(u32::try_from(CONCURRENT_CALLS).unwrap_or(u32::MAX)).await.map(|slots| slots.forget());
        self.slots.close();
    }

    /// The connection is over: calls that wait for their turn are told so; those under way end with the client's runtime.
    pub(super) fn end(&self) {
        self.slots.close();
    }
}

fn ended() -> E {
    E::Away("the session with ZooKeeper ended".to_owned())
}

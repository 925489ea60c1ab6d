//! Coordination in a ZooKeeper ensemble.
//!
//! * **One connection is one session.** The client crate would connect again and lose every watch without a word; here the first
//!   sign of a lost connection ends the session, its client and its runtime, and a new session begins.
//! * A session is `Held` with a lease that ends before the server can end the session (`lease.rs`), and is confirmed by a write
//!   six times in its timeout.
//! * Watches are level-triggered (`watches.rs`): all are read again in a new session, and each once in five minutes anyway.
//! * Calls and heartbeats have deadlines; at most 49 requests are under way, each in a task that is never cancelled.
//! * Below the root, `/.sessions` has an ephemeral node for every session; the trait does not show it.
//! * With `auth`, all that is made belongs to that user alone (`creator: all`). What is there keeps its rights.
//! * The client crate logs nothing: its thread has no subscriber (`client.rs`).
//!
//! A session that was given up may live on the server until its timeout, and its ephemeral nodes with it: [`remove_leftover`](crate::remove_leftover)
//! removes one of them without touching a rival's.

mod backoff;
mod calls;
mod client;
mod connection;
mod dial;
mod establish;
mod handshake;
mod lease;
mod options;
mod reader;
mod reports;
mod root;
mod session;
mod shared;
mod watched_paths;
mod watches;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::timeout;

use self::establish::Failure;
pub use self::options::{
    DEFAULT_PORT, DEFAULT_ROOT, DEFAULT_SESSION_TIMEOUT, MAX_SESSION_TIMEOUT, MIN_SESSION_TIMEOUT, ZooKeeperOptions,
    ZooKeeperOptionsError,
};
use self::session::Sessions;
use self::shared::Shared;
use crate::{BoxFuture, CoordinationError, Coordinator, Created, MAX_PAYLOAD_BYTES, Node, NodeKind, Observed, SessionState};

/// What tests set and nobody else needs to.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Everything watched is read again within this time, though nothing is heard of it.
    pub reread_within: Duration,
    /// A session that has carried so many requests is renewed: at 2^32 the crate gives answers to the wrong callers.
    pub requests_in_a_session: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { reread_within: Duration::from_secs(300), requests_in_a_session: 1 << 30 }
    }
}

/// A session with ZooKeeper, and the next one when that is over. Dropping it ends the session in the background;
/// [`close`](Coordinator::close) waits for that.
#[derive(Debug)]
pub struct ZooKeeperCoordinator {
    hosts: String,
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    /// Ends with the thread.
    ended: watch::Receiver<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl ZooKeeperCoordinator {
    /// Returns at once; gets a session in the background, and makes the root with its parents if it is missing. With options that
    /// [`check`](ZooKeeperOptions::check) refuses there is never a session, and [`connected`](Self::connected) says why.
    #[must_use]
    pub fn start(options: ZooKeeperOptions) -> Self {
        Self::start_tuned(options, Tuning::default())
    }

    #[doc(hidden)]
    #[must_use]
    pub fn start_tuned(options: ZooKeeperOptions, tuning: Tuning) -> Self {
        let shared = Arc::new(Shared::new());
        let (closing, is_closing) = watch::channel(false);
        let (ending, ended) = watch::channel(());
        let hosts = options.hosts.join(", ");
        let thread = match options.check() {
            Ok(()) => {
                let log = tracing::dispatcher::get_default(Clone::clone);
                let sessions = Sessions { options, tuning, shared: Arc::clone(&shared), log };
                spawn(sessions, is_closing, ending)
            }
            Err(error) => Err(error.to_string()),
        };
        let thread = thread.map_err(|why| shared.failed(Failure::lasting(why))).ok();
        Self { hosts, shared, closing, ended, thread: Mutex::new(thread) }
    }

    /// Waits for the first session.
    ///
    /// # Errors
    /// `Away` names the hosts and says why the last attempt failed. `Failed`, before the time is over: it will not get better by
    /// itself (no rights, bad options); attempts go on all the same. `Closed`.
    pub async fn connected(&self, at_most: Duration) -> Result<(), CoordinationError> {
        let (mut state, mut failure) = (self.shared.state(), self.shared.failure());
        let waiting = async {
            tokio::select! {
                biased;
                held = state.wait_for(|state| *state != SessionState::Away) => match held.as_deref() {
                    Ok(SessionState::Held { .. }) => Ok(()),
                    _ => Err(CoordinationError::Closed),
                },
                lasting = failure.wait_for(|failure| failure.as_ref().is_some_and(|failure| failure.lasts)) => {
                    let why = lasting.ok().and_then(|failure| failure.as_ref().map(|failure| failure.why.clone()));
                    Err(CoordinationError::Failed(format!("no session with ZooKeeper at {}: {}", self.hosts, why.unwrap_or_default())))
                }
            }
        };
        timeout(at_most, waiting).await.unwrap_or_else(|_| {
            let last = self.shared.failure().borrow().clone();
            let why = last.map_or_else(|| "no attempt has ended yet".to_owned(), |failure| failure.why);
            Err(CoordinationError::Away(format!("no session with ZooKeeper at {} within {at_most:?}: {why}", self.hosts)))
        })
    }

    fn begin_end(&self) {
        self.shared.announce(SessionState::Closed);
        self.closing.send_replace(true);
    }
}

fn spawn(sessions: Sessions, closing: watch::Receiver<bool>, ending: watch::Sender<()>) -> Result<JoinHandle<()>, String> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| format!("the coordinator's runtime cannot be started: {error}"))?;
    let body = move || {
        let log = sessions.log.clone();
        tracing::dispatcher::with_default(&log, || {
            runtime.block_on(sessions.run(closing));
            // A name that is being resolved is not waited for.
            runtime.shutdown_background();
        });
        drop(ending);
    };
    let thread = thread::Builder::new().name("zookeeper".to_owned()).spawn(body);
    thread.map_err(|error| format!("the coordinator's thread cannot be started: {error}"))
}

/// What is refused before anything is sent.
fn check(path: &str, payload: &[u8]) -> Result<(), CoordinationError> {
    root::check(path)?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(CoordinationError::TooLarge { path: path.to_owned(), size: payload.len() });
    }
    Ok(())
}

impl Coordinator for ZooKeeperCoordinator {
    fn create<'a>(
        &'a self,
        path: &'a str,
        payload: &'a [u8],
        kind: NodeKind,
    ) -> BoxFuture<'a, Result<Created, CoordinationError>> {
        Box::pin(async move {
            let connection = self.shared.connection()?;
            check(path, payload)?;
            let (path, payload) = (path.to_owned(), payload.to_vec());
            connection.call(|wire| async move { calls::create(&wire, &path, &payload, kind).await }).await
        })
    }

    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Node>, CoordinationError>> {
        Box::pin(async move {
            let connection = self.shared.connection()?;
            check(path, &[])?;
            let path = path.to_owned();
            connection.call(|wire| async move { calls::get(&wire, &path).await }).await
        })
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        payload: &'a [u8],
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<i32, CoordinationError>> {
        Box::pin(async move {
            let connection = self.shared.connection()?;
            check(path, payload)?;
            let (path, payload) = (path.to_owned(), payload.to_vec());
            connection.call(|wire| async move { calls::set(&wire, &path, &payload, version).await }).await
        })
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), CoordinationError>> {
        Box::pin(async move {
            let connection = self.shared.connection()?;
            check(path, &[])?;
            let path = path.to_owned();
            connection.call(|wire| async move { calls::delete(&wire, &path, version).await }).await
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, CoordinationError>> {
        Box::pin(async move {
            let connection = self.shared.connection()?;
            check(path, &[])?;
            let path = path.to_owned();
            connection.call(|wire| async move { calls::children(&wire, &path).await }).await
        })
    }

    fn watch_node(&self, path: &str) -> watch::Receiver<Observed<Option<Node>>> {
        self.shared.watches.watch_node(path)
    }

    fn watch_children(&self, path: &str) -> watch::Receiver<Observed<Option<Vec<String>>>> {
        self.shared.watches.watch_children(path)
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.shared.state()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.begin_end();
            // An error is the end of the thread, which has nothing left to do then.
            let _ = self.ended.clone().changed().await;
            self.shared.watches.end();
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(Err(_)) = thread.map(JoinHandle::join) {
                tracing::error!("the thread that holds ZooKeeper's session has panicked");
            }
        })
    }
}

impl Drop for ZooKeeperCoordinator {
    fn drop(&mut self) {
        self.begin_end();
    }
}

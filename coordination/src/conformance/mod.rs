//! What every implementation of [`Coordinator`] has to do, as tests. It demands only what ZooKeeper can give.
//!
//! An implementation brings a [`Harness`] and gets each behaviour as a test of its own:
//! ```text
//! hqueue_coordination::coordinator_conformance!(EmbeddedHarness);
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "these are tests, which other crates and test targets call"
)]

pub mod concurrency;
pub mod ephemeral;
pub mod nodes;
pub mod paths;
pub mod persistence;
pub mod sequential;
pub mod session;
pub mod subtrees;
mod table;
pub mod versions;
pub mod watch_order;
pub mod watches;

use std::fmt::Debug;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::{Coordinator, Node, NodeKind, Observed, SessionState, SharedCoordinator};

/// How the suite gets an implementation.
pub trait Harness: Sized + Send + Sync + 'static {
    /// A watch shows a change, and an ephemeral node is gone after its session was dropped, within this time.
    const PATIENCE: Duration;

    /// An empty tree and a session on it.
    fn start() -> impl Future<Output = Self> + Send;

    /// The session.
    fn coordinator(&self) -> SharedCoordinator;

    /// One more client with a session of its own on the same tree; nobody else holds it. `None`: the implementation has only one.
    fn second_session(&self) -> impl Future<Output = Option<SharedCoordinator>> + Send;

    /// The process ends, cleanly or not, and comes back with a new session on the same tree.
    fn restart(self) -> impl Future<Output = Self> + Send;
}

/// What a watch should show, at last.
async fn shows<T>(receiver: &mut watch::Receiver<Observed<T>>, patience: Duration, wanted: T)
where
    T: PartialEq + Debug + Clone,
{
    let shown = reaches(receiver, patience, |seen| *seen == wanted).await;
    assert!(shown.is_ok(), "the watch shows {:?}, not {wanted:?}", shown.unwrap_err());
}

/// The first snapshot that is as wanted, or what the watch shows after the patience is over or once it has ended.
async fn reaches<T: Clone>(
    receiver: &mut watch::Receiver<Observed<T>>,
    patience: Duration,
    wanted: impl Fn(&T) -> bool,
) -> Result<T, Observed<T>> {
    let fits = |observed: &Observed<T>| matches!(observed, Observed::Seen(seen) if wanted(seen));
    let waited = timeout(patience, receiver.wait_for(fits)).await.is_ok_and(|waited| waited.is_ok());
    match receiver.borrow().clone() {
        Observed::Seen(seen) if waited => Ok(seen),
        other => Err(other),
    }
}

/// Makes a persistent node.
async fn make(coordinator: &dyn Coordinator, path: &str, payload: &[u8]) {
    let created = coordinator.create(path, payload, NodeKind::Persistent).await.unwrap();
    assert_eq!((created.path.as_str(), created.session), (path, None));
}

/// A persistent node as it is read.
fn node(payload: &[u8], version: i32) -> Node {
    Node { payload: payload.to_vec(), version, owner_session: None }
}

/// The id of the session that is held.
fn session_id(coordinator: &dyn Coordinator) -> i64 {
    match *coordinator.session().borrow() {
        SessionState::Held { id, .. } => id,
        other => panic!("no session: {other:?}"),
    }
}

/// A second session, or the end of the test with a line that says so.
macro_rules! second_session {
    ($harness:expr) => {
        match $harness.second_session().await {
            Some(second) => second,
            None => return println!("not applicable: this implementation has one session"),
        }
    };
}
use second_session;

//! The seam: what HQueue asks of coordination. Small, so that an implementation can be exchanged in a day.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

/// A boxed future, so that the trait can be an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A payload is at most so long. Bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// A tree of nodes. Paths are absolute within HQueue's root: `/queues/q1`, `/` is the root itself, which is always there.
/// [`check_path`](crate::check_path) says what a path may look like; every call checks it and answers `BadPath`.
///
/// # The contract
/// * A call that returned `Ok` is durable (persistent nodes) and seen by every later call of this session. Other sessions decide their
///   writes by it at once (versions, `NodeExists`), but may read what was before for a moment.
/// * One that failed with an error that [`may_have_happened`](CoordinationError::may_have_happened) may show up later, and so may one
///   whose future was dropped.
/// * What a call or a watch shows is durable: nothing that is seen goes again with a restart, but for ephemeral nodes.
/// * Versions count the writes of a node from 0; a node made anew starts at 0 again.
/// * A watch gives snapshots: it never misses the last state, it may merge those before. The first may be older than a write just
///   acknowledged; the newer one follows. It never fails: while there is no session it shows what was seen last, afterwards it goes on
///   by itself. It ends (`changed` answers an error) when the coordinator is closed.
/// * Ephemeral nodes go when their session ends. A session never comes back: `session()` then shows another id, and who made
///   ephemeral nodes makes them again.
/// * Dropping the coordinator ends its session too.
pub trait Coordinator: Debug + Send + Sync + 'static {
    /// Makes a node. Its parent must exist and be persistent.
    ///
    /// # Errors
    /// `NodeExists`; `NoNode` and `EphemeralParent` with the path of the parent; `TooLarge`.
    fn create<'a>(
        &'a self,
        path: &'a str,
        payload: &'a [u8],
        kind: NodeKind,
    ) -> BoxFuture<'a, Result<Created, CoordinationError>>;

    /// `None`: there is no such node.
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Node>, CoordinationError>>;

    /// Writes a node that exists; `version` says which one is meant to be replaced, `None` any. Returns the new version.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion` (a negative version matches nothing), `TooLarge`; the node is then as it was.
    fn set<'a>(&'a self, path: &'a str, payload: &'a [u8], version: Option<i32>)
    -> BoxFuture<'a, Result<i32, CoordinationError>>;

    /// Removes a node without children; `version` as in [`set`](Self::set). The root cannot be removed (`BadPath`).
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NotEmpty`; the node is then as it was.
    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), CoordinationError>>;

    /// The names of the children, sorted; `None`: there is no such node.
    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, CoordinationError>>;

    /// Snapshots of a node, from now on, while the receiver is held; there need be no node yet. Dropping the receiver ends the watch.
    /// A path that is not valid is watched as one that is never there. Not for `/`: below a root of its own ZooKeeper loses it.
    fn watch_node(&self, path: &str) -> watch::Receiver<Observed<Option<Node>>>;

    /// Snapshots of the names of a node's children, sorted; otherwise as [`watch_node`](Self::watch_node).
    fn watch_children(&self, path: &str) -> watch::Receiver<Observed<Option<Vec<String>>>>;

    /// The state of our session.
    fn session(&self) -> watch::Receiver<SessionState>;

    /// Ends the session: ephemeral nodes go, watches end, later calls answer `Closed`. Calls under way are carried out or answer
    /// `Closed`. Closing twice is no error; both wait for the end.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A shared coordinator.
pub type SharedCoordinator = Arc<dyn Coordinator>;

/// What a watch has seen: nothing yet (the first read is under way), or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed<T> {
    Pending,
    Seen(T),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    Persistent,
    /// Goes with our session; has no children.
    Ephemeral,
    /// Ephemeral, with a number of ten digits behind the name that rises with every such node under the parent, not always by one.
    /// A parent made anew may start at 0 again.
    EphemeralSequential,
}

/// A node that was made: its path (with its number, if it is sequential) and the session that holds it, if it is ephemeral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    pub path: String,
    pub session: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub payload: Vec<u8>,
    pub version: i32,
    /// The session that holds an ephemeral node.
    pub owner_session: Option<i64>,
}

/// Whether we have a session, which one, and until when it is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// No session now; a new one is being made.
    Away,
    /// Session `id` holds. `lease_until` is the moment by which it must have been confirmed again; `None`: it holds until closed.
    Held { id: i64, lease_until: Option<tokio::time::Instant> },
    /// Closed by us.
    Closed,
}

/// Why coordination did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoordinationError {
    #[error("node {0} exists")]
    NodeExists(String),
    #[error("there is no node {0}")]
    NoNode(String),
    #[error("node {0} has children")]
    NotEmpty(String),
    /// `found` may be newer than what the call met.
    #[error("node {path} has version {found}, not {wanted}")]
    BadVersion { path: String, wanted: i32, found: i32 },
    #[error("{path:?} is no valid path here: {why}")]
    BadPath { path: String, why: &'static str },
    #[error("ephemeral node {0} cannot have children")]
    EphemeralParent(String),
    #[error("a payload of {size} bytes for {path}: the limit is {MAX_PAYLOAD_BYTES}")]
    TooLarge { path: String, size: usize },
    /// No answer in time, or no session: it may have happened or not.
    #[error("coordination is away: {0}")]
    Away(String),
    #[error("coordination is closed")]
    Closed,
    /// Nothing was changed; the same call works once there is space again.
    #[error("nothing can be kept: {0}")]
    NoSpace(String),
    /// What should keep the nodes failed; it may have happened or not.
    #[error("coordination failed: {0}")]
    Failed(String),
}

impl CoordinationError {
    /// May the same call succeed later without anybody's doing?
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Away(_) | Self::NoSpace(_))
    }

    /// May the call have been carried out all the same?
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Closed | Self::Failed(_))
    }
}

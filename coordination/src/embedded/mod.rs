//! Coordination within one process, for a standalone broker: a tree in memory, its persistent nodes in a journal.
//!
//! * Reads and watches are served from memory and show what is durable: a write becomes visible after its sync and before its answer.
//! * Writes go to one thread, which carries out all that wait with one sync (`writer.rs`). The thread is there as long as a session is
//!   and is joined when the last one ends.
//! * Ephemeral nodes are in memory only. The numbers of sequential ones are kept, so that they rise over restarts too.
//! * Without space on the disk, or after a write that failed, persistent nodes cannot be written: the error says so. Reads, watches and
//!   ephemeral nodes go on.

mod change;
mod queue;
mod stage;
mod tree;
mod watches;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};

use hqueue_storage::disk::Disk;
use hqueue_storage::journal::{Journal, JournalError};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use self::change::Change;
use self::queue::{Item, Queue};
use self::stage::{Write, Written};
use self::tree::Tree;
use self::watches::Watches;
use self::writer::Writer;
use crate::{
    BoxFuture, CoordinationError, Coordinator, Created, MAX_PAYLOAD_BYTES, Node, NodeKind, Observed, SessionState, check_path,
};

/// The journal's file in the folder given to [`EmbeddedCoordinator::open`].
pub const JOURNAL_NAME: &str = "coordination.journal";

/// A session on a tree that this process keeps. Dropping it ends the session; dropping the last one of a tree waits for the write in
/// hand.
#[derive(Debug)]
pub struct EmbeddedCoordinator {
    inner: Arc<Inner>,
    session: Arc<Session>,
    writer: Arc<WriterThread>,
    is_new: bool,
}

/// What all sessions and the writer share.
#[derive(Debug)]
struct Inner {
    /// Changed by the writer only.
    tree: RwLock<Tree>,
    sessions: Mutex<Sessions>,
    queue: Queue,
}

#[derive(Debug, Default)]
struct Sessions {
    live: HashMap<i64, Arc<Session>>,
    /// The last one has ended.
    over: bool,
}

#[derive(Debug)]
struct Session {
    id: i64,
    state: watch::Sender<SessionState>,
    watches: Watches,
}

impl EmbeddedCoordinator {
    /// Opens the tree that is kept in `dir`, an empty one if there is none, with a first session. Reads the journal (mostly below
    /// 16 MiB, two syncs), so it blocks. Only one process may have it open: the caller sees to that.
    ///
    /// # Errors
    /// `Damaged` says what to do; see [`Journal::open`].
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, JournalError> {
        let mut tree = Tree::default();
        let journal = Journal::open(disk, dir, JOURNAL_NAME, &mut |record| tree.apply(Change::decode(record)?))?;
        let (nodes, bytes, is_new) = (tree.len(), journal.byte_len(), journal.is_new());
        tracing::info!(dir = %dir.display(), nodes, bytes, is_new, "opened the coordination journal");
        let inner = Arc::new(Inner { tree: RwLock::new(tree), sessions: Mutex::default(), queue: Queue::new() });
        let session = Session::new();
        inner.sessions().live.insert(session.id, Arc::clone(&session));
        let writer = Writer::new(Arc::clone(&inner), journal);
        let thread = thread::Builder::new().name("coordination".to_owned()).spawn(move || writer.run());
        let thread = thread.map_err(|error| JournalError::Io {
            what: "starting the thread that writes",
            path: dir.join(JOURNAL_NAME),
            reason: error.to_string(),
        })?;
        Ok(Self { inner, session, writer: Arc::new(WriterThread(Mutex::new(Some(thread)))), is_new })
    }

    /// Was there nothing in the folder when it was opened?
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// A further session on the same tree: what another process would have in a cluster.
    ///
    /// # Errors
    /// `Closed` once all sessions have ended.
    pub fn open_session(&self) -> Result<Self, CoordinationError> {
        let mut sessions = self.inner.sessions();
        if sessions.over {
            return Err(CoordinationError::Closed);
        }
        let session = Session::new();
        sessions.live.insert(session.id, Arc::clone(&session));
        Ok(Self { inner: Arc::clone(&self.inner), session, writer: Arc::clone(&self.writer), is_new: self.is_new })
    }

    fn check(&self, path: &str) -> Result<(), CoordinationError> {
        if *self.session.state.borrow() == SessionState::Closed {
            return Err(CoordinationError::Closed);
        }
        check_path(path)
    }

    async fn write(&self, path: &str, payload: &[u8], write: impl FnOnce() -> Write) -> Result<Written, CoordinationError> {
        self.check(path)?;
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(CoordinationError::TooLarge { path: path.to_owned(), size: payload.len() });
        }
        self.inner.queue.call(self.session.id, write()).await
    }

    /// Begins the end of the session; the receiver is told of it by an error.
    fn begin_end(&self) -> oneshot::Receiver<()> {
        self.session.state.send_replace(SessionState::Closed);
        let (done, ended) = oneshot::channel();
        self.inner.queue.push(Item::End { session: self.session.id, _done: done });
        ended
    }
}

impl Coordinator for EmbeddedCoordinator {
    fn create<'a>(
        &'a self,
        path: &'a str,
        payload: &'a [u8],
        kind: NodeKind,
    ) -> BoxFuture<'a, Result<Created, CoordinationError>> {
        Box::pin(async move {
            let write = || Write::Create { path: path.to_owned(), payload: payload.to_vec(), kind };
            let written = self.write(path, payload, write).await?;
            Ok(Created { path: written.path.to_string(), session: written.owner })
        })
    }

    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Node>, CoordinationError>> {
        Box::pin(async move {
            self.check(path)?;
            Ok(self.inner.tree().get(path))
        })
    }

    fn set<'a>(
        &'a self,
        path: &'a str,
        payload: &'a [u8],
        version: Option<i32>,
    ) -> BoxFuture<'a, Result<i32, CoordinationError>> {
        Box::pin(async move {
            let write = || Write::Set { path: path.to_owned(), payload: payload.to_vec(), version };
            Ok(self.write(path, payload, write).await?.version)
        })
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), CoordinationError>> {
        Box::pin(async move {
            self.write(path, &[], || Write::Delete { path: path.to_owned(), version }).await?;
            Ok(())
        })
    }

    fn children<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, CoordinationError>> {
        Box::pin(async move {
            self.check(path)?;
            Ok(self.inner.tree().children(path))
        })
    }

    fn watch_node(&self, path: &str) -> watch::Receiver<Observed<Option<Node>>> {
        self.session.watches.watch_node(path, &self.inner.tree)
    }

    fn watch_children(&self, path: &str) -> watch::Receiver<Observed<Option<Vec<String>>>> {
        self.session.watches.watch_children(path, &self.inner.tree)
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.session.state.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // An error is the answer: the end has come.
            let _ = self.begin_end().await;
            if self.inner.sessions().over {
                self.writer.join();
            }
        })
    }
}

impl Drop for EmbeddedCoordinator {
    fn drop(&mut self) {
        drop(self.begin_end());
    }
}

impl Session {
    fn new() -> Arc<Self> {
        // Random, so that no two sessions of a tree meet, over restarts too.
        let id = i64::try_from(Uuid::new_v4().as_u64_pair().0 >> 1).unwrap_or(i64::MAX);
        let state = watch::Sender::new(SessionState::Held { id, lease_until: None });
        Arc::new(Self { id, state, watches: Watches::new() })
    }
}

impl Inner {
    fn tree(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree_mut(&self) -> RwLockWriteGuard<'_, Tree> {
        self.tree.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that writes; ends by itself once the last session has ended.
#[derive(Debug)]
struct WriterThread(Mutex<Option<JoinHandle<()>>>);

impl WriterThread {
    /// Waits for the thread, whose last act was to say that it has ended.
    fn join(&self) {
        let thread = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            tracing::error!("the thread that writes coordination's nodes has panicked");
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.join();
    }
}

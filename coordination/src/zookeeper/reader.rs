//! Reads what is marked, with the watch set anew: one task for each read under way, none for what is idle.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tracing::Dispatch;
use zookeeper_async::ZkError;

use super::calls::{failure, owner};
use super::watches::{Children, Found, Job, Kind, Watches};
use super::wire::Wire;
use crate::Node;

/// Reads under way at the same time.
pub(super) const CONCURRENT_READS: usize = 24;

/// A node that comes and goes between two requests is looked at so often, then again later.
const TRIES: usize = 4;

/// What the reads of one session share.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) wire: Arc<Wire>,
    pub(super) watches: Arc<Watches>,
    pub(super) epoch: u64,
    /// Where log lines go: the client's thread itself has no subscriber.
    pub(super) log: Dispatch,
    /// Something could not be read, and it was said.
    pub(super) complained: AtomicBool,
}

/// Serves the watches until the session is over. Runs in the client's runtime and ends with it.
pub(super) async fn run(reader: Arc<Reader>) {
    let slots = Arc::new(Semaphore::new(CONCURRENT_READS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let Some(job) = reader.watches.next(reader.epoch).await else { return };
        let reader = Arc::clone(&reader);
        tokio::spawn(async move {
            // The crate panics at answers that it does not understand; the path must not be taken for one that is being read for
            // ever.
            let read = AssertUnwindSafe(read(&reader.wire, &job)).catch_unwind().await;
            let found = read.unwrap_or(Err(ZkError::MarshallingError)).unwrap_or_else(|error| reader.failed(&job, error));
            reader.watches.done(reader.epoch, &job, found);
            drop(slot);
        });
    }
}

impl Reader {
    /// The watch shows what it showed; it is tried again in its turn, and in the next session.
    fn failed(&self, job: &Job, error: ZkError) -> Found {
        let ended = matches!(error, ZkError::ConnectionLoss | ZkError::SessionExpired | ZkError::SessionMoved);
        if !ended && !self.complained.swap(true, Ordering::Relaxed) {
            let reason = failure(&self.wire, &job.path, error);
            tracing::dispatcher::with_default(&self.log, || {
                tracing::warn!(path = %job.path, %reason, "a watched node cannot be read; others of this session are not reported");
            });
        }
        Found::Nothing
    }
}

async fn read(wire: &Wire, job: &Job) -> Result<Found, ZkError> {
    match job.kind {
        Kind::Node => Ok(Found::Node(read_node(wire, &job.path, job.was_missing).await?)),
        Kind::Children => Ok(Found::Children(read_children(wire, &job.path, job.was_missing).await?)),
    }
}

async fn read_node(wire: &Wire, path: &str, was_missing: bool) -> Result<Option<Node>, ZkError> {
    for attempt in 0..TRIES {
        if (attempt > 0 || was_missing) && wire.exists(path, true).await?.is_none() {
            return Ok(None);
        }
        if let Some((payload, stat)) = wire.get(path, true).await? {
            return Ok(Some(Node { payload, version: stat.version, owner_session: owner(stat.ephemeral_owner) }));
        }
    }
    // The watch that `exists` set has fired, so it is marked again.
    Ok(None)
}

async fn read_children(wire: &Wire, path: &str, was_missing: bool) -> Result<Children, ZkError> {
    for attempt in 0..TRIES {
        if (attempt > 0 || was_missing) && wire.exists(path, true).await?.is_none() {
            return Ok(None);
        }
        if let Some(mut names) = wire.children(path, true).await? {
            names.sort_unstable();
            return Ok(Some(names));
        }
    }
    Ok(None)
}

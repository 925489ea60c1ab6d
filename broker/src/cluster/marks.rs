//! The marks of brokers that share a store, kept in coordination: a node for each broker, which outlives it.
//!
//! That a mark was written *in* a session is certain if that session was ours before and behind the write: one that has ended never comes
//! back. And whoever claims a partition after its owner's session has ended sees every mark that was written in it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use hqueue_coordination::{BoxFuture, CoordinationError, Node, NodeKind, SharedCoordinator, child_of, create_all};
use hqueue_storage::marks::{Mark, MarkError, Marks};
use serde::{Deserialize, Serialize};

use super::lease::Lease;
use super::members::hex;
use crate::paths;

/// So many marks are read at once.
const CONCURRENT_READS: usize = 24;
/// Nobody else writes our node but an earlier session of ours whose write was late: once, then it is over.
const TRIES: usize = 4;

/// The payload of a broker's mark.
#[derive(Debug, Serialize, Deserialize)]
struct Payload {
    /// The milliseconds of ids that the broker has given are less.
    below: i64,
    /// In which it was written, for people.
    session: String,
}

/// Our own mark, and how to read the others.
#[derive(Debug)]
pub struct BrokerMarks {
    coordinator: SharedCoordinator,
    lease: Lease,
    broker: String,
    current: Mutex<Option<Mark>>,
    /// Held while the mark is moved.
    moving: tokio::sync::Mutex<()>,
    /// Looks at all marks that have begun.
    looks: AtomicU64,
    highest: tokio::sync::Mutex<Highest>,
}

/// The last look at all marks. Whoever asked before it began may take what it found.
#[derive(Debug, Default)]
struct Highest {
    /// Its number.
    look: u64,
    found_ms: i64,
}

impl BrokerMarks {
    #[must_use]
    pub fn new(coordinator: SharedCoordinator, broker: String) -> Self {
        let lease = Lease::new(&*coordinator);
        Self {
            coordinator,
            lease,
            broker,
            current: Mutex::default(),
            moving: tokio::sync::Mutex::default(),
            looks: AtomicU64::new(0),
            highest: tokio::sync::Mutex::default(),
        }
    }

    /// What was reserved in this session.
    fn known(&self, session: i64) -> Mark {
        let known = *self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.cast_unsigned();
        known.filter(|mark| mark.session == session).unwrap_or(Mark { session, below_ms: 0 })
    }

    async fn move_up(&self, below_ms: i64) -> Result<Mark, MarkError> {
        let _one = self.moving.lock().await;
        let Some(session) = self.lease.session() else { return Err(failed("there is no session with ZooKeeper that holds")) };
        let known = self.known(session);
        if known.below_ms >= below_ms {
            return Ok(known);
        }
        let below_ms = self.write(below_ms, session).await.map_err(failed)?;
        if self.lease.last_session() != Some(session) {
            return Err(failed("the session with ZooKeeper ended meanwhile"));
        }
        let mark = Mark { session: session.cast_unsigned(), below_ms };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
        Ok(mark)
    }

    /// Moves the node up; returns where it is then.
    async fn write(&self, below_ms: i64, session: i64) -> Result<i64, CoordinationError> {
        let path = paths::mark(&self.broker);
        for _ in 0..TRIES {
            let node = self.coordinator.get(&path).await?;
            let below = node.as_ref().map_or(Ok(0), |node| read(&path, node))?.max(below_ms);
            let payload = serde_json::to_vec(&Payload { below, session: hex(session) }).unwrap_or_default();
            let written = match node {
                Some(node) => self.coordinator.set(&path, &payload, Some(node.version)).await.map(drop),
                None => self.coordinator.create(&path, &payload, NodeKind::Persistent).await.map(drop),
            };
            match written {
                Ok(()) => return Ok(below),
                Err(CoordinationError::BadVersion { .. } | CoordinationError::NodeExists(_)) => {}
                Err(CoordinationError::NoNode(_)) => create_all(&*self.coordinator, paths::MARKS).await?,
                Err(error) => return Err(error),
            }
        }
        Err(CoordinationError::Failed(format!("{path} is written by somebody else all the time")))
    }

    async fn look(&self) -> Result<i64, CoordinationError> {
        let names = self.coordinator.children(paths::MARKS).await?.unwrap_or_default();
        let marks = stream::iter(names).map(|name| async move {
            let path = child_of(paths::MARKS, &name);
            let node = self.coordinator.get(&path).await?;
            node.as_ref().map_or(Ok(0), |node| read(&path, node))
        });
        marks.buffer_unordered(CONCURRENT_READS).try_fold(0, |highest: i64, mark| async move { Ok(highest.max(mark)) }).await
    }
}

/// A mark that cannot be read stops whoever wants to begin above it.
fn read(path: &str, node: &Node) -> Result<i64, CoordinationError> {
    let read = serde_json::from_slice::<Payload>(&node.payload);
    read.map(|mark| mark.below).map_err(|error| CoordinationError::Failed(format!("the mark {path} cannot be read: {error}")))
}

fn failed(reason: impl ToString) -> MarkError {
    MarkError { reason: reason.to_string() }
}

impl Marks for BrokerMarks {
    fn current(&self) -> Option<Mark> {
        self.lease.session().map(|session| self.known(session))
    }

    fn reserve(&self, below_ms: i64) -> BoxFuture<'_, Result<Mark, MarkError>> {
        Box::pin(self.move_up(below_ms))
    }

    fn highest(&self) -> BoxFuture<'_, Result<i64, MarkError>> {
        Box::pin(async move {
            // A look that is under way may have passed what we have to see; the one behind it serves all who wait by then.
            let before = self.looks.load(Ordering::SeqCst);
            let mut highest = self.highest.lock().await;
            if highest.look <= before {
                let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
                let found_ms = self.look().await.map_err(failed)?;
                *highest = Highest { look, found_ms };
            }
            Ok(highest.found_ms)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hqueue_coordination::Coordinator;
    use hqueue_coordination::embedded::EmbeddedCoordinator;
    use hqueue_storage::disk::RealDisk;

    use super::*;

    fn of(coordinator: &Arc<EmbeddedCoordinator>, broker: &str) -> BrokerMarks {
        BrokerMarks::new(Arc::clone(coordinator) as SharedCoordinator, broker.to_owned())
    }

    #[tokio::test]
    async fn a_mark_only_goes_up_and_belongs_to_its_session() {
        let folder = tempfile::tempdir().unwrap();
        let first = Arc::new(EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap());
        let marks = of(&first, "a");
        assert_eq!(marks.current().unwrap().below_ms, 0, "nothing is reserved");
        let reserved = marks.reserve(1_000).await.unwrap();
        assert_eq!((reserved.below_ms, marks.current()), (1_000, Some(reserved)));
        assert_eq!(marks.reserve(500).await.unwrap(), reserved, "it is there already");
        let second = Arc::new(first.open_session().unwrap());
        let later = of(&second, "a");
        assert_ne!(later.current().unwrap().session, reserved.session);
        assert_eq!(later.current().unwrap().below_ms, 0, "a new session reserves anew");
        assert_eq!(later.reserve(10).await.unwrap().below_ms, 1_000, "never below what was given before");
        second.close().await;
        assert!(later.current().is_none() && later.reserve(2_000).await.is_err());
    }

    #[tokio::test]
    async fn the_highest_is_that_of_all_brokers_the_dead_included() {
        let folder = tempfile::tempdir().unwrap();
        let first = Arc::new(EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap());
        let second = Arc::new(first.open_session().unwrap());
        let marks = of(&first, "a");
        assert_eq!(marks.highest().await, Ok(0));
        of(&second, "b").reserve(7_000).await.unwrap();
        second.close().await;
        marks.reserve(5_000).await.unwrap();
        assert_eq!(marks.highest().await, Ok(7_000));
        first.set(&paths::mark("b"), b"{", None).await.unwrap();
        assert!(marks.highest().await.unwrap_err().reason.contains("/marks/b"), "a damaged one stops whoever has to know it");
    }

    #[tokio::test]
    async fn many_who_ask_at_once_share_a_look() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Arc::new(EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap());
        let marks = of(&coordinator, "a");
        marks.reserve(9).await.unwrap();
        let under_way = marks.highest.lock().await;
        let all = futures_util::future::join_all((0..50).map(|_| marks.highest()));
        let (all, ()) = tokio::join!(all, async { drop(under_way) });
        assert!(all.iter().all(|found| *found == Ok(9)));
        assert_eq!(marks.looks.load(Ordering::SeqCst), 1);
    }
}

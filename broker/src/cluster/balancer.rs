//! The balancer: of all brokers that stand for it the eldest gives the partitions of new queues to brokers, and removes queues that
//! are dropped. Where brokers share the store it gives partitions anew when brokers come and go ([`giving`](super::giving)).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hqueue_coordination::{
    CoordinationError, Coordinator, Node, NodeKind, SharedCoordinator, Watched, child_of, create_all, delete_tree,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::assignment::Assignment;
use super::giving::give_out;
use super::grace::Grace;
use super::lease::Lease;
use super::members::{Members, stand};
use super::pace::Pace;
use crate::catalog::{QueueRecord, QueueState};
use crate::data_folder::SessionBook;
use crate::paths;

/// Stands for election, and does the work when elected.
#[derive(Debug)]
pub struct Balancer {
    coordinator: SharedCoordinator,
    lease: Lease,
    members: Arc<Members>,
    book: Arc<SessionBook>,
    /// Any broker can have any partition.
    is_shared: bool,
    elected: AtomicBool,
    /// The node of our last candidacy: what was seen of the candidates may be older.
    candidate: Mutex<Option<String>>,
}

impl Balancer {
    #[must_use]
    pub fn new(coordinator: SharedCoordinator, members: Arc<Members>, book: Arc<SessionBook>, is_shared: bool) -> Self {
        let lease = Lease::new(&*coordinator);
        Self { coordinator, lease, members, book, is_shared, elected: AtomicBool::new(false), candidate: Mutex::default() }
    }

    /// We are the balancer, as seen last.
    #[must_use]
    pub fn is_elected(&self) -> bool {
        self.elected.load(Ordering::Relaxed) && self.lease.session().is_some()
    }

    /// Keeps at it until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut watched = Watched::until(Arc::clone(&self.coordinator), stop.clone());
        let mut pace = Pace::new("the balancer");
        let mut brokers = self.members.watch();
        let mut grace = Grace::default();
        loop {
            watched.begin();
            let session = self.lease.last_session();
            brokers.mark_unchanged();
            let tried = match session {
                Some(session) => self.look(&mut watched, session, &mut grace).await,
                None => Ok(None),
            };
            watched.end();
            let again = tried.as_ref().ok().copied().flatten();
            let wait = pace.after(&tried.map(drop));
            tokio::select! {
                changed = watched.changed() => if changed.is_err() { return },
                changed = brokers.changed() => if changed.is_err() { return },
                () = self.lease.other_than(session) => {}
                () = tokio::time::sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {}
                () = until(again) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Returns when to look again although nothing has changed.
    async fn look(&self, watched: &mut Watched, session: i64, grace: &mut Grace) -> Result<Option<Instant>, CoordinationError> {
        let elected = self.election(watched, session).await?;
        if self.elected.swap(elected, Ordering::Relaxed) != elected && elected {
            tracing::info!("this broker is the balancer now");
        }
        match (elected, self.is_shared) {
            (true, true) => give_out(&self.coordinator, &self.members, watched, grace).await,
            (true, false) => self.balance(watched).await.map(|()| None),
            (false, _) => {
                *grace = Grace::default();
                Ok(None)
            }
        }
    }

    /// True: our candidate is the eldest.
    async fn election(&self, watched: &mut Watched, session: i64) -> Result<bool, CoordinationError> {
        let ended = |_| CoordinationError::Closed;
        let names = watched.children(paths::BALANCER).await.map_err(ended)?.unwrap_or_default();
        let paths: Vec<String> = names.iter().map(|name| child_of(paths::BALANCER, name)).collect();
        paths.iter().for_each(|path| watched.expect_node(path));
        let mut first = None;
        let mut ours = false;
        for path in paths {
            let Some(node) = watched.node(&path).await.map_err(ended)? else { continue };
            let is_ours = node.owner_session == Some(session);
            if !is_ours && node.owner_session.is_some_and(|s| self.book.contains(s)) {
                // An earlier session of ours would be the eldest until it ends.
                self.remove(&path).await?;
                continue;
            }
            ours |= is_ours;
            first.get_or_insert(is_ours);
        }
        if !ours && !self.stands(session).await? {
            let path = stand(&self.coordinator, self.members.name()).await?;
            *self.candidate.lock().unwrap_or_else(PoisonError::into_inner) = Some(path);
        }
        Ok(ours && first == Some(true))
    }

    /// Stands no more: another one is the balancer, and gives away what we have.
    pub async fn leave(&self) {
        let last = self.candidate.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(path) = last
            && let Err(error) = self.remove(&path).await
        {
            tracing::debug!(path, "not removed, it goes with our session: {error}");
        }
    }

    /// Our last candidacy is of this session and still stands.
    async fn stands(&self, session: i64) -> Result<bool, CoordinationError> {
        let last = self.candidate.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(last) = last else { return Ok(false) };
        Ok(self.coordinator.get(&last).await?.is_some_and(|node| node.owner_session == Some(session)))
    }

    async fn remove(&self, path: &str) -> Result<(), CoordinationError> {
        match self.coordinator.delete(path, None).await {
            Ok(()) | Err(CoordinationError::NoNode(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn balance(&self, watched: &mut Watched) -> Result<(), CoordinationError> {
        let ended = |_| CoordinationError::Closed;
        let names = watched.children(paths::QUEUES).await.map_err(ended)?.unwrap_or_default();
        for name in &names {
            watched.expect_node(&paths::queue(name));
            watched.expect_node(&paths::assignment(name));
        }
        let mut loads: BTreeMap<String, usize> = self.members.brokers().keys().map(|name| (name.clone(), 0)).collect();
        let mut new = Vec::new();
        for name in names {
            let node = watched.node(&paths::queue(&name)).await.map_err(ended)?;
            let assigned = watched.node(&paths::assignment(&name)).await.map_err(ended)?;
            // Whoever serves the queue says what is wrong with a node that cannot be read.
            let Some(record) = node.as_ref().and_then(read_record) else { continue };
            match (record.state, assigned) {
                (QueueState::Dropping, _) => self.remove_dropped(watched, &name, record.partitions, node).await?,
                (_, Some(node)) => count(&mut loads, &node, record.partitions),
                (_, None) => new.push((name, record)),
            }
        }
        if loads.is_empty() {
            return Ok(());
        }
        for (name, record) in new {
            // What was seen may be old: a queue made anew since then may have another number of partitions.
            let now = self.coordinator.get(&paths::queue(&name)).await?;
            if now.as_ref().and_then(read_record).is_none_or(|now| now.uid != record.uid) {
                continue;
            }
            let assignment = Assignment::spread(record.partitions, &loads);
            match self.coordinator.create(&paths::assignment(&name), &assignment.to_payload(), NodeKind::Persistent).await {
                Ok(_) => tracing::info!(queue = name, brokers = ?assignment.counts(), "assigned"),
                // Another one was the balancer meanwhile, or the queue is gone.
                Err(CoordinationError::NodeExists(_) | CoordinationError::NoNode(_)) => {}
                Err(error) => return Err(error),
            }
            assignment.counts().into_iter().for_each(|(broker, n)| *loads.entry(broker).or_default() += n);
        }
        Ok(())
    }

    /// Removes the nodes of a queue that is dropped, once no broker holds a partition of it any more.
    async fn remove_dropped(
        &self,
        watched: &mut Watched,
        name: &str,
        partitions: i16,
        node: Option<Node>,
    ) -> Result<(), CoordinationError> {
        let owners: Vec<String> = (0..partitions).map(|p| paths::owner(name, p)).collect();
        owners.iter().for_each(|path| watched.expect_node(path));
        for path in &owners {
            if watched.node(path).await.map_err(|_| CoordinationError::Closed)?.is_some() {
                return Ok(());
            }
        }
        if let Some(node) = node
            && remove_queue_nodes(&*self.coordinator, name, &node).await?
        {
            tracing::info!(queue = name, "removed");
        }
        Ok(())
    }
}

/// Removes all nodes of a queue, if its own is still the one that was seen: one of the same name may have been made since, and is not to go
/// with it. False: it is not.
pub async fn remove_queue_nodes(coordinator: &dyn Coordinator, name: &str, seen: &Node) -> Result<bool, CoordinationError> {
    let path = paths::queue(name);
    match coordinator.set(&path, &seen.payload, Some(seen.version)).await {
        Ok(_) => {}
        Err(CoordinationError::BadVersion { .. } | CoordinationError::NoNode(_)) => return Ok(false),
        Err(error) => return Err(error),
    }
    delete_tree(coordinator, &path).await?;
    Ok(true)
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

pub(super) fn read_record(node: &Node) -> Option<QueueRecord> {
    serde_json::from_slice(&node.payload).ok()
}

fn count(loads: &mut BTreeMap<String, usize>, node: &Node, partitions: i16) {
    let Ok(assignment) = Assignment::from_payload(&node.payload, partitions) else { return };
    for (broker, n) in assignment.counts() {
        if let Some(load) = loads.get_mut(&broker) {
            *load += n;
        }
    }
}

/// Makes the nodes that everything stands below.
pub async fn make_roots(coordinator: &SharedCoordinator) -> Result<(), CoordinationError> {
    for path in [paths::BROKERS, paths::QUEUES, paths::BALANCER] {
        create_all(&**coordinator, path).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hqueue_coordination::embedded::EmbeddedCoordinator;
    use hqueue_storage::disk::RealDisk;

    use super::*;

    #[tokio::test]
    async fn a_queue_made_anew_does_not_go_with_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap();
        let path = paths::queue("q");
        create_all(&coordinator, paths::QUEUES).await.unwrap();
        coordinator.create(&path, b"old", NodeKind::Persistent).await.unwrap();
        coordinator.set(&path, b"dropping", None).await.unwrap();
        let seen = coordinator.get(&path).await.unwrap().unwrap();
        assert!(remove_queue_nodes(&coordinator, "q", &seen).await.unwrap());
        coordinator.create(&path, b"new", NodeKind::Persistent).await.unwrap();
        coordinator.create(&paths::assignment("q"), b"", NodeKind::Persistent).await.unwrap();
        assert!(!remove_queue_nodes(&coordinator, "q", &seen).await.unwrap());
        assert_eq!(coordinator.get(&path).await.unwrap().unwrap().payload, b"new");
        assert!(coordinator.get(&paths::assignment("q")).await.unwrap().is_some());
        coordinator.close().await;
    }
}

//! Reads that are remembered, so that whoever drew something from them is told when to draw it again.
//!
//! A function reads all that it needs through a [`Watched`], and makes the world as it should be by what it read. When anything
//! that it read has changed, it is run again, from the beginning. It never hears of single events, so it cannot miss any.

use std::collections::HashMap;
use std::pin::Pin;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{Node, Observed, SharedCoordinator};

/// The coordinator was closed, or the reader is to stop: nothing more will be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("coordination is closed, or the reader is to stop")]
pub struct Ended;

/// The nodes and lists of children that a function reads, each with its watch.
#[derive(Debug)]
pub struct Watched {
    coordinator: SharedCoordinator,
    stop: CancellationToken,
    nodes: HashMap<String, Entry<Option<Node>>>,
    children: HashMap<String, Entry<Option<Vec<String>>>>,
    run: u64,
}

#[derive(Debug)]
struct Entry<T> {
    receiver: watch::Receiver<Observed<T>>,
    /// The last run that read it.
    run: u64,
}

impl Watched {
    #[must_use]
    pub fn new(coordinator: SharedCoordinator) -> Self {
        Self::until(coordinator, CancellationToken::new())
    }

    /// One that waits for nothing any more from `stop` on: with the coordinator away, a first sight may never come.
    #[must_use]
    pub fn until(coordinator: SharedCoordinator, stop: CancellationToken) -> Self {
        Self { coordinator, stop, nodes: HashMap::new(), children: HashMap::new(), run: 0 }
    }

    /// Begins a run.
    pub fn begin(&mut self) {
        self.run += 1;
    }

    /// Ends a run: what it did not read is not watched any more.
    pub fn end(&mut self) {
        self.nodes.retain(|_, entry| entry.run == self.run);
        self.children.retain(|_, entry| entry.run == self.run);
    }

    /// The node as it is seen now; waits for the first sight of it.
    ///
    /// # Errors
    /// `Ended` when the coordinator is closed or the reader is to stop.
    pub async fn node(&mut self, path: &str) -> Result<Option<Node>, Ended> {
        self.expect_node(path);
        match self.nodes.get_mut(path) {
            Some(entry) => seen(&mut entry.receiver, &self.stop).await,
            None => Err(Ended),
        }
    }

    /// The names of the node's children, sorted; `None` if there is no such node.
    ///
    /// # Errors
    /// As of [`node`](Self::node).
    pub async fn children(&mut self, path: &str) -> Result<Option<Vec<String>>, Ended> {
        self.expect_children(path);
        match self.children.get_mut(path) {
            Some(entry) => seen(&mut entry.receiver, &self.stop).await,
            None => Err(Ended),
        }
    }

    /// Says that a node will be read in this run: several that are new are then fetched side by side.
    pub fn expect_node(&mut self, path: &str) {
        let run = self.run;
        if let Some(entry) = self.nodes.get_mut(path) {
            entry.run = run;
        } else {
            let receiver = self.coordinator.watch_node(path);
            self.nodes.insert(path.to_owned(), Entry { receiver, run });
        }
    }

    /// The same for a list of children.
    pub fn expect_children(&mut self, path: &str) {
        let run = self.run;
        if let Some(entry) = self.children.get_mut(path) {
            entry.run = run;
        } else {
            let receiver = self.coordinator.watch_children(path);
            self.children.insert(path.to_owned(), Entry { receiver, run });
        }
    }

    /// Waits until anything that the last run read has changed since it read it. With nothing to wait for it waits for ever.
    ///
    /// # Errors
    /// `Ended` when the coordinator is closed or the reader is to stop.
    pub async fn changed(&mut self) -> Result<(), Ended> {
        let nodes = self.nodes.values_mut().map(|entry| boxed(async { entry.receiver.changed().await.is_ok() }));
        let children = self.children.values_mut().map(|entry| boxed(async { entry.receiver.changed().await.is_ok() }));
        let mut any: FuturesUnordered<_> = nodes.chain(children).collect();
        match any.next().await {
            Some(true) => Ok(()),
            Some(false) => Err(Ended),
            None => std::future::pending().await,
        }
    }
}

fn boxed<'a>(future: impl Future<Output = bool> + Send + 'a) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
    Box::pin(future)
}

async fn seen<T: Clone>(receiver: &mut watch::Receiver<Observed<T>>, stop: &CancellationToken) -> Result<T, Ended> {
    loop {
        if let Observed::Seen(value) = &*receiver.borrow_and_update() {
            return Ok(value.clone());
        }
        tokio::select! {
            changed = receiver.changed() => changed.map_err(|_| Ended)?,
            () = stop.cancelled() => return Err(Ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use hqueue_storage::disk::RealDisk;

    use super::*;
    use crate::embedded::EmbeddedCoordinator;
    use crate::{Coordinator, NodeKind};

    fn coordinator(folder: &tempfile::TempDir) -> SharedCoordinator {
        Arc::new(EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap())
    }

    #[tokio::test]
    async fn what_was_read_wakes_and_what_was_not_read_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(&folder);
        let mut watched = Watched::new(Arc::clone(&coordinator));
        watched.begin();
        assert_eq!(watched.node("/a").await, Ok(None));
        assert_eq!(watched.children("/").await, Ok(Some(Vec::new())));
        watched.end();
        assert_eq!(watched.changed().now_or_never(), None);
        coordinator.create("/a", b"1", NodeKind::Persistent).await.unwrap();
        watched.changed().await.unwrap();
        watched.begin();
        assert_eq!(watched.children("/").await, Ok(Some(vec!["a".to_owned()])));
        watched.end();
        // The node was not read in the last run.
        coordinator.set("/a", b"2", None).await.unwrap();
        assert_eq!(watched.changed().now_or_never(), None);
        coordinator.create("/b", b"", NodeKind::Persistent).await.unwrap();
        watched.changed().await.unwrap();
    }

    #[tokio::test]
    async fn it_ends_with_the_coordinator() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = coordinator(&folder);
        let mut watched = Watched::new(Arc::clone(&coordinator));
        watched.begin();
        watched.node("/a").await.unwrap();
        watched.end();
        Coordinator::close(&*coordinator).await;
        assert_eq!(watched.changed().await, Err(Ended));
    }
}

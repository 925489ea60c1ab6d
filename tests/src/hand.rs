//! An administrator's hand in ZooKeeper, and subscribers that write their registrations themselves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{CoordinationError, Coordinator, Node, NodeKind, SharedCoordinator, create_all, delete_tree};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::message::Id;
use crate::wait::PATIENCE;

/// A session with ZooKeeper at a root; it ends with its value.
pub struct Hand {
    coordinator: Arc<ZooKeeperCoordinator>,
    runtime: Runtime,
}

impl fmt::Debug for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand").finish_non_exhaustive()
    }
}

/// What a subscriber writes for each of its partitions.
#[derive(Clone, Copy, Debug)]
pub struct Registered<'a> {
    pub queue: &'a str,
    pub partitions: i16,
    pub name: &'a str,
    /// Behind `address` and `topics`: empty for the first process.
    pub suffix: &'a str,
    pub address: &'a str,
    pub topics: &'a [&'a str],
    /// Where a checkpoint that is not there yet is put; `None`: an empty one.
    pub start: Option<Id>,
}

impl<'a> Registered<'a> {
    /// The first process of a name, for everything from the oldest message on.
    #[must_use]
    pub const fn new(queue: &'a str, partitions: i16, name: &'a str, address: &'a str) -> Self {
        let start = Some(Id { timestamp: 0, sequence: 0 });
        Self { queue, partitions, name, suffix: "", address, topics: &[], start }
    }
}

/// A checkpoint as a person writes it.
#[must_use]
pub fn checkpoint(id: Id) -> String {
    format!(r#"{{"timestamp": {}, "sequence": {}}}"#, id.timestamp, id.sequence)
}

impl Hand {
    /// A session at `HOST:PORT/root`.
    ///
    /// # Panics
    /// If there is none in time.
    #[must_use]
    pub fn at(zookeeper: &str) -> Self {
        Self::with_timeout(zookeeper, Duration::from_secs(30))
    }

    /// The same with a session that the server ends so long after it has heard nothing more.
    ///
    /// # Panics
    /// If there is none in time.
    #[must_use]
    pub fn with_timeout(zookeeper: &str, session_timeout: Duration) -> Self {
        let options = ZooKeeperOptions { session_timeout, ..ZooKeeperOptions::parse(zookeeper).expect("a connect string") };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let coordinator = Arc::new(ZooKeeperCoordinator::start(options));
        runtime.block_on(coordinator.connected(PATIENCE)).expect("ZooKeeper answers");
        Self { coordinator, runtime }
    }

    fn done<T>(&self, what: impl Future<Output = Result<T, CoordinationError>>) -> T {
        self.runtime.block_on(what).expect("ZooKeeper does it")
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn coordinator(&self) -> SharedCoordinator {
        Arc::clone(&self.coordinator) as SharedCoordinator
    }

    #[track_caller]
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Node> {
        self.done(self.coordinator.get(path))
    }

    /// The payload of a node.
    ///
    /// # Panics
    /// If there is no such node, or it holds no text.
    #[track_caller]
    #[must_use]
    pub fn text(&self, path: &str) -> String {
        let node = self.get(path).unwrap_or_else(|| panic!("there is no node {path}"));
        String::from_utf8(node.payload).expect("the payload is text")
    }

    /// The payload of a node, which is JSON.
    ///
    /// # Panics
    /// If there is no such node, or it holds something else.
    #[track_caller]
    #[must_use]
    pub fn json(&self, path: &str) -> Value {
        let text = self.text(path);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error} in {text:?}"))
    }

    /// The id in a checkpoint's node; `None`: there is no node, or it is empty.
    ///
    /// # Panics
    /// If it cannot be read.
    #[track_caller]
    #[must_use]
    pub fn checkpoint(&self, queue: &str, partition: i16, name: &str) -> Option<Id> {
        let node = self.get(&format!("/queues/{queue}/{partition}/{name}"))?;
        (!node.payload.is_empty()).then(|| read_checkpoint(&node.payload))
    }

    #[track_caller]
    #[must_use]
    pub fn children(&self, path: &str) -> Vec<String> {
        self.done(self.coordinator.children(path)).unwrap_or_default()
    }

    /// Writes a node that is there.
    #[track_caller]
    pub fn set(&self, path: &str, payload: impl AsRef<[u8]>) {
        self.done(self.coordinator.set(path, payload.as_ref(), None));
    }

    /// Makes a persistent node.
    #[track_caller]
    pub fn create(&self, path: &str, payload: impl AsRef<[u8]>) {
        self.done(self.coordinator.create(path, payload.as_ref(), NodeKind::Persistent));
    }

    /// Makes a node that goes with this session.
    #[track_caller]
    pub fn ephemeral(&self, path: &str, payload: impl AsRef<[u8]>) {
        self.done(self.coordinator.create(path, payload.as_ref(), NodeKind::Ephemeral));
    }

    #[track_caller]
    pub fn delete(&self, path: &str) {
        self.done(self.coordinator.delete(path, None));
    }

    /// Removes a node with everything below it.
    #[track_caller]
    pub fn delete_tree(&self, path: &str) {
        self.done(delete_tree(&*self.coordinator, path));
    }

    /// Every node below a path, with its own path, sorted.
    #[must_use]
    pub fn tree(&self, path: &str) -> Vec<(String, Node)> {
        let mut found = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let parent = if path == "/" { "" } else { &path };
            open.extend(self.children(&path).into_iter().map(|name| format!("{parent}/{name}")));
            if path != "/"
                && let Some(node) = self.get(&path)
            {
                found.push((path, node));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// Writes what a subscriber writes when it starts: topics before the address.
    #[track_caller]
    pub fn register(&self, registered: Registered<'_>) {
        let Registered { queue, partitions, name, suffix, address, topics, start } = registered;
        for partition in 0..partitions {
            let at = format!("/queues/{queue}/{partition}/{name}");
            self.done(create_all(&*self.coordinator, &format!("/queues/{queue}/{partition}")));
            let first = start.map(checkpoint).unwrap_or_default();
            match self.runtime.block_on(self.coordinator.create(&at, first.as_bytes(), NodeKind::Persistent)) {
                Ok(_) | Err(CoordinationError::NodeExists(_)) => {}
                Err(error) => panic!("{at}: {error}"),
            }
            self.ephemeral(&format!("{at}/topics{suffix}"), serde_json::json!(topics).to_string());
            self.ephemeral(&format!("{at}/address{suffix}"), address);
        }
    }

    /// Removes what [`register`](Self::register) wrote, addresses first. Checkpoints stay.
    #[track_caller]
    pub fn leave(&self, registered: Registered<'_>) {
        let Registered { queue, partitions, name, suffix, .. } = registered;
        for kind in ["address", "topics"] {
            for partition in 0..partitions {
                self.delete(&format!("/queues/{queue}/{partition}/{name}/{kind}{suffix}"));
            }
        }
    }

    /// Ends the session, and with it its nodes.
    pub fn close(self) {
        self.runtime.block_on(self.coordinator.close());
    }
}

/// # Panics
/// If it cannot be read.
#[track_caller]
pub(crate) fn read_checkpoint(payload: &[u8]) -> Id {
    let value: Value = serde_json::from_slice(payload).expect("a checkpoint is JSON");
    let number = |name: &str| value[name].as_i64().unwrap_or_else(|| panic!("no {name} in {value}"));
    Id { timestamp: number("timestamp"), sequence: i16::try_from(number("sequence")).expect("a sequence") }
}

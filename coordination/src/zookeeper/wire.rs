//! One connection to ZooKeeper as the rest of this module sees it: paths below our root, our rights on what is made, requests
//! counted. Only this file and `client.rs` name the client crate.

use std::sync::atomic::{AtomicU64, Ordering};

use zookeeper_async::{Acl, CreateMode, Stat, ZkError, ZooKeeper};

use super::root::Root;

/// Whether what is made belongs to the user who makes it, or to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    Creator,
    Everybody,
}

impl Rights {
    fn acl(self) -> Vec<Acl> {
        match self {
            Self::Creator => Acl::creator_all().clone(),
            Self::Everybody => Acl::open_unsafe().clone(),
        }
    }
}

/// The crate's client. Every method is one request, and none may be cancelled.
pub(super) struct Wire {
    zk: ZooKeeper,
    root: Root,
    rights: Rights,
    requests: AtomicU64,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("root", &self.root).field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(zk: ZooKeeper, root: Root, rights: Rights) -> Self {
        Self { zk, root, rights, requests: AtomicU64::new(0) }
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// How many requests this connection has carried.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// To be sent before anything else on this connection, and alone: its answer does not come in order.
    pub(super) async fn add_auth(&self, user: &str, password: &str) -> Result<(), ZkError> {
        self.count();
        self.zk.add_auth("digest", format!("{user}:{password}").into_bytes()).await
    }

    /// Returns the path below our root.
    pub(super) async fn create(&self, path: &str, payload: &[u8], mode: CreateMode) -> Result<(String, Stat), ZkError> {
        let (made, stat) = self.create_at(&self.root.full(path), payload, mode).await?;
        Ok((self.root.inner(&made).unwrap_or(&made).to_owned(), stat))
    }

    /// Makes a node at a path of ZooKeeper's own.
    pub(super) async fn create_at(&self, full: &str, payload: &[u8], mode: CreateMode) -> Result<(String, Stat), ZkError> {
        self.count();
        self.zk.create2(full, payload.to_vec(), self.rights.acl(), mode).await
    }

    pub(super) async fn exists(&self, path: &str, watch: bool) -> Result<Option<Stat>, ZkError> {
        self.count();
        self.zk.exists(&self.root.full(path), watch).await
    }

    pub(super) async fn get(&self, path: &str, watch: bool) -> Result<Option<(Vec<u8>, Stat)>, ZkError> {
        self.count();
        none_if_missing(self.zk.get_data(&self.root.full(path), watch).await)
    }

    pub(super) async fn set(&self, path: &str, payload: &[u8], version: Option<i32>) -> Result<Stat, ZkError> {
        self.count();
        self.zk.set_data(&self.root.full(path), payload.to_vec(), version).await
    }

    pub(super) async fn delete(&self, path: &str, version: Option<i32>) -> Result<(), ZkError> {
        self.count();
        self.zk.delete(&self.root.full(path), version).await
    }

    /// The names of the children that HQueue may see, in no order.
    pub(super) async fn children(&self, path: &str, watch: bool) -> Result<Option<Vec<String>>, ZkError> {
        self.count();
        let mut names = none_if_missing(self.zk.get_children(&self.root.full(path), watch).await)?;
        if let Some(names) = &mut names {
            self.root.hide_ours(path, names);
        }
        Ok(names)
    }

    /// Asks the server to end the session; returns when that is written.
    pub(super) async fn close(&self) -> Result<(), ZkError> {
        self.zk.close().await
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

fn none_if_missing<T>(answer: Result<T, ZkError>) -> Result<Option<T>, ZkError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ZkError::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

//! The calls of the trait as requests to ZooKeeper, one at a time, and what its answers mean.

use zookeeper_async::{CreateMode, ZkError};

use super::wire::Wire;
use crate::{CoordinationError as E, Created, Node, NodeKind, ROOT, check_path, parent_of, with_number};

pub(super) async fn create(wire: &Wire, path: &str, payload: &[u8], kind: NodeKind) -> Result<Created, E> {
    let Some(parent) = parent_of(path) else { return Err(E::NodeExists(path.to_owned())) };
    let mode = match kind {
        NodeKind::Persistent => CreateMode::Persistent,
        NodeKind::Ephemeral => CreateMode::Ephemeral,
        NodeKind::EphemeralSequential => {
            check_path(&with_number(path, 0))?;
            CreateMode::EphemeralSequential
        }
    };
    match wire.create(path, payload, mode).await {
        Ok((path, stat)) => Ok(Created { path, session: owner(stat.ephemeral_owner) }),
        Err(ZkError::NodeExists) => Err(E::NodeExists(path.to_owned())),
        Err(ZkError::NoNode) => Err(E::NoNode(parent.to_owned())),
        Err(ZkError::NoChildrenForEphemerals) => Err(E::EphemeralParent(parent.to_owned())),
        Err(error) => Err(failure(wire, path, error)),
    }
}

pub(super) async fn get(wire: &Wire, path: &str) -> Result<Option<Node>, E> {
    let found = wire.get(path, false).await.map_err(|error| failure(wire, path, error))?;
    Ok(found.map(|(payload, stat)| Node { payload, version: stat.version, owner_session: owner(stat.ephemeral_owner) }))
}

pub(super) async fn set(wire: &Wire, path: &str, payload: &[u8], version: Option<i32>) -> Result<i32, E> {
    if let Some(negative @ ..0) = version {
        return Err(bad_version(wire, path, negative).await);
    }
    match (wire.set(path, payload, version).await, version) {
        (Ok(stat), _) => Ok(stat.version),
        (Err(ZkError::NoNode), _) => Err(E::NoNode(path.to_owned())),
        (Err(ZkError::BadVersion), Some(wanted)) => Err(bad_version(wire, path, wanted).await),
        (Err(error), _) => Err(failure(wire, path, error)),
    }
}

pub(super) async fn delete(wire: &Wire, path: &str, version: Option<i32>) -> Result<(), E> {
    if path == ROOT {
        return Err(E::BadPath { path: ROOT.to_owned(), why: "the root cannot be deleted" });
    }
    if let Some(negative @ ..0) = version {
        return Err(bad_version(wire, path, negative).await);
    }
    match (wire.delete(path, version).await, version) {
        (Ok(()), _) => Ok(()),
        (Err(ZkError::NoNode), _) => Err(E::NoNode(path.to_owned())),
        (Err(ZkError::NotEmpty), _) => Err(E::NotEmpty(path.to_owned())),
        (Err(ZkError::BadVersion), Some(wanted)) => Err(bad_version(wire, path, wanted).await),
        (Err(error), _) => Err(failure(wire, path, error)),
    }
}

pub(super) async fn children(wire: &Wire, path: &str) -> Result<Option<Vec<String>>, E> {
    let mut names = wire.children(path, false).await.map_err(|error| failure(wire, path, error))?;
    if let Some(names) = &mut names {
        names.sort_unstable();
    }
    Ok(names)
}

/// The node's version is not the one wanted; -1, which ZooKeeper takes for any, is never sent.
async fn bad_version(wire: &Wire, path: &str, wanted: i32) -> E {
    match wire.exists(path, false).await {
        Ok(Some(stat)) => E::BadVersion { path: path.to_owned(), wanted, found: stat.version },
        Ok(None) => E::NoNode(path.to_owned()),
        Err(error) => failure(wire, path, error),
    }
}

/// The session that holds a node. What others made as a container or with a time to live has a number here that is none.
pub(super) fn owner(ephemeral_owner: i64) -> Option<i64> {
    const CONTAINER: i64 = i64::MIN;
    (ephemeral_owner != 0 && ephemeral_owner != CONTAINER).then_some(ephemeral_owner)
}

/// What is left: the connection ended, or the server refuses.
pub(super) fn failure(wire: &Wire, path: &str, error: ZkError) -> E {
    let full = wire.root().full(path);
    match error {
        ZkError::ConnectionLoss | ZkError::SessionExpired | ZkError::SessionMoved | ZkError::OperationTimeout => {
            E::Away(format!("the session with ZooKeeper ended ({error:?})"))
        }
        ZkError::NoAuth | ZkError::InvalidACL => {
            E::Failed(format!("ZooKeeper refuses {full}: this user has no right to it ({error:?})"))
        }
        _ => E::Failed(format!("ZooKeeper answers {error:?} for {full}")),
    }
}

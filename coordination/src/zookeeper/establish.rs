//! From a server that serves to a session that is held: rights first, then our root, then a node of our own that tells the
//! session's id.

use tokio::time::Instant;
use uuid::Uuid;
use zookeeper_async::{CreateMode, ZkError};

use super::root::SESSIONS;
use super::wire::Wire;
use crate::{ROOT, child_of};

/// Why there is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    /// It will not get better by itself.
    pub(super) lasts: bool,
}

impl Failure {
    pub(super) fn passing(why: impl Into<String>) -> Self {
        Self { why: why.into(), lasts: false }
    }

    pub(super) fn lasting(why: impl Into<String>) -> Self {
        Self { why: why.into(), lasts: true }
    }
}

/// A session that is ours.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: i64,
    /// Our own node, which heartbeats write.
    pub(super) node: String,
    /// When the request was sent that confirmed the session.
    pub(super) confirmed: Instant,
}

/// Makes the session ours. Making the node is a write, so this server has then seen all that was acknowledged to us by another
/// before: what we read does not go back.
pub(super) async fn establish(wire: &Wire, auth: Option<&(String, String)>) -> Result<Session, Failure> {
    if let Some((user, password)) = auth {
        wire.add_auth(user, password).await.map_err(|error| failure(auth, "authenticating", error))?;
    }
    make_root(wire, auth).await?;
    let node = child_of(SESSIONS, &Uuid::new_v4().simple().to_string());
    let confirmed = Instant::now();
    let made = wire.create(&node, &[], CreateMode::Ephemeral).await;
    let (_, stat) = made.map_err(|error| failure(auth, &format!("making {}", wire.root().full(&node)), error))?;
    Ok(Session { id: stat.ephemeral_owner, node, confirmed })
}

async fn make_root(wire: &Wire, auth: Option<&(String, String)>) -> Result<(), Failure> {
    let looking = |error| failure(auth, &format!("looking for {}", wire.root().full(SESSIONS)), error);
    if wire.exists(SESSIONS, false).await.map_err(looking)?.is_some() {
        return Ok(());
    }
    if wire.exists(ROOT, false).await.map_err(looking)?.is_none() {
        make_missing(wire, auth).await?;
    }
    make(wire, auth, &wire.root().full(SESSIONS)).await.map(|_| ())
}

/// Makes the root, and as many of its parents as are missing.
async fn make_missing(wire: &Wire, auth: Option<&(String, String)>) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for path in wire.root().with_parents() {
        if make(wire, auth, path).await? {
            break;
        }
        missing.push(path);
    }
    for path in missing.into_iter().rev() {
        make(wire, auth, path).await?;
    }
    Ok(())
}

/// `false`: its parent is missing.
async fn make(wire: &Wire, auth: Option<&(String, String)>, full: &str) -> Result<bool, Failure> {
    match wire.create_at(full, &[], CreateMode::Persistent).await {
        Ok(_) | Err(ZkError::NodeExists) => Ok(true),
        Err(ZkError::NoNode) => Ok(false),
        Err(error) => Err(failure(auth, &format!("making {full}"), error)),
    }
}

fn failure(auth: Option<&(String, String)>, what: &str, error: ZkError) -> Failure {
    match (error, auth) {
        (ZkError::NoAuth, Some((user, _))) => Failure::lasting(format!("{what}: the user {user:?} has no right to (NoAuth)")),
        (ZkError::NoAuth, None) => Failure::lasting(format!("{what}: no right to without a user (NoAuth)")),
        (ZkError::InvalidACL | ZkError::AuthFailed, _) => {
            Failure::lasting(format!("{what}: ZooKeeper does not accept the user and password ({error:?})"))
        }
        (ZkError::ConnectionLoss, _) => Failure::passing(format!("{what}: the connection ended")),
        _ => Failure::passing(format!("{what}: {error:?}")),
    }
}

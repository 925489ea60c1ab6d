//! The two nodes of an endpoint in a partition, `topics` and `address`: whose they are, which names are ours, writing and removing them.

use std::collections::BTreeSet;

use hqueue_coordination::{Claim, CoordinationError, Coordinator, Node, NodeKind, claim, remove_leftover};

/// A session of ours, with those that we had before.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    pub(super) now: i64,
    /// All in which we have written, the present one too.
    pub(super) all: BTreeSet<i64>,
}

impl Sessions {
    pub(super) fn begin(&mut self, session: i64) {
        self.now = session;
        self.all.insert(session);
    }

    pub(super) fn is_left(&self, node: &Node) -> bool {
        node.owner_session.is_some_and(|owner| owner != self.now && self.all.contains(&owner))
    }

    fn is_ours_now(&self, node: &Node) -> bool {
        node.owner_session == Some(self.now)
    }

    /// Ours, left by us, or nobody's.
    pub(super) fn can_have(&self, node: Option<&Node>) -> bool {
        node.is_none_or(|node| self.is_ours_now(node) || self.is_left(node))
    }
}

/// What stands in a node of ours, and whether it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) path: &'a str,
    pub(super) payload: &'a [u8],
    /// As it was seen last.
    pub(super) seen: Option<&'a Node>,
}

impl Wanted<'_> {
    fn is_there(&self, sessions: &Sessions) -> bool {
        self.seen.is_some_and(|node| sessions.is_ours_now(node) && node.payload == self.payload)
    }
}

/// The names of the nodes with this suffix: topics, address.
pub(super) fn names(base: &str, suffix: &str) -> [String; 2] {
    [format!("{base}/topics{suffix}"), format!("{base}/address{suffix}")]
}

/// Makes a node ours, with this payload. False: somebody else has it.
pub(super) async fn make(
    coordinator: &dyn Coordinator,
    sessions: &Sessions,
    wanted: Wanted<'_>,
) -> Result<bool, CoordinationError> {
    if wanted.is_there(sessions) {
        return Ok(true);
    }
    let Wanted { path, payload, .. } = wanted;
    match claim(coordinator, path, payload, |node| sessions.is_left(node)).await? {
        Claim::Held { .. } => Ok(true),
        Claim::Taken(node) if !sessions.is_ours_now(&node) => Ok(false),
        Claim::Taken(node) if node.payload == payload => Ok(true),
        Claim::Taken(node) => {
            tracing::warn!(path, "somebody has written over our node: it is put right");
            coordinator.set(path, payload, Some(node.version)).await.map(|_| true)
        }
    }
}

/// Removes a node if it is ours, of this session or an earlier one, and never a rival's.
pub(super) async fn remove(coordinator: &dyn Coordinator, sessions: &Sessions, path: &str) -> Result<(), CoordinationError> {
    let is_ours = |node: &Node| node.owner_session.is_some_and(|owner| sessions.all.contains(&owner));
    remove_leftover(coordinator, path, is_ours).await.map(drop)
}

/// Makes a subscriber's place in a partition, with this checkpoint, if it is missing. The queue's own node is never made.
pub(super) async fn make_place(
    coordinator: &dyn Coordinator,
    partition: &str,
    base: &str,
    checkpoint: &[u8],
) -> Result<(), CoordinationError> {
    for (path, payload) in [(partition, &[][..]), (base, checkpoint)] {
        match coordinator.create(path, payload, NodeKind::Persistent).await {
            Ok(_) | Err(CoordinationError::NodeExists(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! The simulated ensemble: nodes and sessions, as the servers have them. Time is the test's.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hqueue_coordination::{CoordinationError as E, Node, NodeKind};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Server {
    nodes: BTreeMap<String, Node>,
    sessions: HashMap<i64, Session>,
    last_session: i64,
}

#[derive(Debug)]
struct Session {
    timeout: Duration,
    expires: Instant,
}

impl Server {
    pub(super) fn begin_session(&mut self, timeout: Duration) -> i64 {
        self.last_session += 1;
        self.sessions.insert(self.last_session, Session { timeout, expires: Instant::now() + timeout });
        self.last_session
    }

    /// Ends sessions that have not been heard of, with their nodes.
    fn expire(&mut self) {
        let now = Instant::now();
        self.sessions.retain(|_, session| session.expires > now);
        let sessions = &self.sessions;
        self.nodes.retain(|_, node| node.owner_session.is_none_or(|owner| sessions.contains_key(&owner)));
    }

    /// A request of this session arrives.
    fn hear(&mut self, session: i64) -> Result<(), E> {
        self.expire();
        let session = self.sessions.get_mut(&session).ok_or_else(|| E::Away("the session has expired".to_owned()))?;
        session.expires = Instant::now() + session.timeout;
        Ok(())
    }

    pub(super) fn ping(&mut self, session: i64) -> Result<(), E> {
        self.hear(session)
    }

    pub(super) fn create(&mut self, session: i64, path: &str, payload: &[u8], kind: NodeKind) -> Result<(), E> {
        self.hear(session)?;
        if self.nodes.contains_key(path) {
            return Err(E::NodeExists(path.to_owned()));
        }
        let owner_session = (kind == NodeKind::Ephemeral).then_some(session);
        self.nodes.insert(path.to_owned(), Node { payload: payload.to_vec(), version: 0, owner_session });
        Ok(())
    }

    pub(super) fn get(&mut self, session: i64, path: &str) -> Result<Option<Node>, E> {
        self.hear(session)?;
        Ok(self.nodes.get(path).cloned())
    }

    pub(super) fn set(&mut self, session: i64, path: &str, payload: &[u8], version: Option<i32>) -> Result<i32, E> {
        self.hear(session)?;
        let node = self.nodes.get_mut(path).ok_or_else(|| E::NoNode(path.to_owned()))?;
        check(path, node, version)?;
        node.payload = payload.to_vec();
        node.version += 1;
        Ok(node.version)
    }

    pub(super) fn delete(&mut self, session: i64, path: &str, version: Option<i32>) -> Result<(), E> {
        self.hear(session)?;
        let node = self.nodes.get(path).ok_or_else(|| E::NoNode(path.to_owned()))?;
        check(path, node, version)?;
        self.nodes.remove(path);
        Ok(())
    }

    /// The session that holds a node now: what nobody in the system can know for certain, and the test does.
    pub(super) fn holder(&mut self, path: &str) -> Option<i64> {
        self.expire();
        self.nodes.get(path).and_then(|node| node.owner_session)
    }
}

fn check(path: &str, node: &Node, version: Option<i32>) -> Result<(), E> {
    match version {
        Some(wanted) if wanted != node.version => Err(E::BadVersion { path: path.to_owned(), wanted, found: node.version }),
        _ => Ok(()),
    }
}

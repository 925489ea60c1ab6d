//! Deciding what calls do, on a tree that nobody sees yet: their changes become visible together, once they are durable.

use std::collections::HashMap;
use std::sync::Arc;

use super::change::Change;
use super::tree::{Brief, Tree};
use crate::{CoordinationError, NodeKind, ROOT, check_path, parent_of, with_number};

/// A write that somebody asked for. Its path and payload are checked.
#[derive(Debug)]
pub(super) enum Write {
    Create { path: String, payload: Vec<u8>, kind: NodeKind },
    Set { path: String, payload: Vec<u8>, version: Option<i32> },
    Delete { path: String, version: Option<i32> },
}

impl Write {
    /// Of path and payload.
    pub(super) fn byte_len(&self) -> usize {
        match self {
            Self::Create { path, payload, .. } | Self::Set { path, payload, .. } => path.len() + payload.len(),
            Self::Delete { path, .. } => path.len(),
        }
    }
}

/// The node that a write left, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) path: Arc<str>,
    pub(super) owner: Option<i64>,
    pub(super) version: i32,
}

/// The tree as it will be after some writes.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    tree: &'a Tree,
    /// Nodes that the writes so far have touched; `None`: gone.
    touched: HashMap<Arc<str>, Option<Brief>>,
    changes: Vec<Change>,
    /// Why nothing can be kept, if so: then only ephemeral nodes may be written.
    unkept: Option<&'a CoordinationError>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(tree: &'a Tree, unkept: Option<&'a CoordinationError>) -> Self {
        Self { tree, touched: HashMap::new(), changes: Vec::new(), unkept }
    }

    /// The changes of the writes that were accepted, in order.
    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Accepts a write of `session`, or says why not; nothing has changed then.
    pub(super) fn write(&mut self, session: i64, write: &Write) -> Result<Written, CoordinationError> {
        match write {
            Write::Create { path, payload, kind } => self.create(session, path, payload, *kind),
            Write::Set { path, payload, version } => self.set(path, payload, *version),
            Write::Delete { path, version } => self.delete(path, *version),
        }
    }

    fn create(&mut self, session: i64, path: &str, payload: &[u8], kind: NodeKind) -> Result<Written, CoordinationError> {
        let Some(parent_path) = parent_of(path) else { return Err(CoordinationError::NodeExists(path.to_owned())) };
        let mut parent = self.find(parent_path)?;
        if parent.owner.is_some() {
            return Err(CoordinationError::EphemeralParent(parent_path.to_owned()));
        }
        let is_sequential = kind == NodeKind::EphemeralSequential;
        let path: Arc<str> = if is_sequential { with_number(path, parent.next_number).into() } else { path.into() };
        if is_sequential {
            check_path(&path)?;
        }
        if self.brief(&path).is_some() {
            return Err(CoordinationError::NodeExists(path.to_string()));
        }
        let owner = (kind != NodeKind::Persistent).then_some(session);
        if owner.is_none() || is_sequential {
            self.admit_kept()?;
        }
        if is_sequential {
            let next = parent.next_number.checked_add(1);
            parent.next_number = next.ok_or_else(|| CoordinationError::Failed(format!("{parent_path} has no numbers left")))?;
            self.changes.push(Change::Number { path: parent_path.into(), next: parent.next_number });
        }
        parent.children += 1;
        self.touched.insert(parent_path.into(), Some(parent));
        self.touched.insert(Arc::clone(&path), Some(Brief { version: 0, owner, children: 0, next_number: 0 }));
        self.changes.push(Change::Create { path: Arc::clone(&path), payload: payload.to_vec(), version: 0, owner });
        Ok(Written { path, owner, version: 0 })
    }

    fn set(&mut self, path: &str, payload: &[u8], version: Option<i32>) -> Result<Written, CoordinationError> {
        let mut node = self.find_version(path, version)?;
        if node.owner.is_none() {
            self.admit_kept()?;
        }
        let path: Arc<str> = path.into();
        let (kept, owner) = (node.owner.is_none(), node.owner);
        node.version = node.version.checked_add(1).unwrap_or(0);
        self.touched.insert(Arc::clone(&path), Some(node));
        self.changes.push(Change::Set { path: Arc::clone(&path), payload: payload.to_vec(), version: node.version, kept });
        Ok(Written { path, owner, version: node.version })
    }

    fn delete(&mut self, path: &str, version: Option<i32>) -> Result<Written, CoordinationError> {
        let Some(parent_path) = parent_of(path) else {
            return Err(CoordinationError::BadPath { path: ROOT.to_owned(), why: "the root cannot be deleted" });
        };
        let node = self.find_version(path, version)?;
        if node.children > 0 {
            return Err(CoordinationError::NotEmpty(path.to_owned()));
        }
        if node.owner.is_none() {
            self.admit_kept()?;
        }
        let mut parent = self.find(parent_path)?;
        parent.children = parent.children.saturating_sub(1);
        let path: Arc<str> = path.into();
        self.touched.insert(parent_path.into(), Some(parent));
        self.touched.insert(Arc::clone(&path), None);
        self.changes.push(Change::Delete { path: Arc::clone(&path), kept: node.owner.is_none() });
        Ok(Written { path, owner: node.owner, version: node.version })
    }

    fn admit_kept(&self) -> Result<(), CoordinationError> {
        self.unkept.map_or(Ok(()), |why| Err(why.clone()))
    }

    fn brief(&self, path: &str) -> Option<Brief> {
        match self.touched.get(path) {
            Some(touched) => *touched,
            None => self.tree.brief(path),
        }
    }

    fn find(&self, path: &str) -> Result<Brief, CoordinationError> {
        self.brief(path).ok_or_else(|| CoordinationError::NoNode(path.to_owned()))
    }

    fn find_version(&self, path: &str, wanted: Option<i32>) -> Result<Brief, CoordinationError> {
        let node = self.find(path)?;
        match wanted {
            Some(wanted) if wanted != node.version => {
                Err(CoordinationError::BadVersion { path: path.to_owned(), wanted, found: node.version })
            }
            _ => Ok(node),
        }
    }
}

//! The tree in memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::change::{Change, Push, encode_create, encode_number, encode_set};
use crate::{Node, ROOT, child_of, name_of, parent_of};

/// All nodes by their path. The root is always there.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: HashMap<Arc<str>, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    payload: Vec<u8>,
    version: i32,
    owner: Option<i64>,
    children: BTreeSet<Box<str>>,
    next_number: u32,
}

/// What decides whether something may be done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Brief {
    pub(super) version: i32,
    pub(super) owner: Option<i64>,
    pub(super) children: usize,
    pub(super) next_number: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: HashMap::from([(ROOT.into(), Entry::default())]) }
    }
}

impl Tree {
    pub(super) fn get(&self, path: &str) -> Option<Node> {
        let entry = self.nodes.get(path)?;
        Some(Node { payload: entry.payload.clone(), version: entry.version, owner_session: entry.owner })
    }

    /// Sorted.
    pub(super) fn children(&self, path: &str) -> Option<Vec<String>> {
        let entry = self.nodes.get(path)?;
        Some(entry.children.iter().map(|name| name.clone().into_string()).collect())
    }

    pub(super) fn brief(&self, path: &str) -> Option<Brief> {
        let Entry { version, owner, children, next_number, .. } = self.nodes.get(path)?;
        Some(Brief { version: *version, owner: *owner, children: children.len(), next_number: *next_number })
    }

    /// Nodes without the root.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// The ephemeral nodes of a session.
    pub(super) fn held_by(&self, session: i64) -> Vec<Arc<str>> {
        let held = self.nodes.iter().filter(|(_, entry)| entry.owner == Some(session));
        held.map(|(path, _)| Arc::clone(path)).collect()
    }

    /// Carries out a change; the error says why it does not fit the tree.
    pub(super) fn apply(&mut self, change: Change) -> Result<(), String> {
        match change {
            Change::Create { path, payload, version, owner } => {
                if self.nodes.contains_key(&path) {
                    return Err(format!("node {path} is created but exists"));
                }
                let parent = parent_of(&path).and_then(|parent| self.nodes.get_mut(parent));
                let parent = parent.ok_or_else(|| format!("node {path} is created without a parent"))?;
                parent.children.insert(name_of(&path).into());
                self.nodes.insert(path, Entry { payload, version, owner, ..Entry::default() });
            }
            Change::Set { path, payload, version, .. } => {
                let entry = self.nodes.get_mut(&path).ok_or_else(|| format!("node {path} is set but does not exist"))?;
                entry.payload = payload;
                entry.version = version;
            }
            Change::Delete { path, .. } => {
                let is_leaf = self.nodes.get(&path).is_some_and(|entry| entry.children.is_empty());
                let parent = parent_of(&path).filter(|_| is_leaf).and_then(|parent| self.nodes.get_mut(parent));
                let parent = parent.ok_or_else(|| format!("node {path} is deleted but does not exist or has children"))?;
                parent.children.remove(name_of(&path));
                self.nodes.remove(&path);
            }
            Change::Number { path, next } => {
                let entry = self.nodes.get_mut(&path).ok_or_else(|| format!("node {path} is numbered but does not exist"))?;
                entry.next_number = next;
            }
        }
        Ok(())
    }

    /// Hands over the records that make the persistent part of this tree out of an empty one.
    pub(super) fn snapshot(&self, push: Push<'_>) {
        let mut waiting = vec![ROOT.to_owned()];
        while let Some(path) = waiting.pop() {
            let Some(entry) = self.nodes.get(path.as_str()).filter(|entry| entry.owner.is_none()) else { continue };
            if path != ROOT {
                encode_create(&path, entry.version, &entry.payload, push);
            } else if entry.version != 0 {
                encode_set(&path, entry.version, &entry.payload, push);
            }
            if entry.next_number != 0 {
                encode_number(&path, entry.next_number, push);
            }
            waiting.extend(entry.children.iter().map(|name| child_of(&path, name)));
        }
    }
}

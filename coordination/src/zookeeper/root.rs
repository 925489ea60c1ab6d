//! The node of ZooKeeper that is `/` to HQueue. The prefix is ours and not the client crate's: below one of its own the crate
//! loses watches on the root.

use crate::{CoordinationError, ROOT, check_path, parent_of};

/// Below the root: a node for every session, written at each heartbeat. Not visible through the trait.
pub(super) const SESSIONS: &str = "/.sessions";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    /// Empty if it is ZooKeeper's own root.
    prefix: String,
}

impl Root {
    /// `root` was checked as a path.
    pub(super) fn new(root: &str) -> Self {
        Self { prefix: if root == ROOT { String::new() } else { root.to_owned() } }
    }

    /// The path in ZooKeeper.
    pub(super) fn full(&self, path: &str) -> String {
        match (path, self.prefix.as_str()) {
            (ROOT, "") => ROOT.to_owned(),
            (ROOT, prefix) => prefix.to_owned(),
            (path, prefix) => format!("{prefix}{path}"),
        }
    }

    /// The path below the root, if it is one.
    pub(super) fn inner<'a>(&self, full: &'a str) -> Option<&'a str> {
        match full.strip_prefix(&self.prefix)? {
            "" => Some(ROOT),
            inner if inner.starts_with('/') => Some(inner),
            _ => None,
        }
    }

    /// The root and its parents in ZooKeeper, lowest first.
    pub(super) fn with_parents(&self) -> impl Iterator<Item = &str> {
        let lowest = Some(self.prefix.as_str()).filter(|prefix| !prefix.is_empty());
        std::iter::successors(lowest, |path| parent_of(path).filter(|parent| *parent != ROOT))
    }

    /// Removes from the children of `path` what is not HQueue's business.
    pub(super) fn hide_ours(&self, path: &str, names: &mut Vec<String>) {
        if path == ROOT {
            names.retain(|name| {
                Some(name.as_str()) != SESSIONS.strip_prefix('/') && (name != "zookeeper" || !self.prefix.is_empty())
            });
        }
    }
}

/// A path that upper layers may use.
pub(super) fn check(path: &str) -> Result<(), CoordinationError> {
    check_path(path)?;
    match path.strip_prefix(SESSIONS) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            Err(CoordinationError::BadPath { path: path.to_owned(), why: "`/.sessions` belongs to the coordinator itself" })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_below_the_root_and_taken_back() {
        for (root, path, full) in
            [("/", "/", "/"), ("/", "/a", "/a"), ("/r", "/", "/r"), ("/r/s", "/a/b", "/r/s/a/b"), ("/r", "/r", "/r/r")]
        {
            let root = Root::new(root);
            assert_eq!(root.full(path), full);
            assert_eq!(root.inner(full), Some(path));
        }
        assert_eq!(Root::new("/r").inner("/rs"), None);
        assert_eq!(Root::new("/r").inner("/other"), None);
    }

    #[test]
    fn the_parents_of_the_root_are_known() {
        let root = Root::new("/a/b/c");
        assert_eq!(root.with_parents().collect::<Vec<_>>(), ["/a/b/c", "/a/b", "/a"]);
        assert_eq!(Root::new("/").with_parents().count(), 0);
    }

    #[test]
    fn what_is_not_hqueues_is_hidden() {
        let all = || ["zookeeper", ".sessions", "queues"].map(str::to_owned).to_vec();
        let seen = |root: &str, path: &str| {
            let mut names = all();
            Root::new(root).hide_ours(path, &mut names);
            names
        };
        assert_eq!(seen("/", "/"), ["queues"]);
        assert_eq!(seen("/r", "/"), ["zookeeper", "queues"]);
        assert_eq!(seen("/r", "/queues"), all());
        assert!(check("/.sessions").is_err() && check("/.sessions/a").is_err());
        assert_eq!(check("/.sessions2"), Ok(()));
        assert_eq!(check("/a/.sessions"), Ok(()));
    }
}

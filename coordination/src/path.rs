//! What a path may look like, the same for every implementation: what ZooKeeper refuses or mishandles is refused here, before anything
//! is sent or written.

use crate::CoordinationError;

/// A path is at most so long. Bytes.
pub const MAX_PATH_BYTES: usize = 1024;

/// The root of the tree.
pub const ROOT: &str = "/";

/// Checks a path: `/`, or names after one slash each. A name is of printable ASCII (space to `~`) without a slash and neither `.` nor
/// `..`; the first is not `zookeeper`, which is ZooKeeper's own where its root is ours. At most [`MAX_PATH_BYTES`].
///
/// # Errors
/// `BadPath` with the reason.
pub fn check_path(path: &str) -> Result<(), CoordinationError> {
    match fault_of(path) {
        None => Ok(()),
        Some(why) => Err(CoordinationError::BadPath { path: shortened(path), why }),
    }
}

/// The path of the parent; `None` for the root.
#[must_use]
pub fn parent_of(path: &str) -> Option<&str> {
    match path.rsplit_once('/') {
        Some(("", "")) | None => None,
        Some(("", _)) => Some(ROOT),
        Some((parent, _)) => Some(parent),
    }
}

/// The last name of a path; empty for the root.
#[must_use]
pub fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The path of a child.
#[must_use]
pub fn child_of(parent: &str, name: &str) -> String {
    if parent == ROOT { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// The path of a sequential node: the number has ten digits, as in ZooKeeper.
#[must_use]
pub fn with_number(path: &str, number: u32) -> String {
    format!("{path}{number:010}")
}

fn fault_of(path: &str) -> Option<&'static str> {
    if path.len() > MAX_PATH_BYTES {
        return Some("it has more than 1024 bytes");
    }
    if path == ROOT {
        return None;
    }
    let Some(names) = path.strip_prefix('/') else {
        return Some("it does not begin with a slash");
    };
    if !path.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Some("only printable ASCII is allowed");
    }
    if path.ends_with('/') {
        return Some("it ends with a slash");
    }
    names.split('/').enumerate().find_map(|(depth, name)| match name {
        "" => Some("it has an empty name"),
        "." | ".." => Some("`.` and `..` are no names"),
        "zookeeper" if depth == 0 => Some("`/zookeeper` belongs to ZooKeeper"),
        _ => None,
    })
}

/// For an error text: a hostile path may be of any length.
fn shortened(path: &str) -> String {
    const SHOWN: usize = 200;
    if path.chars().nth(SHOWN).is_none() {
        return path.to_owned();
    }
    path.chars().take(SHOWN).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hqueue_writes_is_allowed() {
        for path in
            ["/", "/queues", "/queues/q1.dlq/31/s_1-a/address-72057594037927936", "/brokers/a b~!", "/x/zookeeper", "/..."]
        {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        assert_eq!(check_path(&format!("/{}", "x".repeat(MAX_PATH_BYTES - 1))), Ok(()));
    }

    #[test]
    fn a_refusal_says_why_and_stays_short() {
        let long = "x".repeat(5000);
        let Err(CoordinationError::BadPath { path, why }) = check_path(&long) else { panic!("accepted") };
        assert_eq!((path.len(), why), (203, "it has more than 1024 bytes"));
    }

    #[test]
    fn paths_are_taken_apart_and_put_together() {
        assert_eq!((parent_of("/"), name_of("/")), (None, ""));
        assert_eq!((parent_of("/a"), name_of("/a")), (Some("/"), "a"));
        assert_eq!((parent_of("/a/b"), name_of("/a/b")), (Some("/a"), "b"));
        assert_eq!(child_of("/", "a"), "/a");
        assert_eq!(child_of("/a", "b"), "/a/b");
        assert_eq!(with_number("/balancer/n-", 7), "/balancer/n-0000000007");
    }
}

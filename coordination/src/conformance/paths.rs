//! Paths: one rule for all implementations.

use super::{Harness, make, node};
use crate::{CoordinationError as E, MAX_PATH_BYTES, NodeKind};

const HOSTILE: &[&str] = &[
    "",
    "n",
    "n/m",
    "//",
    "//n",
    "/n/",
    "/n//m",
    "/.",
    "/..",
    "/../n",
    "/n/..",
    "/n/./m",
    "/n\0",
    "/n\0m",
    "/n\nm",
    "/n\r",
    "/\t",
    "/\u{1}",
    "/\u{1f}",
    "/\u{7f}",
    "/\u{80}",
    "/\u{9f}",
    "/é",
    "/e\u{301}",
    "/名",
    "/\u{1f980}",
    "/\u{e000}",
    "/\u{feff}",
    "/\u{fff0}",
    "/\u{ffff}",
    "/zookeeper",
    "/zookeeper/quota",
];

fn is_refused<T>(answer: Result<T, E>, path: &str) -> bool {
    matches!(answer, Err(E::BadPath { path: named, why }) if path.starts_with(named.trim_end_matches("...")) && !why.is_empty())
}

pub async fn hostile_paths_are_refused<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    let too_long = format!("/{}", "x".repeat(MAX_PATH_BYTES));
    for path in HOSTILE.iter().copied().chain([too_long.as_str()]) {
        for kind in [NodeKind::Persistent, NodeKind::Ephemeral, NodeKind::EphemeralSequential] {
            assert!(is_refused(c.create(path, b"", kind).await, path), "create {path:?}");
        }
        assert!(is_refused(c.get(path).await, path), "get {path:?}");
        assert!(is_refused(c.set(path, b"", None).await, path), "set {path:?}");
        assert!(is_refused(c.delete(path, None).await, path), "delete {path:?}");
        assert!(is_refused(c.children(path).await, path), "children {path:?}");
    }
    assert_eq!(c.children("/").await.unwrap(), Some(vec!["n".to_owned()]));
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"a", 0)));
}

pub async fn a_number_does_not_make_a_path_too_long<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let fits = format!("/{}", "x".repeat(MAX_PATH_BYTES - 11));
    let created = c.create(&fits, b"", NodeKind::EphemeralSequential).await.unwrap();
    assert_eq!(created.path.len(), MAX_PATH_BYTES);
    let too_long = format!("/{}", "y".repeat(MAX_PATH_BYTES - 10));
    assert!(matches!(c.create(&too_long, b"", NodeKind::EphemeralSequential).await, Err(E::BadPath { .. })));
}

pub async fn what_can_be_made_can_be_listed_and_deleted<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let longest = "x".repeat(MAX_PATH_BYTES - 1);
    let mut names = ["%2f", "a b", " ", "...", "..a", "~", "zookeeper2", "a'\"\\$&|;<>", "CON", longest.as_str()];
    names.sort_unstable();
    for name in names {
        make(&*c, &format!("/{name}"), name.as_bytes()).await;
    }
    assert_eq!(c.children("/").await.unwrap(), Some(names.map(str::to_owned).to_vec()));
    for name in names {
        let path = format!("/{name}");
        assert_eq!(c.get(&path).await.unwrap(), Some(node(name.as_bytes(), 0)), "{path}");
        c.delete(&path, Some(0)).await.unwrap();
    }
    assert_eq!(c.children("/").await.unwrap(), Some(vec![]));
}

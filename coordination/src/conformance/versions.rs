//! Versions: which write is meant to be replaced.

use super::{Harness, make, node};
use crate::{CoordinationError as E, NodeKind};

pub async fn versions_count_writes_from_zero<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    for version in 0..5 {
        assert_eq!(c.set("/n", b"a", Some(version)).await, Ok(version + 1));
    }
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"a", 5)));
}

pub async fn a_wrong_version_changes_nothing<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    c.set("/n", b"b", Some(0)).await.unwrap();
    for wanted in [0, 2, i32::MAX] {
        let refused = E::BadVersion { path: "/n".to_owned(), wanted, found: 1 };
        assert_eq!(c.set("/n", b"c", Some(wanted)).await, Err(refused.clone()));
        assert_eq!(c.delete("/n", Some(wanted)).await, Err(refused));
    }
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"b", 1)));
    c.delete("/n", Some(1)).await.unwrap();
    assert_eq!(c.get("/n").await.unwrap(), None);
}

/// In ZooKeeper -1 stands for any version.
pub async fn a_negative_version_matches_nothing<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    for wanted in [-1, i32::MIN] {
        let refused = E::BadVersion { path: "/n".to_owned(), wanted, found: 0 };
        assert_eq!(c.set("/n", b"b", Some(wanted)).await, Err(refused.clone()));
        assert_eq!(c.delete("/n", Some(wanted)).await, Err(refused));
    }
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"a", 0)));
}

pub async fn without_a_version_any_is_replaced<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    for version in 1..=3 {
        assert_eq!(c.set("/n", b"b", None).await, Ok(version));
    }
    assert_eq!(c.delete("/n", None).await, Ok(()));
}

pub async fn a_node_made_anew_starts_at_zero<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    c.set("/n", b"b", None).await.unwrap();
    c.delete("/n", Some(1)).await.unwrap();
    make(&*c, "/n", b"c").await;
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"c", 0)));
    assert_eq!(c.set("/n", b"d", Some(0)).await, Ok(1));
}

pub async fn children_leave_the_version_of_their_parent<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"a").await;
    make(&*c, "/p/n", b"").await;
    c.set("/p/n", b"x", None).await.unwrap();
    c.create("/p/s-", b"", NodeKind::EphemeralSequential).await.unwrap();
    c.delete("/p/n", None).await.unwrap();
    assert_eq!(c.get("/p").await.unwrap(), Some(node(b"a", 0)));
    assert_eq!(c.set("/p", b"b", Some(0)).await, Ok(1));
}

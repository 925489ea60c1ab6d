//! `create_all` and `delete_tree`.

use tokio::task::JoinSet;

use super::{Harness, make, node};
use crate::{CoordinationError as E, NodeKind, create_all, delete_tree};

pub async fn missing_parents_are_made<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    create_all(&*c, "/").await.unwrap();
    make(&*c, "/a", b"kept").await;
    create_all(&*c, "/a/b/c/d").await.unwrap();
    create_all(&*c, "/a/b/c/d").await.unwrap();
    create_all(&*c, "/a").await.unwrap();
    assert_eq!(c.get("/a").await.unwrap(), Some(node(b"kept", 0)));
    assert_eq!(c.get("/a/b/c/d").await.unwrap(), Some(node(b"", 0)));
    c.create("/a/e", b"", NodeKind::Ephemeral).await.unwrap();
    assert_eq!(create_all(&*c, "/a/e/x/y").await, Err(E::EphemeralParent("/a/e".to_owned())));
    assert!(matches!(create_all(&*c, "/a//b").await, Err(E::BadPath { .. })));
}

pub async fn parents_are_made_by_many_at_once<H: Harness>() {
    let harness = H::start().await;
    let mut tasks = JoinSet::new();
    for n in 0..32 {
        let c = harness.coordinator();
        tasks.spawn(async move { create_all(&*c, &format!("/a/b/{}", n % 4)).await.unwrap() });
    }
    tasks.join_all().await;
    let names = ["0", "1", "2", "3"].map(str::to_owned).to_vec();
    assert_eq!(harness.coordinator().children("/a/b").await.unwrap(), Some(names));
}

pub async fn a_subtree_is_removed_whole<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    for path in ["/a", "/a-sibling", "/ab"] {
        make(&*c, path, b"").await;
    }
    for n in 0..70 {
        create_all(&*c, &format!("/a/{n}/x/y")).await.unwrap();
        c.create(&format!("/a/{n}/e"), b"", NodeKind::Ephemeral).await.unwrap();
    }
    delete_tree(&*c, "/a").await.unwrap();
    assert_eq!(c.children("/").await.unwrap(), Some(vec!["a-sibling".to_owned(), "ab".to_owned()]));
    delete_tree(&*c, "/a").await.unwrap();
    delete_tree(&*c, "/ab").await.unwrap();
    assert_eq!(c.get("/ab").await.unwrap(), None);
}

pub async fn a_subtree_is_removed_by_two_at_once<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    for n in 0..40 {
        create_all(&*c, &format!("/a/{n}/x")).await.unwrap();
    }
    let (first, second) = tokio::join!(delete_tree(&*c, "/a"), delete_tree(&*c, "/a"));
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(c.children("/").await.unwrap(), Some(vec![]));
}

//! Nodes: made, read, written, listed, removed.

use super::{Harness, make, node};
use crate::{CoordinationError as E, MAX_PAYLOAD_BYTES, NodeKind};

pub async fn the_root_is_always_there<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    assert!(c.get("/").await.unwrap().is_some());
    assert_eq!(c.children("/").await.unwrap(), Some(vec![]));
    assert_eq!(c.create("/", b"", NodeKind::Persistent).await, Err(E::NodeExists("/".to_owned())));
    assert!(matches!(c.delete("/", None).await, Err(E::BadPath { .. })));
}

pub async fn a_created_node_is_read_back<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let payload: Vec<u8> = (0..=255).collect();
    make(&*c, "/n", &payload).await;
    assert_eq!(c.get("/n").await.unwrap(), Some(node(&payload, 0)));
    assert_eq!(c.children("/n").await.unwrap(), Some(vec![]));
}

pub async fn an_empty_payload_stays_empty<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"").await;
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"", 0)));
    c.set("/n", b"x", None).await.unwrap();
    c.set("/n", b"", None).await.unwrap();
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"", 2)));
}

pub async fn what_exists_is_not_created_again<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"first").await;
    for kind in [NodeKind::Persistent, NodeKind::Ephemeral] {
        assert_eq!(c.create("/n", b"second", kind).await, Err(E::NodeExists("/n".to_owned())));
    }
    assert_eq!(c.get("/n").await.unwrap(), Some(node(b"first", 0)));
}

pub async fn a_parent_must_exist<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    for kind in [NodeKind::Persistent, NodeKind::Ephemeral, NodeKind::EphemeralSequential] {
        assert_eq!(c.create("/p/n", b"", kind).await, Err(E::NoNode("/p".to_owned())));
    }
    make(&*c, "/p", b"").await;
    make(&*c, "/p/n", b"").await;
}

pub async fn what_is_not_there_is_told_apart<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    assert_eq!(c.get("/n").await, Ok(None));
    assert_eq!(c.children("/n").await, Ok(None));
    for version in [None, Some(0)] {
        assert_eq!(c.set("/n", b"", version).await, Err(E::NoNode("/n".to_owned())));
        assert_eq!(c.delete("/n", version).await, Err(E::NoNode("/n".to_owned())));
    }
}

pub async fn children_are_names_in_order<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    make(&*c, "/p-sibling", b"").await;
    for name in ["b", "a", "B", "10", "2", "a-b", "a b"] {
        make(&*c, &format!("/p/{name}"), b"").await;
    }
    make(&*c, "/p/a/below", b"").await;
    let names = ["10", "2", "B", "a", "a b", "a-b", "b"].map(str::to_owned).to_vec();
    assert_eq!(c.children("/p").await.unwrap(), Some(names));
    assert_eq!(c.children("/").await.unwrap(), Some(vec!["p".to_owned(), "p-sibling".to_owned()]));
}

pub async fn a_node_with_children_is_not_deleted<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"kept").await;
    make(&*c, "/p/n", b"").await;
    assert_eq!(c.delete("/p", None).await, Err(E::NotEmpty("/p".to_owned())));
    assert_eq!(c.get("/p").await.unwrap(), Some(node(b"kept", 0)));
    c.delete("/p/n", None).await.unwrap();
    c.delete("/p", None).await.unwrap();
    assert_eq!(c.get("/p").await.unwrap(), None);
}

pub async fn a_deleted_node_is_gone<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    make(&*c, "/p/n", b"").await;
    c.delete("/p/n", None).await.unwrap();
    assert_eq!(c.get("/p/n").await.unwrap(), None);
    assert_eq!(c.children("/p").await.unwrap(), Some(vec![]));
    assert_eq!(c.delete("/p/n", None).await, Err(E::NoNode("/p/n".to_owned())));
}

pub async fn a_payload_has_a_limit<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let largest = vec![7; MAX_PAYLOAD_BYTES];
    let larger = vec![8; MAX_PAYLOAD_BYTES + 1];
    let refused = |path: &str| E::TooLarge { path: path.to_owned(), size: MAX_PAYLOAD_BYTES + 1 };
    make(&*c, "/n", &largest).await;
    assert_eq!(c.set("/n", &larger, None).await, Err(refused("/n")));
    assert_eq!(c.get("/n").await.unwrap(), Some(node(&largest, 0)));
    assert_eq!(c.set("/n", &largest, None).await, Ok(1));
    for kind in [NodeKind::Persistent, NodeKind::Ephemeral] {
        assert_eq!(c.create("/m", &larger, kind).await, Err(refused("/m")));
    }
    assert_eq!(c.get("/m").await.unwrap(), None);
}

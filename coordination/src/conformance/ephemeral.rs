//! Ephemeral nodes: they go with their session.

use super::{Harness, make, node, reaches, second_session, session_id, shows};
use crate::{CoordinationError as E, Coordinator, Node, NodeKind};

async fn make_ephemeral(coordinator: &dyn Coordinator, path: &str, payload: &[u8]) {
    let created = coordinator.create(path, payload, NodeKind::Ephemeral).await.unwrap();
    assert_eq!((created.path.as_str(), created.session), (path, Some(session_id(coordinator))));
}

pub async fn an_ephemeral_node_names_its_session<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make_ephemeral(&*c, "/e", b"mine").await;
    let owner_session = Some(session_id(&*c));
    assert_eq!(c.get("/e").await.unwrap(), Some(Node { payload: b"mine".to_vec(), version: 0, owner_session }));
    assert_eq!(c.set("/e", b"still", Some(0)).await, Ok(1));
    assert_eq!(c.get("/e").await.unwrap(), Some(Node { payload: b"still".to_vec(), version: 1, owner_session }));
    assert_eq!(c.delete("/e", Some(1)).await, Ok(()));
    assert_eq!(c.get("/e").await.unwrap(), None);
}

pub async fn an_ephemeral_node_has_no_children<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make_ephemeral(&*c, "/e", b"").await;
    for kind in [NodeKind::Persistent, NodeKind::Ephemeral, NodeKind::EphemeralSequential] {
        assert_eq!(c.create("/e/n", b"", kind).await, Err(E::EphemeralParent("/e".to_owned())));
    }
    assert_eq!(c.children("/e").await.unwrap(), Some(vec![]));
}

pub async fn an_ephemeral_node_keeps_its_parent<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    make_ephemeral(&*c, "/p/e", b"").await;
    assert_eq!(c.children("/p").await.unwrap(), Some(vec!["e".to_owned()]));
    assert_eq!(c.delete("/p", None).await, Err(E::NotEmpty("/p".to_owned())));
    c.delete("/p/e", None).await.unwrap();
    c.delete("/p", None).await.unwrap();
}

pub async fn sessions_see_and_change_each_others_nodes<H: Harness>() {
    let harness = H::start().await;
    let (c, second) = (harness.coordinator(), second_session!(harness));
    assert_ne!(session_id(&*c), session_id(&*second));
    make_ephemeral(&*second, "/e", b"a").await;
    assert_eq!(c.create("/e", b"b", NodeKind::Ephemeral).await, Err(E::NodeExists("/e".to_owned())));
    assert_eq!(c.set("/e", b"b", Some(0)).await, Ok(1));
    let owner_session = Some(session_id(&*second));
    shows(&mut second.watch_node("/e"), H::PATIENCE, Some(Node { payload: b"b".to_vec(), version: 1, owner_session })).await;
    c.delete("/e", Some(1)).await.unwrap();
    make_ephemeral(&*c, "/e", b"c").await;
    second.close().await;
    assert_eq!(c.get("/e").await.unwrap().unwrap().owner_session, Some(session_id(&*c)));
}

pub async fn closing_a_session_removes_its_nodes<H: Harness>() {
    let harness = H::start().await;
    let (c, second) = (harness.coordinator(), second_session!(harness));
    make(&*second, "/p", b"persistent").await;
    make_ephemeral(&*second, "/p/theirs", b"").await;
    second.create("/p/s-", b"", NodeKind::EphemeralSequential).await.unwrap();
    make_ephemeral(&*c, "/p/ours", b"").await;
    let (mut theirs, mut names) = (c.watch_node("/p/theirs"), c.watch_children("/p"));
    assert!(reaches(&mut theirs, H::PATIENCE, Option::is_some).await.is_ok());
    second.close().await;
    shows(&mut theirs, H::PATIENCE, None).await;
    shows(&mut names, H::PATIENCE, Some(vec!["ours".to_owned()])).await;
    assert_eq!(c.get("/p").await.unwrap(), Some(node(b"persistent", 0)));
    make_ephemeral(&*c, "/p/theirs", b"").await;
}

pub async fn dropping_a_session_removes_its_nodes<H: Harness>() {
    let harness = H::start().await;
    let (c, second) = (harness.coordinator(), second_session!(harness));
    make(&*c, "/p", b"").await;
    make_ephemeral(&*second, "/p/e", b"").await;
    let mut watched = c.watch_node("/p/e");
    assert!(reaches(&mut watched, H::PATIENCE, Option::is_some).await.is_ok());
    drop(second);
    shows(&mut watched, H::PATIENCE, None).await;
    assert_eq!(c.children("/p").await.unwrap(), Some(vec![]));
}

pub async fn ephemeral_nodes_do_not_survive_a_restart<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    make_ephemeral(&*c, "/p/e", b"").await;
    c.create("/p/s-", b"", NodeKind::EphemeralSequential).await.unwrap();
    drop(c);
    let harness = harness.restart().await;
    let c = harness.coordinator();
    assert_eq!(c.children("/p").await.unwrap(), Some(vec![]));
    assert_eq!(c.get("/p/e").await.unwrap(), None);
    make_ephemeral(&*c, "/p/e", b"").await;
}

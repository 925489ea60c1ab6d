//! What is there after a restart.

use std::sync::Arc;

use super::{Harness, make, node, session_id};
use crate::{CoordinationError as E, MAX_PAYLOAD_BYTES};

pub async fn persistent_nodes_survive_a_restart<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let large = vec![9; MAX_PAYLOAD_BYTES];
    make(&*c, "/p", b"").await;
    make(&*c, "/p/a", b"payload").await;
    make(&*c, "/p/b", b"").await;
    c.set("/p/b", &large, None).await.unwrap();
    c.set("/p/b", &large, None).await.unwrap();
    drop(c);
    let harness = harness.restart().await;
    let c = harness.coordinator();
    assert_eq!(c.children("/p").await.unwrap(), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(c.get("/p").await.unwrap(), Some(node(b"", 0)));
    assert_eq!(c.get("/p/a").await.unwrap(), Some(node(b"payload", 0)));
    assert_eq!(c.get("/p/b").await.unwrap(), Some(node(&large, 2)));
}

pub async fn versions_go_on_after_a_restart<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    c.set("/n", b"b", Some(0)).await.unwrap();
    drop(c);
    let harness = harness.restart().await;
    let c = harness.coordinator();
    assert!(matches!(c.set("/n", b"c", Some(0)).await, Err(E::BadVersion { .. })));
    assert_eq!(c.set("/n", b"c", Some(1)).await, Ok(2));
}

pub async fn what_was_deleted_stays_deleted<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    make(&*c, "/p/n", b"old").await;
    c.delete("/p/n", None).await.unwrap();
    make(&*c, "/q", b"old").await;
    c.set("/q", b"older", None).await.unwrap();
    c.delete("/q", None).await.unwrap();
    make(&*c, "/q", b"new").await;
    drop(c);
    let harness = harness.restart().await;
    let c = harness.coordinator();
    assert_eq!(c.children("/p").await.unwrap(), Some(vec![]));
    assert_eq!(c.get("/q").await.unwrap(), Some(node(b"new", 0)));
}

pub async fn a_restart_is_a_new_session<H: Harness>() {
    let harness = H::start().await;
    let before = session_id(&*harness.coordinator());
    let harness = harness.restart().await;
    assert_ne!(session_id(&*harness.coordinator()), before);
}

pub async fn many_nodes_survive_many_restarts<H: Harness>() {
    let mut harness = H::start().await;
    make(&*harness.coordinator(), "/p", b"").await;
    for round in 0..3 {
        let tasks: Vec<_> = (0..300)
            .map(|n| {
                let c = harness.coordinator();
                tokio::spawn(async move { make(&*c, &format!("/p/{round}-{n:03}"), format!("{n}").as_bytes()).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        harness = harness.restart().await;
    }
    let c: Arc<_> = harness.coordinator();
    let names = c.children("/p").await.unwrap().unwrap();
    assert_eq!(names.len(), 900);
    for name in names {
        let (_, n) = name.split_once('-').unwrap();
        let payload = n.parse::<u32>().unwrap().to_string();
        assert_eq!(c.get(&format!("/p/{name}")).await.unwrap(), Some(node(payload.as_bytes(), 0)));
    }
}

//! Nodes that other clients make, and HQueue would not.

use hqueue_coordination::{CoordinationError, Coordinator, NodeKind};

use crate::raw::Raw;
use crate::support::{connect, fresh_root, options, shared_server, shows};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_hqueue_would_refuse_are_shown_and_harm_nothing() {
    let (server, root) = (shared_server(), fresh_root());
    let coordinator = connect(options(&server.host(), &root)).await;
    coordinator.create("/p", b"", NodeKind::Persistent).await.unwrap();
    let mut names = coordinator.watch_children("/p");
    let mut raw = Raw::attach(server.address(), 0, &[0; 16]);
    raw.create(&format!("{root}/p/\u{e9}\u{540d}"));
    raw.close();
    shows(&mut names, |names| names.as_ref().is_some_and(|names| *names == ["é名"])).await;
    assert_eq!(coordinator.children("/p").await, Ok(Some(vec!["é名".to_owned()])));
    assert!(matches!(coordinator.get("/p/é名").await, Err(CoordinationError::BadPath { .. })));
    assert!(matches!(coordinator.delete("/p", None).await, Err(CoordinationError::NotEmpty(_))));
}

//! The session: held, then closed.

use tokio::time::timeout;

use super::{Harness, make, node};
use crate::{CoordinationError as E, Coordinator, NodeKind, SessionState};

async fn all_answer_closed(c: &dyn Coordinator) {
    assert_eq!(c.create("/n", b"", NodeKind::Persistent).await, Err(E::Closed));
    assert_eq!(c.create("/n", b"", NodeKind::Ephemeral).await, Err(E::Closed));
    assert_eq!(c.get("/n").await, Err(E::Closed));
    assert_eq!(c.set("/n", b"", None).await, Err(E::Closed));
    assert_eq!(c.delete("/n", None).await, Err(E::Closed));
    assert_eq!(c.children("/").await, Err(E::Closed));
}

pub async fn a_session_is_held_from_the_start<H: Harness>() {
    let harness = H::start().await;
    let state = harness.coordinator().session();
    assert!(matches!(*state.borrow(), SessionState::Held { .. }));
}

pub async fn after_a_close_all_answers_are_closed<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"").await;
    let mut state = c.session();
    c.close().await;
    assert_eq!(*state.borrow_and_update(), SessionState::Closed);
    assert_eq!(*c.session().borrow(), SessionState::Closed);
    all_answer_closed(&*c).await;
}

pub async fn a_close_can_be_repeated<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    tokio::join!(c.close(), c.close());
    c.close().await;
    all_answer_closed(&*c).await;
}

pub async fn a_close_ends_the_watches<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let (mut watched, mut names) = (c.watch_node("/n"), c.watch_children("/n"));
    c.close().await;
    let ends = async {
        while watched.changed().await.is_ok() {}
        while names.changed().await.is_ok() {}
        let mut late = c.watch_node("/n");
        while late.changed().await.is_ok() {}
    };
    timeout(H::PATIENCE, ends).await.expect("the watches end");
}

pub async fn a_close_leaves_other_sessions_alone<H: Harness>() {
    let harness = H::start().await;
    let (c, second) = (harness.coordinator(), super::second_session!(harness));
    make(&*second, "/n", b"a").await;
    second.close().await;
    all_answer_closed(&*second).await;
    assert_eq!(c.set("/n", b"b", None).await, Ok(1));
    assert!(matches!(*c.session().borrow(), SessionState::Held { .. }));
}

pub async fn writes_under_way_at_a_close_are_answered<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let c = harness.coordinator();
            tokio::spawn(async move { c.create(&format!("/p/{n}"), b"a", NodeKind::Persistent).await })
        })
        .collect();
    c.close().await;
    let mut acknowledged = Vec::new();
    for (n, task) in tasks.into_iter().enumerate() {
        match timeout(H::PATIENCE, task).await.expect("every call is answered").unwrap() {
            Ok(_) => acknowledged.push(n),
            Err(error) => assert!(matches!(error, E::Closed | E::Away(_)), "{error}"),
        }
    }
    drop(c);
    let harness = harness.restart().await;
    for n in acknowledged {
        assert_eq!(harness.coordinator().get(&format!("/p/{n}")).await.unwrap(), Some(node(b"a", 0)));
    }
}

//! Sequential nodes: their numbers rise.

use std::collections::BTreeSet;

use super::{Harness, make, second_session, session_id};
use crate::{Coordinator, NodeKind, name_of};

/// Makes a sequential node, and returns its number.
async fn number(coordinator: &dyn Coordinator, path: &str) -> u32 {
    let created = coordinator.create(path, b"payload", NodeKind::EphemeralSequential).await.unwrap();
    assert_eq!(created.session, Some(session_id(coordinator)));
    let digits = created.path.strip_prefix(path).unwrap();
    assert_eq!(digits.len(), 10, "{}", created.path);
    let found = coordinator.get(&created.path).await.unwrap().unwrap();
    assert_eq!((found.payload.as_slice(), found.owner_session), (&b"payload"[..], created.session));
    digits.parse().unwrap()
}

pub async fn numbers_rise<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let mut last = number(&*c, "/p/n-").await;
    for _ in 0..12 {
        let next = number(&*c, "/p/n-").await;
        assert!(next > last, "{next} after {last}");
        last = next;
    }
    let names = c.children("/p").await.unwrap().unwrap();
    assert_eq!(names.len(), 13);
}

pub async fn numbers_are_the_parents<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    make(&*c, "/other", b"").await;
    let first = number(&*c, "/p/a-").await;
    let second = number(&*c, "/p/b-").await;
    assert!(second > first, "one series for all names below a parent");
    number(&*c, "/other/a-").await;
    number(&*c, "/top-").await;
}

pub async fn numbers_of_deleted_nodes_do_not_come_back<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let mut last = number(&*c, "/p/n-").await;
    for _ in 0..3 {
        c.delete(&format!("/p/n-{last:010}"), None).await.unwrap();
        let next = number(&*c, "/p/n-").await;
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

pub async fn numbers_rise_over_sessions<H: Harness>() {
    let harness = H::start().await;
    let (c, second) = (harness.coordinator(), second_session!(harness));
    make(&*c, "/p", b"").await;
    let first = number(&*second, "/p/n-").await;
    second.close().await;
    assert!(number(&*c, "/p/n-").await > first);
}

pub async fn numbers_rise_over_a_restart<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let first = number(&*c, "/p/n-").await;
    drop(c);
    let harness = harness.restart().await;
    assert!(number(&*harness.coordinator(), "/p/n-").await > first);
}

pub async fn concurrent_numbers_differ<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let c = harness.coordinator();
            tokio::spawn(async move { c.create("/p/n-", b"", NodeKind::EphemeralSequential).await.unwrap().path })
        })
        .collect();
    let mut names = BTreeSet::new();
    for task in tasks {
        assert!(names.insert(name_of(&task.await.unwrap()).to_owned()));
    }
    assert_eq!(c.children("/p").await.unwrap(), Some(names.into_iter().collect()));
}

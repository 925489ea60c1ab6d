//! Watches: what they show.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Harness, make, node, second_session, shows};
use crate::{Node, NodeKind, Observed};

pub async fn a_watch_begins_with_the_state_now<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"a").await;
    make(&*c, "/n/m", b"").await;
    shows(&mut c.watch_node("/n"), H::PATIENCE, Some(node(b"a", 0))).await;
    shows(&mut c.watch_children("/n"), H::PATIENCE, Some(vec!["m".to_owned()])).await;
    shows(&mut c.watch_node("/other"), H::PATIENCE, None).await;
    shows(&mut c.watch_children("/other"), H::PATIENCE, None).await;
}

pub async fn every_change_of_a_node_is_shown<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let mut watched = c.watch_node("/n");
    shows(&mut watched, H::PATIENCE, None).await;
    for _ in 0..3 {
        make(&*c, "/n", b"a").await;
        shows(&mut watched, H::PATIENCE, Some(node(b"a", 0))).await;
        c.set("/n", b"b", None).await.unwrap();
        shows(&mut watched, H::PATIENCE, Some(node(b"b", 1))).await;
        c.set("/n", b"b", None).await.unwrap();
        shows(&mut watched, H::PATIENCE, Some(node(b"b", 2))).await;
        c.delete("/n", None).await.unwrap();
        shows(&mut watched, H::PATIENCE, None).await;
    }
}

pub async fn every_change_of_the_children_is_shown<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    let mut watched = c.watch_children("/p");
    shows(&mut watched, H::PATIENCE, None).await;
    for _ in 0..2 {
        make(&*c, "/p", b"").await;
        shows(&mut watched, H::PATIENCE, Some(vec![])).await;
        make(&*c, "/p/b", b"").await;
        shows(&mut watched, H::PATIENCE, Some(vec!["b".to_owned()])).await;
        c.create("/p/a", b"", NodeKind::Ephemeral).await.unwrap();
        shows(&mut watched, H::PATIENCE, Some(vec!["a".to_owned(), "b".to_owned()])).await;
        c.delete("/p/a", None).await.unwrap();
        shows(&mut watched, H::PATIENCE, Some(vec!["b".to_owned()])).await;
        c.delete("/p/b", None).await.unwrap();
        c.delete("/p", None).await.unwrap();
        shows(&mut watched, H::PATIENCE, None).await;
    }
}

pub async fn a_node_made_anew_is_shown<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"first").await;
    c.set("/n", b"first", None).await.unwrap();
    let mut watched = c.watch_node("/n");
    c.delete("/n", None).await.unwrap();
    make(&*c, "/n", b"second").await;
    shows(&mut watched, H::PATIENCE, Some(node(b"second", 0))).await;
    c.set("/n", b"third", None).await.unwrap();
    shows(&mut watched, H::PATIENCE, Some(node(b"third", 1))).await;
}

pub async fn changes_of_other_sessions_are_shown<H: Harness>() {
    let harness = H::start().await;
    let (c, second) = (harness.coordinator(), second_session!(harness));
    let (mut watched, mut names) = (c.watch_node("/n"), c.watch_children("/n"));
    make(&*second, "/n", b"a").await;
    shows(&mut watched, H::PATIENCE, Some(node(b"a", 0))).await;
    make(&*second, "/n/m", b"").await;
    shows(&mut names, H::PATIENCE, Some(vec!["m".to_owned()])).await;
    second.set("/n", b"b", Some(0)).await.unwrap();
    shows(&mut watched, H::PATIENCE, Some(node(b"b", 1))).await;
}

pub async fn receivers_are_independent<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"").await;
    let (mut first, second) = (c.watch_node("/n"), c.watch_node("/n"));
    let mut clone = second.clone();
    drop(second);
    c.set("/n", b"a", None).await.unwrap();
    shows(&mut first, H::PATIENCE, Some(node(b"a", 1))).await;
    shows(&mut clone, H::PATIENCE, Some(node(b"a", 1))).await;
    drop((first, clone));
    c.set("/n", b"b", None).await.unwrap();
    let mut again = c.watch_node("/n");
    shows(&mut again, H::PATIENCE, Some(node(b"b", 2))).await;
    c.set("/n", b"c", None).await.unwrap();
    shows(&mut again, H::PATIENCE, Some(node(b"c", 3))).await;
}

pub async fn a_bad_path_is_watched_as_never_there<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    for path in ["", "n", "/n/", "/../n", "/n\0", "/é"] {
        shows(&mut c.watch_node(path), H::PATIENCE, None).await;
        shows(&mut c.watch_children(path), H::PATIENCE, None).await;
    }
    make(&*c, "/n", b"a").await;
    shows(&mut c.watch_node("/n"), H::PATIENCE, Some(node(b"a", 0))).await;
}

pub async fn thousands_of_nodes_are_watched<H: Harness>() {
    const NODES: usize = 5000;
    const TASKS: usize = 32;
    let harness = H::start().await;
    let each = |write: bool| {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let c = harness.coordinator();
            tasks.spawn(async move {
                for n in (task..NODES).step_by(TASKS) {
                    let path = format!("/n{n}");
                    if write {
                        c.set(&path, n.to_string().as_bytes(), None).await.unwrap();
                    } else {
                        make(&*c, &path, b"").await;
                    }
                }
            });
        }
        tasks.join_all()
    };
    each(false).await;
    let c = harness.coordinator();
    let mut watched: Vec<_> = (0..NODES).map(|n| c.watch_node(&format!("/n{n}"))).collect();
    all_show(&mut watched, H::PATIENCE, |_| node(b"", 0)).await;
    each(true).await;
    all_show(&mut watched, H::PATIENCE, |n| node(n.to_string().as_bytes(), 1)).await;
}

async fn all_show(watched: &mut [watch::Receiver<Observed<Option<Node>>>], patience: Duration, wanted: impl Fn(usize) -> Node) {
    for (n, receiver) in watched.iter_mut().enumerate() {
        shows(receiver, patience, Some(wanted(n))).await;
    }
}

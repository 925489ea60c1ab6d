//! Watches: in what order they show it, and that they may merge but never miss the last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::timeout;

use super::{Harness, make, node, shows};
use crate::{Node, NodeKind, Observed};

pub async fn snapshots_never_go_back<H: Harness>() {
    const WRITES: i32 = 300;
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"0").await;
    let mut watched = c.watch_node("/n");
    let reader = tokio::spawn(async move {
        let mut last = -1;
        while last < WRITES {
            if let Observed::Seen(Some(Node { payload, version, .. })) = watched.borrow_and_update().clone() {
                assert!(version >= last, "version {version} after {last}");
                assert_eq!(payload, version.to_string().as_bytes(), "payload and version belong together");
                last = version;
            }
            if last < WRITES {
                watched.changed().await.unwrap();
            }
        }
    });
    for version in 1..=WRITES {
        c.set("/n", version.to_string().as_bytes(), None).await.unwrap();
    }
    timeout(H::PATIENCE, reader).await.expect("the last state is shown").unwrap();
}

pub async fn a_slow_reader_finds_the_last_state<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let (mut watched, mut names) = (c.watch_node("/p"), c.watch_children("/p"));
    for n in 0..100 {
        c.set("/p", n.to_string().as_bytes(), None).await.unwrap();
        make(&*c, &format!("/p/{n:02}"), b"").await;
        if n > 0 {
            c.delete(&format!("/p/{:02}", n - 1), None).await.unwrap();
        }
    }
    shows(&mut watched, H::PATIENCE, Some(node(b"99", 100))).await;
    shows(&mut names, H::PATIENCE, Some(vec!["99".to_owned()])).await;
}

/// Watches that come and go while a node is written: whoever looks last sees the last.
pub async fn no_change_is_missed_while_watches_begin_and_end<H: Harness>() {
    const WRITES: i32 = 200;
    let harness = H::start().await;
    make(&*harness.coordinator(), "/n", b"").await;
    let written = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (c, written) = (harness.coordinator(), Arc::clone(&written));
        tasks.push(tokio::spawn(async move {
            while !written.load(Ordering::Acquire) {
                let mut watched = c.watch_node("/n");
                // Holds it for a change, or lets it go at once.
                let _ = timeout(std::time::Duration::from_millis(1), watched.changed()).await;
            }
            shows(&mut c.watch_node("/n"), H::PATIENCE, Some(node(b"a", WRITES))).await;
        }));
    }
    let c = harness.coordinator();
    let mut held = c.watch_node("/n");
    for _ in 0..WRITES {
        c.set("/n", b"a", None).await.unwrap();
    }
    written.store(true, Ordering::Release);
    for task in tasks {
        timeout(H::PATIENCE, task).await.expect("every watch ends with the last state").unwrap();
    }
    shows(&mut held, H::PATIENCE, Some(node(b"a", WRITES))).await;
}

/// Names that a list shows can be read, unless they were deleted again: the list is not ahead of the nodes.
pub async fn a_child_that_is_shown_can_be_read<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/p", b"").await;
    let mut names = c.watch_children("/p");
    for n in 0..50 {
        let name = format!("{n:02}");
        let kind = if n % 2 == 0 { NodeKind::Persistent } else { NodeKind::Ephemeral };
        let (maker, path) = (harness.coordinator(), format!("/p/{name}"));
        let making = tokio::spawn(async move { maker.create(&path, b"x", kind).await.unwrap() });
        let shown = super::reaches(&mut names, H::PATIENCE, |seen| seen.as_ref().is_some_and(|all| all.contains(&name))).await;
        assert!(shown.is_ok(), "{name} is not shown");
        assert!(c.get(&format!("/p/{name}")).await.unwrap().is_some());
        making.await.unwrap();
    }
}

//! The server is killed and comes back.

use std::time::{Duration, Instant};

use hqueue_coordination::{Coordinator, NodeKind};
use hqueue_tests::zookeeper::{Proxy, Way, ZooKeeper};

use crate::support::{PATIENCE, Registered, away, connect, fresh_root, make_all, options, payload_is, shows, write_all};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_back_after_a_restart_and_changes_in_between_are_seen() {
    let (mut server, root) = (tokio::task::block_in_place(ZooKeeper::start), fresh_root());
    let proxy = Proxy::to(server.address());
    let ours = connect(options(&proxy.host(), &root)).await;
    let nodes: Vec<String> = (0..50).map(|n| format!("/n{n}")).collect();
    make_all(&ours, &nodes).await;
    let mut watched: Vec<_> = nodes.iter().map(|path| ours.watch_node(path)).collect();
    let mut names = ours.watch_children("/");
    let owned: Vec<String> = (0..20).map(|n| format!("/owner{n}")).collect();
    let mut registered = Registered::keep(&ours, &owned);
    let first = registered.after(None).await;
    for node in &mut watched {
        shows(node, payload_is(b"")).await;
    }

    let began = Instant::now();
    server.kill();
    let noticed = away(&*ours).await - began;
    assert!(matches!(ours.get("/n0").await, Err(error) if error.is_retryable()));
    // What others change before we are back.
    proxy.set(Way::Refused);
    tokio::task::block_in_place(|| server.restart());
    let other = connect(options(&server.host(), &root)).await;
    write_all(&other, &nodes, b"meanwhile").await;
    other.delete("/n0", None).await.unwrap();
    other.create("/new", b"", NodeKind::Persistent).await.unwrap();
    let served = Instant::now();
    proxy.set(Way::Open);

    let second = registered.after(Some(first)).await;
    let owned_again = served.elapsed();
    shows(&mut watched[0], Option::is_none).await;
    for node in &mut watched[1..] {
        shows(node, payload_is(b"meanwhile")).await;
    }
    shows(&mut names, |names| names.as_ref().is_some_and(|names| names.contains(&"new".to_owned()))).await;
    let seen = served.elapsed();
    println!("killed: noticed after {noticed:?}; served again: ownership after {owned_again:?}, all watches after {seen:?}");
    assert!(owned_again.max(seen) < Duration::from_secs(10));
    for path in &owned {
        let node = tokio::time::timeout(PATIENCE, other.get(path)).await.unwrap().unwrap();
        assert_eq!(node.unwrap().owner_session, Some(second), "{path}");
    }
    write_all(&other, &nodes[1..], b"afterwards").await;
    for node in &mut watched[1..] {
        shows(node, payload_is(b"afterwards")).await;
    }
}

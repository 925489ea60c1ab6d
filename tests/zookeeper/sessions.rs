//! Sessions that are renewed, and what an earlier one has left.

use std::time::Instant;

use hqueue_coordination::zookeeper::{Tuning, ZooKeeperCoordinator};
use hqueue_coordination::{Coordinator, Leftover, NodeKind, held_by, remove_leftover};
use hqueue_tests::zookeeper::Proxy;

use crate::support::{
    PATIENCE, Registered, connect, fresh_root, is_long, next_session, options, payload_is, session_id, shared_server, shows,
};

/// At 2^32 requests the client crate would give answers to the wrong callers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_renewed_long_before_its_requests_run_out() {
    let (server, root) = (shared_server(), fresh_root());
    let tuning = Tuning { requests_in_a_session: 300, ..Tuning::default() };
    assert!(Tuning::default().requests_in_a_session <= 1 << 30);
    let coordinator = ZooKeeperCoordinator::start_tuned(options(&server.host(), &root), tuning);
    coordinator.connected(PATIENCE).await.unwrap();
    coordinator.create("/n", b"", NodeKind::Persistent).await.unwrap();
    coordinator.create("/e", b"", NodeKind::Ephemeral).await.unwrap();
    let mut watched = coordinator.watch_node("/n");
    shows(&mut watched, Option::is_some).await;
    let first = session_id(&coordinator);
    for _ in 0..300 {
        coordinator.get("/n").await.unwrap();
    }
    let second = next_session(&coordinator, first).await;
    assert_eq!(remove_leftover(&coordinator, "/e", held_by(&[first])).await, Ok(Leftover::Gone));
    assert_eq!(coordinator.create("/e", b"", NodeKind::Ephemeral).await.unwrap().session, Some(second));
    coordinator.set("/n", b"x", None).await.unwrap();
    shows(&mut watched, payload_is(b"x")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_session_left_is_removed_and_what_is_a_rivals_stays() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let ours = connect(options(&proxy.host(), &root)).await;
    let rival = connect(options(&server.host(), &root)).await;
    let first = session_id(&*ours);
    ours.create("/left", b"", NodeKind::Ephemeral).await.unwrap();
    rival.create("/rivals", b"", NodeKind::Ephemeral).await.unwrap();
    rival.create("/persistent", b"", NodeKind::Persistent).await.unwrap();
    proxy.cut();
    let second = next_session(&*ours, first).await;
    let earlier = [first];
    assert_eq!(remove_leftover(&*ours, "/left", held_by(&earlier)).await, Ok(Leftover::Gone));
    assert_eq!(ours.create("/left", b"", NodeKind::Ephemeral).await.unwrap().session, Some(second));
    assert_eq!(remove_leftover(&*ours, "/left", held_by(&earlier)).await, Ok(Leftover::Others), "a node of this session stays");
    for path in ["/rivals", "/persistent"] {
        assert_eq!(remove_leftover(&*ours, path, held_by(&earlier)).await, Ok(Leftover::Others));
        assert!(rival.get(path).await.unwrap().is_some());
    }
    assert_eq!(remove_leftover(&*ours, "/nothing", held_by(&earlier)).await, Ok(Leftover::Gone));
}

/// A blip is cheap for a few nodes only; here is what many cost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_claimed_again_after_a_blip() {
    let nodes = if is_long() { 10_000 } else { 500 };
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let ours = connect(options(&proxy.host(), &root)).await;
    let owned: Vec<String> = (0..nodes).map(|n| format!("/owner{n}")).collect();
    let mut registered = Registered::keep(&ours, &owned);
    let first = registered.after(None).await;
    let began = Instant::now();
    proxy.cut();
    let session = next_session(&*ours, first).await;
    let back = began.elapsed();
    assert_eq!(registered.after(Some(first)).await, session);
    println!("{nodes} ephemeral nodes: a session {back:?} after a blip, all claimed again after {:?}", began.elapsed());
}

//! Many watched nodes: none is forgotten with a connection, and watching costs nothing while nothing happens.

use std::time::{Duration, Instant};

use hqueue_coordination::zookeeper::{Tuning, ZooKeeperCoordinator};
use hqueue_coordination::{Coordinator, NodeKind};
use hqueue_tests::figures::Figures;
use hqueue_tests::wait_for;
use hqueue_tests::zookeeper::{Proxy, ZooKeeper};
use tokio::time::sleep_until;

use crate::support::{
    PATIENCE, T, connect, fresh_root, is_long, make_all, next_session, options, payload_is, session_id, shared_server, shows,
    with_timeout, write_all,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_watches_are_there_after_a_reconnect() {
    const NODES: usize = 5000;
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let ours = connect(options(&proxy.host(), &root)).await;
    let other = connect(options(&server.host(), &root)).await;
    let nodes: Vec<String> = (0..NODES).map(|n| format!("/n{n}")).collect();
    make_all(&other, &nodes).await;
    let mut watched: Vec<_> = nodes.iter().map(|path| ours.watch_node(path)).collect();
    for node in &mut watched {
        shows(node, payload_is(b"")).await;
    }
    let first = session_id(&*ours);

    let began = Instant::now();
    proxy.cut();
    next_session(&*ours, first).await;
    let back = began.elapsed();
    write_all(&other, &nodes, b"changed").await;
    let written = began.elapsed();
    for node in &mut watched {
        shows(node, payload_is(b"changed")).await;
    }
    println!(
        "{NODES} watches: a session {back:?} after the cut, all written after {written:?}, all seen after {:?}",
        began.elapsed()
    );
    // Once more, with every watch set for long.
    write_all(&other, &nodes, b"again").await;
    for node in &mut watched {
        shows(node, payload_is(b"again")).await;
    }
}

/// Requests in a second: heartbeats only. What is read again now and then comes on top: each watched path once in five minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_watches_cost_heartbeats_only() {
    let nodes = if is_long() { 100_000 } else { 1000 };
    let (server, root) = (tokio::task::block_in_place(ZooKeeper::start), fresh_root());
    let tuning = Tuning { reread_within: Duration::from_secs(1_000_000_000), ..Tuning::default() };
    let coordinator = ZooKeeperCoordinator::start_tuned(options(&server.host(), &root), tuning);
    coordinator.connected(PATIENCE).await.unwrap();
    let before = Figures::of(std::process::id());
    let began = Instant::now();
    let mut watched: Vec<_> = (0..nodes).map(|n| coordinator.watch_node(&format!("/n{n}"))).collect();
    for node in &mut watched {
        shows(node, Option::is_none).await;
    }
    let (armed, after) = (began.elapsed(), Figures::of(std::process::id()));
    let memory = after.rss_bytes.saturating_sub(before.rss_bytes) / nodes;
    let requests = || received(&server);
    let (start, first) = (Instant::now(), requests());
    sleep_until((start + Duration::from_secs(5)).into()).await;
    // The second question counts too.
    let (sent, seconds) = (requests() - first - 1, start.elapsed().as_secs_f64());
    println!("{nodes} watched nodes were read in {armed:?}, about {memory} bytes each; then {sent} requests in {seconds:.1} s");
    // A heartbeat every T/6, which is 1.7 s here; one more where the time begins and ends, and another for a busy machine.
    assert!(sent as f64 <= seconds * 0.6 + 2.0, "{sent} requests in {seconds:.1} s");
    let before = requests();
    coordinator.create("/n7", b"", NodeKind::Persistent).await.unwrap();
    shows(&mut watched[7], payload_is(b"")).await;
    assert!(requests() - before < 12, "one change costs a few requests");
}

/// All that is watched is read again now and then, spread out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_read_again_now_and_then() {
    const NODES: u64 = 600;
    let (server, root) = (tokio::task::block_in_place(ZooKeeper::start), fresh_root());
    let tuning = Tuning { reread_within: 2 * T, ..Tuning::default() };
    let coordinator = ZooKeeperCoordinator::start_tuned(with_timeout(T, &server.host(), &root), tuning);
    coordinator.connected(PATIENCE).await.unwrap();
    let mut watched: Vec<_> = (0..NODES).map(|n| coordinator.watch_node(&format!("/n{n}"))).collect();
    for node in &mut watched {
        shows(node, Option::is_none).await;
    }
    let (start, first) = (Instant::now(), received(&server));
    let mut last = first;
    let mut most = 0;
    for second in 1..=6 {
        sleep_until((start + Duration::from_secs(second)).into()).await;
        let now = received(&server);
        (most, last) = (most.max(now - last), now);
    }
    println!("{NODES} watched nodes, a round of 6 s: {} requests, at most {most} in a second", last - first);
    assert!(last - first > NODES * 8 / 10, "not all are read again");
    assert!(most < NODES / 2, "they are read all at once");
}

fn received(server: &ZooKeeper) -> u64 {
    wait_for("the server tells how many packets it has received", PATIENCE, || {
        let figures = server.ask("mntr")?;
        let line = figures.lines().find_map(|line| line.strip_prefix("zk_packets_received"))?;
        line.trim().parse().ok()
    })
}

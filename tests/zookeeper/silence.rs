//! The network goes silent: nothing is closed, nothing arrives.

use std::time::{Duration, Instant};

use hqueue_coordination::{Coordinator, NodeKind};
use hqueue_tests::zookeeper::{Proxy, Way};
use tokio::time::sleep_until;

use crate::support::{
    Registered, T, away, connect, fresh_root, last_lease, options, payload_is, session_id, shared_server, shows, with_timeout,
};

/// Silence for 2T: the owner is fenced before the server ends its session, and all is back afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_is_fenced_before_the_server_ends_its_session() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let owner = connect(with_timeout(T, &proxy.host(), &root)).await;
    let observer = connect(options(&server.host(), &root)).await;
    observer.create("/n", b"before", NodeKind::Persistent).await.unwrap();
    let mut watched = owner.watch_node("/n");
    shows(&mut watched, payload_is(b"before")).await;
    let mut registered = Registered::keep(&owner, &["/owner".to_owned()]);
    let first = registered.after(None).await;
    let mut seen = observer.watch_node("/owner");
    shows(&mut seen, |node| node.as_ref().is_some_and(|node| node.owner_session == Some(first))).await;

    proxy.set(Way::Held);
    let began = Instant::now();
    let last_lease = tokio::spawn(last_lease(owner.session()));
    let away_at = away(&*owner).await;
    shows(&mut seen, Option::is_none).await;
    let expired_at = Instant::now();
    let lease_end = last_lease.await.unwrap();
    println!(
        "T = {T:?}, silent from 0: away at {:?}, the lease ends at {:?}, the server ends the session at {:?}",
        away_at - began,
        lease_end.saturating_duration_since(began),
        expired_at - began
    );
    assert!(lease_end + Duration::from_millis(200) < expired_at, "the lease outlives the session");
    assert!(away_at <= lease_end + Duration::from_millis(100), "the end of the lease is not told");
    assert!(away_at - began < T * 2 / 3, "noticed late");

    observer.set("/n", b"meanwhile", None).await.unwrap();
    sleep_until((began + 2 * T).into()).await;
    proxy.set(Way::Open);
    let second = registered.after(Some(first)).await;
    let back = Instant::now() - (began + 2 * T);
    println!("registered in a new session {back:?} after the silence");
    assert_eq!(session_id(&*owner), second);
    shows(&mut seen, |node| node.as_ref().is_some_and(|node| node.owner_session == Some(second))).await;
    shows(&mut watched, payload_is(b"meanwhile")).await;
    assert!(back < Duration::from_secs(10));
}

/// A silence that is shorter than a heartbeat's deadline costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_silence_costs_nothing() {
    const TIMEOUT: Duration = Duration::from_secs(6);
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let coordinator = connect(with_timeout(TIMEOUT, &proxy.host(), &root)).await;
    let first = session_id(&*coordinator);
    for _ in 0..3 {
        proxy.set(Way::Held);
        let held = Instant::now();
        let call = tokio::spawn({
            let coordinator = coordinator.clone();
            async move { coordinator.get("/").await }
        });
        sleep_until((held + TIMEOUT / 6).into()).await;
        proxy.set(Way::Open);
        call.await.unwrap().unwrap();
        assert_eq!(session_id(&*coordinator), first);
    }
}

/// A close does not wait for a server that does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_in_silence_ends() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let coordinator = connect(with_timeout(T, &proxy.host(), &root)).await;
    proxy.set(Way::Held);
    let call = tokio::spawn({
        let coordinator = coordinator.clone();
        async move { coordinator.get("/").await }
    });
    let began = Instant::now();
    coordinator.close().await;
    println!("a close in silence took {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(8));
    assert!(call.await.unwrap().is_err());
}

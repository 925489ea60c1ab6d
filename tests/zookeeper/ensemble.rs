//! An ensemble of three, and the loss of one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_coordination::zookeeper::ZooKeeperCoordinator;
use hqueue_coordination::{Coordinator, NodeKind};
use hqueue_tests::zookeeper::{Ensemble, ZooKeeper};
use tokio::task::block_in_place;

use crate::support::{
    Registered, T, away, connect, fresh_root, last_lease, next_session, options, payload_is, session_id, shows, with_timeout,
};

/// What a broker has: a session with a certain server, a watch, and nodes of its own.
struct Ours {
    coordinator: Arc<ZooKeeperCoordinator>,
    registered: Registered,
    session: i64,
}

impl Ours {
    /// Tries until the session is with this server.
    async fn with(ensemble: &Ensemble, server: usize, root: &str) -> Self {
        for _ in 0..200 {
            let coordinator = connect(with_timeout(T, &ensemble.hosts(), root)).await;
            let session = session_id(&*coordinator);
            // A busy server may not answer in time.
            let connections = ensemble.servers[server].ask("cons").unwrap_or_default();
            if connections.contains(&format!("sid={session:#x},")) {
                let mut registered = Registered::keep(&coordinator, &["/owner".to_owned()]);
                assert_eq!(registered.after(None).await, session);
                return Self { coordinator, registered, session };
            }
            coordinator.close().await;
        }
        panic!("no session with server {server} in 200 attempts");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_a_server_is_survived() {
    let mut ensemble = block_in_place(Ensemble::start);
    let root = fresh_root();
    connect(options(&ensemble.hosts(), &root)).await.create("/n", b"", NodeKind::Persistent).await.unwrap();
    let follower = (ensemble.leader() + 1) % 3;
    lose(&mut ensemble, follower, &root, "a follower killed", ZooKeeper::kill, ZooKeeper::restart).await;
    let leader = ensemble.leader();
    lose(&mut ensemble, leader, &root, "the leader killed", ZooKeeper::kill, ZooKeeper::restart).await;
    let follower = (ensemble.leader() + 1) % 3;
    lose(&mut ensemble, follower, &root, "a follower frozen", |s| s.freeze(), |s| s.thaw()).await;
    let leader = ensemble.leader();
    lose(&mut ensemble, leader, &root, "the leader frozen", |s| s.freeze(), |s| s.thaw()).await;
}

async fn lose(
    ensemble: &mut Ensemble,
    server: usize,
    root: &str,
    what: &str,
    harm: impl FnOnce(&mut ZooKeeper),
    heal: impl FnOnce(&mut ZooKeeper),
) {
    let mut ours = Ours::with(ensemble, server, root).await;
    // Others have no session with that server.
    let elsewhere = ensemble.servers[(server + 1) % 3].host();
    let other = connect(options(&elsewhere, root)).await;
    let mut watched = ours.coordinator.watch_node("/n");
    other.set("/n", b"before", None).await.unwrap();
    shows(&mut watched, payload_is(b"before")).await;

    let began = Instant::now();
    block_in_place(|| harm(&mut ensemble.servers[server]));
    away(&*ours.coordinator).await;
    let noticed = began.elapsed();
    let session = ours.registered.after(Some(ours.session)).await;
    let registered = began.elapsed();
    // The other's session may have been lost with a leader.
    other.connected(Duration::from_secs(10)).await.unwrap();
    while let Err(error) = other.set("/n", what.as_bytes(), None).await {
        assert!(error.is_retryable(), "{error}");
    }
    shows(&mut watched, payload_is(what.as_bytes())).await;
    println!(
        "{what}: noticed after {noticed:?}, registered again after {registered:?}, a change seen after {:?}",
        began.elapsed()
    );
    assert!(registered < Duration::from_secs(10));
    assert_eq!(other.get("/owner").await.unwrap().unwrap().owner_session, Some(session));
    block_in_place(|| {
        heal(&mut ensemble.servers[server]);
        ensemble.servers.iter().for_each(ZooKeeper::wait_until_it_serves);
    });
    ours.coordinator.close().await;
    assert_eq!(other.get("/owner").await.unwrap(), None);
}

/// A follower that has lost its leader goes on answering reads for a while; the leader ends the session meanwhile. So only
/// what the leader has confirmed may count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_is_cut_off_confirms_nothing() {
    let (ensemble, root) = (block_in_place(Ensemble::start_divisible), fresh_root());
    let leader = ensemble.leader();
    let follower = (leader + 1) % 3;
    let ours = Ours::with(&ensemble, follower, &root).await;
    let observer = connect(options(&ensemble.servers[leader].host(), &root)).await;
    let mut seen = observer.watch_node("/owner");
    shows(&mut seen, Option::is_some).await;

    // Only the leader is to end the session: nobody registers again.
    drop(ours.registered);
    block_in_place(|| ensemble.cut_off(follower));
    let began = Instant::now();
    let last_lease = tokio::spawn(last_lease(ours.coordinator.session()));
    let mut reads = Duration::ZERO;
    while ours.coordinator.get("/owner").await.is_ok() {
        reads = began.elapsed();
    }
    let noticed = away(&*ours.coordinator).await - began;
    let lease = last_lease.await.unwrap().saturating_duration_since(began);
    shows(&mut seen, Option::is_none).await;
    let expired = began.elapsed();
    println!(
        "a follower cut off: reads were answered until {reads:?}, away after {noticed:?}, the lease ends after {lease:?}, the leader \
         ends the session after {expired:?}"
    );
    assert!(reads > Duration::ZERO, "the follower answers no reads, so this shows nothing");
    assert!(lease < expired, "the lease outlives the session");
    let session = next_session(&*ours.coordinator, ours.session).await;
    ours.coordinator.create("/owner", b"", NodeKind::Ephemeral).await.unwrap();
    shows(&mut seen, |node| node.as_ref().is_some_and(|node| node.owner_session == Some(session))).await;
}

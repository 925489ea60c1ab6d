//! The first session: servers that are not there yet, are somewhere else, or swallow what is sent to them.

use std::time::{Duration, Instant};

use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{CoordinationError, Coordinator, NodeKind, Observed, SessionState};
use hqueue_tests::free_port;
use hqueue_tests::zookeeper::{Proxy, Way, ZooKeeper};
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, connect, fresh_root, is_long, options, session_id, shared_server, shows};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_later_is_found() {
    let absence = Duration::from_secs(if is_long() { 120 } else { 3 });
    let mut server = ZooKeeper::prepared();
    let coordinator = ZooKeeperCoordinator::start(options(&server.host(), &fresh_root()));
    let mut watched = coordinator.watch_children("/");
    let error = coordinator.connected(absence).await.unwrap_err();
    let CoordinationError::Away(text) = &error else { panic!("{error}") };
    assert!(text.contains(&server.host()) && text.contains("refused"), "{text}");
    println!("{error}");
    let call = Instant::now();
    let error = coordinator.get("/").await.unwrap_err();
    assert!(error.is_retryable() && call.elapsed() < Duration::from_secs(1), "{error}");
    assert_eq!(*watched.borrow(), Observed::Pending);

    tokio::task::block_in_place(|| server.restart());
    let served = Instant::now();
    coordinator.connected(PATIENCE).await.unwrap();
    println!("a server that came after {absence:?} was found {:?} after it served", served.elapsed());
    assert!(served.elapsed() < Duration::from_secs(6));
    shows(&mut watched, Option::is_some).await;
    coordinator.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_and_dead_hosts_in_the_list_cost_little() {
    let server = shared_server();
    let swallows = Proxy::with(server.address(), Way::Blackhole);
    let silent = Proxy::with(server.address(), Way::Held);
    let closes = Proxy::with(server.address(), Way::Closing);
    let wrong = format!("127.0.0.1:{}", free_port());
    for (what, hosts) in [
        ("a refusing host", vec![wrong.clone()]),
        ("a host that closes", vec![closes.host()]),
        ("a host that swallows SYNs", vec![swallows.host()]),
        ("a host that does not answer", vec![silent.host()]),
        ("a name that is none", vec!["no-such-host.invalid:2181".to_owned()]),
        ("all of them", vec![wrong, closes.host(), swallows.host(), silent.host(), "no-such-host.invalid:2181".to_owned()]),
    ] {
        let list = [hosts, vec![server.host()]].concat().join(",");
        let began = Instant::now();
        let coordinator = connect(options(&list, &fresh_root())).await;
        println!("{what} before the right one: a session after {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(5), "{what}");
        coordinator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_says_what_became_of_each_host() {
    let server = shared_server();
    let (swallows, closes) = (Proxy::with(server.address(), Way::Blackhole), Proxy::with(server.address(), Way::Closing));
    let hosts = format!("{},{}", swallows.host(), closes.host());
    let coordinator = ZooKeeperCoordinator::start(options(&hosts, "/x"));
    // The attempt at the one that swallows takes 3 s.
    let text = coordinator.connected(Duration::from_secs(4)).await.unwrap_err().to_string();
    println!("{text}");
    for words in [&*swallows.host(), "no answer within 3s", &*closes.host(), "closes the connection without an answer"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    timeout(Duration::from_secs(2), coordinator.close()).await.expect("a close does not wait for attempts");
    assert_eq!(coordinator.connected(PATIENCE).await, Err(CoordinationError::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_root_that_is_missing_is_made_with_its_parents() {
    let (server, root) = (shared_server(), format!("{}/a/b", fresh_root()));
    let coordinators: Vec<_> = (0..4).map(|_| ZooKeeperCoordinator::start(options(&server.host(), &root))).collect();
    for coordinator in &coordinators {
        coordinator.connected(PATIENCE).await.unwrap();
    }
    assert_eq!(coordinators[0].children("/").await.unwrap(), Some(vec![]));
    coordinators[0].create("/n", b"", NodeKind::Persistent).await.unwrap();
    // Where it is in ZooKeeper, and that its own root can be ours.
    let whole = connect(options(&server.host(), "/")).await;
    assert!(whole.get(&format!("{root}/n")).await.unwrap().is_some());
    let names = whole.children("/").await.unwrap().unwrap();
    assert!(names.iter().all(|name| name != "zookeeper" && name != ".sessions"), "{names:?}");
    let mut watched = whole.watch_node("/");
    shows(&mut watched, Option::is_some).await;
    assert!(matches!(whole.get("/.sessions").await, Err(CoordinationError::BadPath { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_options_never_have_a_session() {
    let options = ZooKeeperOptions { session_timeout: Duration::from_secs(1), ..options("127.0.0.1:1", "/x") };
    let coordinator = ZooKeeperCoordinator::start(options);
    let error = coordinator.connected(PATIENCE).await.unwrap_err();
    assert!(matches!(&error, CoordinationError::Failed(text) if text.contains("the least is 3s")), "{error}");
    assert_eq!(*coordinator.session().borrow(), SessionState::Away);
    coordinator.close().await;
    assert_eq!(*coordinator.session().borrow(), SessionState::Closed);
}

/// What the server grants counts, not what was asked for: its limit is 20 ticks, 10 s here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_counts_what_the_server_grants() {
    let options =
        ZooKeeperOptions { session_timeout: Duration::from_secs(60), ..options(&shared_server().host(), &fresh_root()) };
    let coordinator = connect(options).await;
    let state = *coordinator.session().borrow();
    let SessionState::Held { lease_until: Some(until), .. } = state else { panic!("{state:?}") };
    let left = until.saturating_duration_since(tokio::time::Instant::now());
    assert!(left < Duration::from_secs(7), "{left:?} of 10 s");
    assert!(left > Duration::from_secs(3), "{left:?} of 10 s");
}

/// A session ends, with what is its, however the coordinator goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_coordinator_frees_its_nodes_at_once() {
    let (server, root) = (shared_server(), fresh_root());
    let observer = connect(options(&server.host(), &root)).await;
    let mut slowest = Duration::ZERO;
    for round in 0..10 {
        let coordinator = ZooKeeperCoordinator::start(options(&server.host(), &root));
        coordinator.connected(PATIENCE).await.unwrap();
        coordinator.create("/e", b"", NodeKind::Ephemeral).await.unwrap();
        let mut watched = observer.watch_node("/e");
        let owner = Some(session_id(&coordinator));
        shows(&mut watched, |node| node.as_ref().is_some_and(|node| node.owner_session == owner)).await;
        let calls = (0..round).map(|_| coordinator.set("/e", b"", None));
        // Some calls are under way, and nobody waits for them.
        let _ = timeout(Duration::from_micros(100), futures_util::future::join_all(calls)).await;
        let dropped = Instant::now();
        drop(coordinator);
        shows(&mut watched, Option::is_none).await;
        slowest = slowest.max(dropped.elapsed());
    }
    println!("ephemeral nodes of a dropped coordinator were gone after {slowest:?} at most");
    assert!(slowest < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_is_dropped_before_its_first_session_is_gone() {
    let server = shared_server();
    let silent = Proxy::with(server.address(), Way::Held);
    let coordinator = ZooKeeperCoordinator::start(options(&silent.host(), &fresh_root()));
    hqueue_tests::wait("it dials", PATIENCE, || silent.open() > 0);
    drop(coordinator);
    silent.set(Way::Open);
    hqueue_tests::wait("it hangs up", PATIENCE, || silent.open() == 0);
    let accepted = silent.accepted();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(silent.accepted(), accepted, "it goes on dialling");
}

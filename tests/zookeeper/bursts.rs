//! Many calls at once, at the moments when the client crate wants to ping: beyond its limits it stops for ever, or mixes up
//! answers.

use std::time::{Duration, Instant};

use hqueue_coordination::{Coordinator, NodeKind};
use hqueue_tests::zookeeper::{Proxy, Way};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::{
    PATIENCE, connect, fresh_root, is_long, make_all, next_session, options, session_id, shared_server, with_timeout,
};

/// The crate pings when 2T/3 have gone by since the last ping and nothing is under way. Bursts begin at random moments around
/// that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_is_lost_in_bursts_at_the_ping() {
    const CALLS: usize = 200;
    const TIMEOUT: Duration = Duration::from_secs(6);
    let (least, length) = if is_long() { (1000, 600) } else { (50, 9) };
    let mut random = hqueue_tests::seed("no_answer_is_lost_in_bursts_at_the_ping");
    let (server, root) = (shared_server(), fresh_root());
    let coordinator = connect(with_timeout(TIMEOUT, &server.host(), &root)).await;
    let nodes: Vec<String> = (0..CALLS).map(|n| format!("/n{n}")).collect();
    make_all(&coordinator, &nodes).await;
    let (began, id) = (Instant::now(), session_id(&*coordinator));
    let (mut slowest, mut errors) = (Duration::ZERO, 0);
    let ping = TIMEOUT * 2 / 3;
    let mut bursts = 0;
    while bursts < least || began.elapsed() < Duration::from_secs(length) {
        let mut calls = JoinSet::new();
        for path in &nodes {
            let (coordinator, path) = (coordinator.clone(), path.clone());
            // The answer names the version, so somebody else's would be noticed.
            calls.spawn(async move { coordinator.set(&path, path.as_bytes(), Some(bursts)).await });
        }
        let start = Instant::now();
        while let Some(answer) = timeout(PATIENCE, calls.join_next()).await.expect("every call is answered") {
            match answer.unwrap() {
                Ok(version) => assert_eq!(version, bursts + 1, "an answer to another call"),
                Err(_) => errors += 1,
            }
        }
        slowest = slowest.max(start.elapsed());
        bursts += 1;
        // Half of the bursts begin just before the next ping is due, the others anywhere.
        let since = began.elapsed().as_millis() % ping.as_millis();
        let to_ping = ping - Duration::from_millis(u64::try_from(since).unwrap());
        let pause =
            if to_ping < Duration::from_millis(400) { to_ping.mul_f64(random.f64()) } else { ping.mul_f64(random.f64() / 10.0) };
        sleep(pause).await;
    }
    println!(
        "{} writes in {bursts} bursts over {:?}: the slowest burst took {slowest:?}, {errors} errors",
        CALLS * bursts as usize,
        began.elapsed()
    );
    assert_eq!((errors, session_id(&*coordinator)), (0, id), "all were answered in one session");
}

/// The largest payloads, more calls than can be under way, and answers that nobody waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_and_dropped_calls_at_once_do_no_harm() {
    let (server, root) = (shared_server(), fresh_root());
    let coordinator = connect(options(&server.host(), &root)).await;
    let id = session_id(&*coordinator);
    let large = vec![7; hqueue_coordination::MAX_PAYLOAD_BYTES];
    coordinator.create("/large", &large, NodeKind::Persistent).await.unwrap();
    for _ in 0..5 {
        let mut calls = JoinSet::new();
        for n in 0..300_u64 {
            let (coordinator, large) = (coordinator.clone(), large.clone());
            calls.spawn(async move {
                let write = async { coordinator.set("/large", &large, None).await.map(drop) };
                let read =
                    async { coordinator.get("/large").await.map(|node| assert_eq!(node.unwrap().payload.len(), large.len())) };
                match n % 3 {
                    0 => write.await.unwrap(),
                    1 => read.await.unwrap(),
                    // Given up at any moment.
                    _ => drop(timeout(Duration::from_millis(n / 3), async { tokio::join!(write, read) }).await),
                }
            });
        }
        while let Some(done) = timeout(PATIENCE, calls.join_next()).await.expect("every call is answered") {
            done.unwrap();
        }
    }
    assert_eq!(session_id(&*coordinator), id);
}

/// Large calls under way when the network goes silent, and then breaks: the client crate can stop for ever in such a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_calls_in_an_outage_are_answered() {
    let (server, root) = (shared_server(), fresh_root());
    let proxy = Proxy::to(server.address());
    let coordinator = connect(options(&proxy.host(), &root)).await;
    let large = vec![7; hqueue_coordination::MAX_PAYLOAD_BYTES];
    coordinator.create("/large", &large, NodeKind::Persistent).await.unwrap();
    for round in 0..4_u64 {
        let id = session_id(&*coordinator);
        let mut calls = JoinSet::new();
        for n in 0..100 {
            let (coordinator, large) = (coordinator.clone(), large.clone());
            calls.spawn(async move {
                if n % 2 == 0 {
                    coordinator.set("/large", &large, None).await.map(drop)
                } else {
                    coordinator.get("/large").await.map(drop)
                }
            });
        }
        // At another moment each time: nothing, some or all of it has passed.
        sleep(Duration::from_millis(round * 12)).await;
        proxy.set(Way::Held);
        sleep(Duration::from_millis(400)).await;
        proxy.cut();
        proxy.set(Way::Open);
        let cut = Instant::now();
        while let Some(answer) = timeout(PATIENCE, calls.join_next()).await.expect("every call is answered") {
            if let Err(error) = answer.unwrap() {
                assert!(error.is_retryable(), "{error}");
            }
        }
        assert!(cut.elapsed() < Duration::from_secs(1), "calls are answered when the connection is over, not later");
        next_session(&*coordinator, id).await;
        coordinator.get("/large").await.unwrap();
    }
}

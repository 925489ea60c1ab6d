//! Connected to a real ZooKeeper: brokers are found and followed; who cannot be reached is named.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::time::{Duration, Instant};

use hqueue::{ConnectOptions, Error, HQueue, Listeners, Scan, Subscription};
use hqueue_broker::Coordination;
use hqueue_coordination::zookeeper::ZooKeeperOptions;
use support::cluster::{Cluster, options};
use support::{Broker, PATIENCE, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn brokers_are_found_and_followed() {
    let mut cluster = Cluster::start(1).await;
    let hqueue = cluster.connect().await;
    let queue = cluster.create_queue(&hqueue, 2).await;
    queue.put_to(0, "t", "one").await.unwrap();
    assert_eq!(queue.partitions().await.unwrap(), 2);
    let mut scanner = queue.queue_scanner(Scan::all()).await.unwrap();
    assert_eq!(scanner.next().await.unwrap().unwrap().value, "one");
    // The only broker that it knew goes, another one comes: calls go there.
    cluster.add_broker().await;
    cluster.brokers[0].stop().await;
    eventually("the other broker answers", || async { hqueue.admin().list_queues().await.is_ok() }).await;
    let error = queue.put_to(0, "t", "two").await.unwrap_err();
    assert!(error.to_string().contains("offline") || error.to_string().contains("away"), "{error}");
    // And back: where the queue's messages are.
    cluster.brokers[0].start_again().await;
    eventually("a put is taken again", || async { queue.put_to(0, "t", "two").await.is_ok() }).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_zookeeper_the_hosts_are_named_in_time() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let began = Instant::now();
    let error = HQueue::connect_within(&format!("zk://{closed}/somewhere"), Duration::from_millis(1500)).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(matches!(error, Error::Unreachable(_)) && error.to_string().contains(&closed.to_string()), "{error}");
    assert!(matches!(HQueue::connect("zk://nobody:0").await, Err(Error::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_broker_that_is_said_in_time() {
    let cluster = Cluster::start(0).await;
    let began = Instant::now();
    let error = HQueue::connect_within(&cluster.url(), Duration::from_secs(2)).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let place = format!("zk://{}/hqueue", cluster.zookeeper.host());
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert!(error.to_string().contains("none is registered") && error.to_string().contains(&place), "{error}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_ends_with_the_last_of_what_shares_it() {
    let cluster = Cluster::start(1).await;
    let sessions = || async {
        let answer = cluster.zookeeper.ask("dump").unwrap_or_default();
        answer.lines().filter(|line| line.contains("/hqueue/.sessions/")).count()
    };
    eventually("the broker and the test have sessions", || async { sessions().await == 2 }).await;
    let hqueue = cluster.connect().await;
    let (clone, scanner) = (hqueue.clone(), hqueue.queue("nowhere").unwrap().partition_scanner(0, Scan::all()));
    eventually("it has a session", || async { sessions().await == 3 }).await;
    drop(hqueue);
    drop(clone);
    assert_eq!(sessions().await, 3, "a scanner follows the brokers still");
    drop(scanner);
    eventually("the session has ended", || async { sessions().await == 2 }).await;
    assert!(cluster.nodes.get("/brokers").await.unwrap().is_some());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_have_a_user_are_reached_with_it() {
    let cluster = Cluster::start(0).await;
    let auth = Some(("hqueue".to_owned(), "secret".to_owned()));
    let root = "/theirs".to_owned();
    let theirs = ZooKeeperOptions { auth: auth.clone(), root, ..options(&cluster.zookeeper) };
    let mut broker = Broker::start_in(Coordination::ZooKeeper(theirs)).await;
    let url = format!("{}/theirs", cluster.url());
    let error = HQueue::connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("NoAuth"), "{error}");
    let options = ConnectOptions { zookeeper_auth: auth, connect_timeout: PATIENCE, ..ConnectOptions::default() };
    assert!(!format!("{options:?}").contains("secret"));
    let hqueue = HQueue::connect_with(&url, options).await.unwrap();
    let queue = cluster.create_queue(&hqueue, 1).await;
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::default());
    subscriber.start().await.unwrap();
    subscriber.stop("test").await;
    broker.stop().await;
    cluster.stop().await;
}

//! Subscribers that register themselves in a real ZooKeeper: which nodes stand there, in whose session, and until when.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::time::Duration;

use hqueue::{ErrorCode, Listeners, Position, SubscriberSpec, Subscription};
use hqueue_coordination::NodeKind;
use support::cluster::{Cluster, QUEUE, path, session};
use support::{Seen, eventually};

const BOTH: &[&str] = &["address", "topics"];

#[tokio::test(flavor = "multi_thread")]
async fn it_registers_gets_messages_and_leaves_nothing() {
    let cluster = Cluster::start(2).await;
    let queue = cluster.create_queue(&cluster.connect().await, 4).await;
    for p in 0..4 {
        queue.put_to(p, "t", format!("early {p}")).await.unwrap();
    }
    let seen = Seen::default();
    let wanted = Subscription::new("s").topic("t").from(Position::Earliest);
    let mut subscriber = queue.create_subscriber(wanted, Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    for p in 0..4 {
        let (topics, address) = (cluster.node(p, "topics").await.unwrap(), cluster.node(p, "address").await.unwrap());
        assert_eq!(topics.payload, br#"["t"]"#);
        assert!(topics.owner_session.is_some() && topics.owner_session == address.owner_session);
        let text = String::from_utf8(address.payload).unwrap();
        assert!(text.contains(&format!("\"address\":\"{}\"", subscriber.address().unwrap())), "{text}");
    }
    eventually("what was there before", || async { seen.values().len() == 4 }).await;
    queue.put_to(3, "t", "later").await.unwrap();
    queue.put_to(3, "other", "not wanted").await.unwrap();
    eventually("what came later", || async { seen.values().last().is_some_and(|v| v == "later") }).await;
    subscriber.stop("test").await;
    for p in 0..4 {
        assert_eq!(cluster.registered(p).await, [""; 0], "an orderly leave removes its nodes");
    }
    queue.put_to(0, "t", "while it is away").await.unwrap();
    subscriber.start().await.unwrap();
    eventually("it goes on where it was", || async { seen.values().len() == 6 }).await;
    assert_eq!(seen.values()[5], "while it is away");
    subscriber.stop("test").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_begins_where_it_is_told() {
    let cluster = Cluster::start(1).await;
    let queue = cluster.create_queue(&cluster.connect().await, 3).await;
    let mut ids = Vec::new();
    for value in ["a", "b"] {
        for p in 0..3 {
            ids.push(queue.put_to(p, "t", format!("{p}{value}")).await.unwrap().id);
        }
    }
    let seen = Seen::default();
    let wanted =
        Subscription::new("s").partition_from(0, Position::Earliest).partition_from(1, Position::Id(ids[4])).partition(2);
    let mut subscriber = queue.create_subscriber(wanted, Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    for p in 0..3 {
        queue.put_to(p, "t", format!("{p}c")).await.unwrap();
    }
    eventually("all that is wanted", || async { seen.values().len() == 6 }).await;
    let mut values = seen.values();
    values.sort();
    assert_eq!(values, ["0a", "0b", "0c", "1b", "1c", "2c"]);
    subscriber.stop("test").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_vanish_or_are_changed_are_put_right() {
    let cluster = Cluster::start(1).await;
    let queue = cluster.create_queue(&cluster.connect().await, 2).await;
    let mut subscriber = queue.create_subscriber(Subscription::new("s").topic("t"), Listeners::default());
    subscriber.start().await.unwrap();
    let address = cluster.node(0, "address").await.unwrap();
    cluster.nodes.delete(&path(0, "address"), None).await.unwrap();
    eventually("the address is back", || async {
        cluster.node(0, "address").await.is_some_and(|n| n.payload == address.payload)
    })
    .await;
    cluster.nodes.set(&path(1, "topics"), b"[\"other\"]", None).await.unwrap();
    let is_right = || async { cluster.node(1, "topics").await.is_some_and(|n| n.payload == br#"["t"]"#) };
    eventually("the topics are right again", is_right).await;
    // Its whole place in a partition.
    for name in ["address", "topics"] {
        cluster.nodes.delete(&path(0, name), None).await.unwrap();
    }
    let deleted = cluster.nodes.delete(&format!("/queues/{QUEUE}/0/s"), None).await;
    cluster.wait_for_nodes(0, BOTH).await;
    // It may have been faster than us: then the place was not empty.
    assert!(matches!(deleted, Ok(()) | Err(hqueue_coordination::CoordinationError::NotEmpty(_))), "{deleted:?}");
    subscriber.stop("test").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_queue_loses_comes_back_with_it() {
    let cluster = Cluster::start(1).await;
    let hqueue = cluster.connect().await;
    let queue = cluster.create_queue(&hqueue, 1).await;
    let seen = Seen::default();
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    hqueue.admin().delete_subscriber(QUEUE, "s").await.unwrap();
    let has_options = || async { cluster.nodes.get(&format!("/queues/{QUEUE}/subscribers/s")).await.unwrap().is_some() };
    eventually("it has subscribed again", has_options).await;
    cluster.wait_for_nodes(0, BOTH).await;
    // Dropped, and made anew with more partitions.
    hqueue.admin().disable_queue(QUEUE).await.unwrap();
    hqueue.admin().drop_queue(QUEUE).await.unwrap();
    let queue = cluster.create_queue(&hqueue, 3).await;
    for p in 0..3 {
        cluster.wait_for_nodes(p, BOTH).await;
    }
    eventually("it gets messages", || async {
        queue.put_to(2, "t", "x").await.unwrap();
        !seen.values().is_empty()
    })
    .await;
    subscriber.stop("test").await;
    cluster.stop().await;
}

/// Cases Z1 and Z3: another process's nodes stand there, until its session ends.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_name_is_taken_it_has_one_of_its_own() {
    let cluster = Cluster::start(1).await;
    let queue = cluster.create_queue(&cluster.connect().await, 1).await;
    // A process that was killed: nobody listens there any more.
    let dead = session(&cluster.zookeeper).await;
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    hqueue_coordination::create_all(&*dead, &format!("/queues/{QUEUE}/0/s")).await.unwrap();
    dead.create(&path(0, "topics"), b"[]", NodeKind::Ephemeral).await.unwrap();
    dead.create(&path(0, "address"), nowhere.to_string().as_bytes(), NodeKind::Ephemeral).await.unwrap();
    let seen = Seen::default();
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    let names = cluster.registered(0).await;
    let own: Vec<_> = names.iter().filter(|name| name.contains('-')).collect();
    assert_eq!((names.len(), own.len()), (4, 2), "{names:?}");
    // Which of the two is called until then is for the broker to decide.
    queue.put_to(0, "t", "meanwhile").await.unwrap();
    // The dead one's session ends: the plain names are free.
    dead.close().await;
    cluster.wait_for_nodes(0, BOTH).await;
    queue.put_to(0, "t", "again").await.unwrap();
    seen.wait_for(&["meanwhile", "again"]).await;
    subscriber.stop("test").await;
    assert_eq!(cluster.registered(0).await, [""; 0]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_one_name_share_a_session() {
    let cluster = Cluster::start(1).await;
    let queue = cluster.create_queue(&cluster.connect().await, 2).await;
    let seen = Seen::default();
    let mut first = queue.create_subscriber(Subscription::new("s"), Listeners::one(seen.listener()));
    let mut second = queue.create_subscriber(Subscription::new("s"), Listeners::one(seen.listener()));
    first.start().await.unwrap();
    second.start().await.unwrap();
    assert_eq!(cluster.registered(0).await.len(), 4);
    first.stop("test").await;
    assert_eq!(cluster.registered(1).await.len(), 2, "the other one's stay");
    for p in 0..2 {
        queue.put_to(p, "t", "x").await.unwrap();
    }
    seen.wait_for(&["x", "x"]).await;
    second.stop("test").await;
    assert_eq!(cluster.registered(0).await, [""; 0]);
    cluster.stop().await;
}

/// Cases Z4 and Z1: ZooKeeper is gone for a while; afterwards everything stands there again, in a session that lives.
#[tokio::test(flavor = "multi_thread")]
async fn it_registers_again_in_a_new_session() {
    let mut cluster = Cluster::start(1).await;
    let queue = cluster.create_queue(&cluster.connect().await, 2).await;
    let seen = Seen::default();
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    let before = cluster.node(0, "address").await.unwrap();
    // The session lives on at the server for a while: its nodes are still there when the next one begins.
    cluster.zookeeper.kill();
    tokio::task::block_in_place(|| cluster.zookeeper.restart());
    let is_new = || async {
        let node = cluster.nodes.get(&path(0, "address")).await.ok().flatten();
        node.is_some_and(|node| node.owner_session != before.owner_session && node.payload == before.payload)
    };
    eventually("it stands in another session", is_new).await;
    for p in 0..2 {
        eventually("nothing else stands there", || async {
            cluster.nodes.children(&format!("/queues/{QUEUE}/{p}/s")).await.is_ok_and(|names| names.unwrap_or_default() == BOTH)
        })
        .await;
    }
    eventually("a put is taken", || async { queue.put_to(1, "t", "after").await.is_ok() }).await;
    eventually("it is delivered", || async { seen.values().contains(&"after".to_owned()) }).await;
    subscriber.stop("test").await;
    assert_eq!(cluster.registered(0).await, [""; 0]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_without_a_stop_it_takes_its_nodes_back() {
    let cluster = Cluster::start(1).await;
    let hqueue = cluster.connect().await;
    let queue = cluster.create_queue(&hqueue, 1).await;
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::default());
    subscriber.start().await.unwrap();
    cluster.wait_for_nodes(0, BOTH).await;
    drop(subscriber);
    cluster.wait_for_nodes(0, &[]).await;
    drop(hqueue);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    let cluster = Cluster::start(1).await;
    let hqueue = cluster.connect().await;
    let start = async |queue: &str, wanted: Subscription| {
        let mut subscriber = hqueue.queue(queue).unwrap().create_subscriber(wanted, Listeners::default());
        let error = subscriber.start().await.unwrap_err();
        assert_eq!(subscriber.address(), None);
        error
    };
    assert_eq!(start("nowhere", Subscription::new("s")).await.code(), Some(ErrorCode::NotFound));
    cluster.create_queue(&hqueue, 2).await;
    assert_eq!(start(QUEUE, Subscription::new("bad name")).await.code(), Some(ErrorCode::Invalid));
    let error = start(QUEUE, Subscription::new("s").partition(2)).await;
    assert!(error.code() == Some(ErrorCode::Invalid) && error.to_string().contains("no partition 2: it has 2"), "{error}");
    let fixed = SubscriberSpec { name: "s".to_owned(), addresses: vec!["127.0.0.1:1".to_owned()], ..SubscriberSpec::default() };
    hqueue.admin().add_subscriber(QUEUE, &fixed).await.unwrap();
    let error = start(QUEUE, Subscription::new("s")).await;
    assert!(error.code() == Some(ErrorCode::Exists) && error.to_string().contains("fixed endpoints (127.0.0.1:1)"), "{error}");
    assert_eq!(cluster.registered(0).await, [""; 0]);
    cluster.stop().await;
}

/// Longer than the session of anybody here.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_zookeeper_is_away_ends() {
    let mut cluster = Cluster::start(1).await;
    let queue = cluster.create_queue(&cluster.connect().await, 1).await;
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::default());
    subscriber.start().await.unwrap();
    cluster.zookeeper.kill();
    tokio::time::timeout(Duration::from_secs(20), subscriber.stop("test")).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), cluster.stop()).await.expect("the broker's stop ends, too");
}

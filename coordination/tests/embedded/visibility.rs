//! A write is seen once it is durable, and many at once cost one sync.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use hqueue_coordination::{CoordinationError, Coordinator, NodeKind, Observed};
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio::time::timeout;

use crate::gate::GatedDisk;
use crate::support::open;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_durable_is_not_seen() {
    let disk = GatedDisk::default();
    let c = open(&disk);
    c.create("/n", b"old", NodeKind::Persistent).await.unwrap();
    let (watched, names) = (c.watch_node("/n"), c.watch_children("/"));
    disk.shut();
    let writes = [
        tokio::spawn({
            let c = c.clone();
            async move { c.set("/n", b"new", None).await.map(|_| ()) }
        }),
        tokio::spawn({
            let c = c.clone();
            async move { c.create("/m", b"", NodeKind::Persistent).await.map(|_| ()) }
        }),
    ];
    disk.wait_for_sync();
    assert_eq!(c.get("/n").await.unwrap().unwrap().payload, b"old");
    assert_eq!(c.get("/m").await.unwrap(), None);
    assert_eq!(c.children("/").await.unwrap(), Some(vec!["n".to_owned()]));
    assert!(!watched.has_changed().unwrap() && !names.has_changed().unwrap());
    assert!(matches!(&*c.watch_node("/n").borrow(), Observed::Seen(Some(node)) if node.payload == b"old"));
    assert!(writes.iter().all(|write| !write.is_finished()));
    disk.open_gate();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(c.get("/n").await.unwrap().unwrap().payload, b"new");
    assert!(watched.has_changed().unwrap(), "watchers know before the call returns");
    assert_eq!(c.children("/").await.unwrap(), Some(vec!["m".to_owned(), "n".to_owned()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writes_share_a_sync() {
    const WRITES: usize = 2000;
    let disk = GatedDisk::default();
    let c = open(&disk);
    c.create("/n", b"", NodeKind::Persistent).await.unwrap();
    disk.shut();
    let before = disk.syncs();
    let mut tasks = JoinSet::new();
    tasks.spawn({
        let c = c.clone();
        async move { c.set("/n", b"first", None).await }
    });
    disk.wait_for_sync();
    // While that one waits for its sync, all the others gather: each is polled once here, and waits in the writer's queue then.
    let mut others: Vec<_> = (0..WRITES).map(|_| c.set("/n", b"other", None)).collect();
    unconstrained(poll_fn(|context| {
        others.iter_mut().for_each(|other| assert!(other.as_mut().poll(context).is_pending()));
        Poll::Ready(())
    }))
    .await;
    disk.open_gate();
    for other in others {
        other.await.unwrap();
    }
    assert_eq!(tasks.join_all().await, [Ok(1)]);
    assert_eq!(c.get("/n").await.unwrap().unwrap().version, i32::try_from(WRITES + 1).unwrap());
    assert_eq!(disk.syncs() - before, 2);
}

/// What waits is bounded: the rest waits outside, and all of it is carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_has_room_waits_for_it() {
    const WRITES: usize = 300;
    let disk = GatedDisk::default();
    let c = open(&disk);
    c.create("/n", b"", NodeKind::Persistent).await.unwrap();
    disk.shut();
    let mut tasks = JoinSet::new();
    for _ in 0..WRITES {
        let c = c.clone();
        tasks.spawn(async move { c.set("/n", &vec![1; 64 * 1024], None).await });
    }
    disk.wait_for_sync();
    disk.open_gate();
    let done = timeout(Duration::from_secs(20), tasks.join_all()).await.unwrap();
    assert!(done.iter().all(Result::is_ok));
    assert_eq!(c.get("/n").await.unwrap().unwrap().version, i32::try_from(WRITES).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_waits_for_the_write_in_hand() {
    let disk = GatedDisk::default();
    let c = open(&disk);
    disk.shut();
    let write = tokio::spawn({
        let c = c.clone();
        async move { c.create("/n", b"", NodeKind::Persistent).await }
    });
    disk.wait_for_sync();
    let closing = tokio::spawn({
        let c = c.clone();
        async move { c.close().await }
    });
    let mut session = c.session();
    session.wait_for(|state| *state == hqueue_coordination::SessionState::Closed).await.unwrap();
    assert_eq!(c.set("/n", b"", None).await, Err(CoordinationError::Closed));
    assert!(!closing.is_finished());
    disk.open_gate();
    write.await.unwrap().unwrap();
    timeout(Duration::from_secs(10), closing).await.unwrap().unwrap();
    drop(c);
    assert!(open(&disk).get("/n").await.unwrap().is_some());
}

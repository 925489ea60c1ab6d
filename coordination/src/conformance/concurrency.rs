//! Many at once.

use std::future::ready;

use futures_util::future::select;
use tokio::task::JoinSet;

use super::{Harness, make, node};
use crate::{CoordinationError as E, NodeKind};

const TASKS: usize = 32;

pub async fn compare_and_set_loses_no_update<H: Harness>() {
    const EACH: usize = 8;
    let harness = H::start().await;
    make(&*harness.coordinator(), "/counter", b"0").await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let c = harness.coordinator();
        tasks.spawn(async move {
            let mut done = 0;
            while done < EACH {
                let read = c.get("/counter").await.unwrap().unwrap();
                let count: usize = String::from_utf8(read.payload).unwrap().parse().unwrap();
                match c.set("/counter", (count + 1).to_string().as_bytes(), Some(read.version)).await {
                    Ok(version) => {
                        assert_eq!(version, read.version + 1);
                        done += 1;
                    }
                    Err(E::BadVersion { wanted, .. }) => assert_eq!(wanted, read.version),
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let total = TASKS * EACH;
    let expected = node(total.to_string().as_bytes(), i32::try_from(total).unwrap());
    assert_eq!(harness.coordinator().get("/counter").await.unwrap(), Some(expected));
}

pub async fn one_of_many_creators_wins<H: Harness>() {
    let harness = H::start().await;
    let mut tasks = JoinSet::new();
    for n in 0..TASKS {
        let c = harness.coordinator();
        let kind = if n % 2 == 0 { NodeKind::Persistent } else { NodeKind::Ephemeral };
        tasks.spawn(async move { (n, c.create("/n", n.to_string().as_bytes(), kind).await) });
    }
    let mut winners = Vec::new();
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            (n, Ok(_)) => winners.push(n),
            (_, Err(error)) => assert_eq!(error, E::NodeExists("/n".to_owned())),
        }
    }
    assert_eq!(winners.len(), 1);
    let found = harness.coordinator().get("/n").await.unwrap().unwrap();
    assert_eq!((found.payload, found.version), (winners[0].to_string().into_bytes(), 0));
}

pub async fn one_of_many_deleters_wins<H: Harness>() {
    let harness = H::start().await;
    make(&*harness.coordinator(), "/n", b"").await;
    let mut tasks = JoinSet::new();
    for n in 0..TASKS {
        let c = harness.coordinator();
        tasks.spawn(async move { c.delete("/n", (n % 2 == 0).then_some(0)).await });
    }
    let mut winners = 0;
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            Ok(()) => winners += 1,
            Err(error) => assert_eq!(error, E::NoNode("/n".to_owned())),
        }
    }
    assert_eq!(winners, 1);
}

pub async fn a_parent_is_deleted_or_gets_a_child<H: Harness>() {
    let harness = H::start().await;
    for round in 0..20 {
        let c = harness.coordinator();
        make(&*c, "/p", b"").await;
        let create = async {
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            c.create("/p/n", b"", NodeKind::Persistent).await
        };
        match tokio::join!(create, c.delete("/p", None)) {
            (Ok(_), Err(E::NotEmpty(_))) => c.delete("/p/n", None).await.unwrap(),
            (Err(E::NoNode(_)), Ok(())) => continue,
            other => panic!("{other:?}"),
        }
        c.delete("/p", None).await.unwrap();
    }
}

pub async fn many_writes_at_once_all_land<H: Harness>() {
    const NODES: usize = 100;
    const WRITES: i32 = 10;
    let harness = H::start().await;
    let mut tasks = JoinSet::new();
    for n in 0..NODES {
        let c = harness.coordinator();
        tasks.spawn(async move {
            let path = format!("/n{n}");
            make(&*c, &path, b"0").await;
            for write in 1..=WRITES {
                assert_eq!(c.set(&path, write.to_string().as_bytes(), Some(write - 1)).await, Ok(write));
                assert_eq!(c.get(&path).await.unwrap(), Some(node(write.to_string().as_bytes(), write)));
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(harness.coordinator().children("/").await.unwrap().unwrap().len(), NODES);
}

/// A call that was dropped may be carried out or not, at any time; the others go on.
pub async fn a_dropped_call_disturbs_no_other<H: Harness>() {
    let harness = H::start().await;
    let c = harness.coordinator();
    make(&*c, "/n", b"").await;
    make(&*c, "/m", b"").await;
    for round in 1..=50 {
        // Polled once at most, then dropped.
        let _ = select(c.set("/n", b"dropped", None), ready(())).await;
        assert_eq!(c.set("/m", b"kept", None).await, Ok(round));
        assert!(c.set("/n", b"kept", None).await.unwrap() >= round);
    }
}

//! Power cuts: everything acknowledged is there, and every call happened whole or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use hqueue_coordination::{CoordinationError as E, Coordinator, NodeKind, name_of, parent_of};
use hqueue_storage::disk::{PowerCut, SimulatedDisk};
use tokio::task::JoinSet;

use crate::support::{Dump, dump, open, try_open};

/// One call, chosen at random, on a small tree.
async fn random_call(c: &dyn Coordinator, model: &mut Dump, random: &mut fastrand::Rng) -> Result<(), E> {
    let names = ["a", "b", "ab"];
    let mut path = format!("/{}", names[random.usize(..3)]);
    if random.bool() {
        path = format!("{path}/{}", names[random.usize(..3)]);
    }
    let payload: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
    // What the call will have done if it is carried out. Refusals of what does not fit the tree are left to the coordinator.
    let mut after = model.clone();
    let answer = match random.u8(..4) {
        0 | 1 => {
            after.insert(path.clone(), (payload.clone(), 0));
            c.create(&path, &payload, NodeKind::Persistent).await.map(|_| ())
        }
        2 => {
            after.entry(path.clone()).and_modify(|node| *node = (payload.clone(), node.1 + 1));
            c.set(&path, &payload, None).await.map(|_| ())
        }
        _ => {
            after.remove(&path);
            c.delete(&path, None).await
        }
    };
    match answer {
        Ok(()) => *model = after,
        Err(E::NodeExists(_)) => assert!(model.contains_key(&path)),
        Err(E::NoNode(missing)) => assert!(!model.contains_key(&missing)),
        Err(E::NotEmpty(_)) => assert!(model.keys().any(|below| parent_of(below) == Some(&*path))),
        Err(error) => {
            // It may have happened or not.
            assert!(error.may_have_happened(), "{error}");
            *model = after;
            return Err(error);
        }
    }
    Ok(())
}

#[tokio::test]
async fn one_call_after_the_other_survives_any_power_cut() {
    let base = fastrand::u64(..);
    println!("seed {base}");
    for seed in (0..150).map(|n| base.wrapping_add(n)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = SimulatedDisk::new();
        let mut before = Dump::new();
        let mut model = Dump::new();
        for life in 0..4 {
            disk.cut_power_after(Some(random.u64(..60)));
            if let Ok(c) = try_open(&disk) {
                let found = dump(&*c).await;
                assert!(found == before || found == model, "seed {seed}, life {life}: {found:?}\n{before:?}\n{model:?}");
                (before, model) = (found.clone(), found);
                while random_call(&*c, &mut model, &mut random).await.is_ok() {
                    before = model.clone();
                }
                assert_eq!(dump(&*c).await, before, "seed {seed}, life {life}: what failed is not seen");
            }
            disk = disk.power_cut(PowerCut::Random(random.u64(..)));
        }
        let found = dump(&*open(&disk)).await;
        assert!(found == before || found == model, "seed {seed}, the end: {found:?}\n{before:?}\n{model:?}");
        assert_eq!(dump(&*open(&disk)).await, found);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_lose_nothing_that_was_acknowledged() {
    const WRITERS: usize = 20;
    let base = fastrand::u64(..);
    println!("seed {base}");
    for seed in (0..40).map(|n| base.wrapping_add(n)) {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = SimulatedDisk::new();
        let c = open(&disk);
        for n in 0..WRITERS {
            c.create(&format!("/n{n}"), b"0", NodeKind::Persistent).await.unwrap();
        }
        disk.cut_power_after(Some(random.u64(..100)));
        let acknowledged: Arc<[AtomicI32]> = (0..WRITERS).map(|_| AtomicI32::new(0)).collect();
        let mut tasks = JoinSet::new();
        for n in 0..WRITERS {
            let (c, acknowledged) = (c.clone(), Arc::clone(&acknowledged));
            tasks.spawn(async move {
                for version in 1.. {
                    match c.set(&format!("/n{n}"), version.to_string().as_bytes(), Some(version - 1)).await {
                        Ok(_) => acknowledged[n].store(version, Ordering::Release),
                        Err(error) => return assert!(error.may_have_happened(), "{error}"),
                    }
                }
            });
        }
        tasks.join_all().await;
        drop(c);
        let found = dump(&*open(&disk.power_cut(PowerCut::Random(random.u64(..))))).await;
        assert_eq!(found.len(), WRITERS);
        for (path, (payload, version)) in found {
            let n: usize = name_of(&path).trim_start_matches('n').parse().unwrap();
            let known = acknowledged[n].load(Ordering::Acquire);
            assert!(version == known || version == known + 1, "seed {seed}, {path}: {version}, acknowledged {known}");
            assert_eq!(payload, version.to_string().as_bytes());
        }
    }
}

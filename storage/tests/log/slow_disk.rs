//! A sync that takes long: nothing is visible or answered before it has ended, what waits is bounded, and nobody else waits.

use std::time::{Duration, Instant};

use hqueue_protocol::id::MessageId;
use hqueue_storage::conformance::{Queue, batch};
use hqueue_storage::store::{Append, QueueSpec, StoreError, TailRead};
use uuid::Uuid;

use crate::support::{Lab, Lie, Opened, ProcessDisk, run};

/// A store with a message in it, whose syncs are held up from now on.
async fn held(lab: &Lab) -> (ProcessDisk, Opened, MessageId) {
    let disk = ProcessDisk::new(lab.disk(), Lie::None);
    let opened = lab.open(disk.clone()).await;
    let first = opened.queue.put(0, &["first"]).await[0];
    disk.hold_syncs();
    (disk, opened, first)
}

#[test]
fn nothing_is_visible_or_answered_before_it_is_synced() {
    run(async {
        let lab = Lab::new(3);
        let (disk, opened, first) = held(&lab).await;
        let queue = &opened.queue;
        let mut waiting: Vec<Append> = (0..100).map(|_| queue.store.append(0, batch("t", &["v"; 3])).unwrap()).collect();
        assert!(waiting.iter().all(|append| append.ids.iter().count() == 3), "ids are known at once");
        for _ in 0..100 {
            assert!(waiting.iter_mut().all(|append| append.done.try_recv().is_err()), "answered before it is synced");
            assert_eq!(queue.committed(0).last, Some(first));
            assert!(matches!(queue.tail(0, first.successor()), TailRead::End));
            assert_eq!(queue.all(0).await.ids(), [first]);
            assert_eq!(queue.count(0, MessageId::MIN, &[], 0).await, (1, true));
            assert_eq!(queue.commits.commits(0), 1, "told of a commit that is none");
        }
        let before = opened.store.counters();
        disk.release_syncs();
        let mut ids = vec![first];
        for append in waiting {
            ids.extend(append.ids.iter());
            append.done.await.unwrap().unwrap();
        }
        assert_eq!(queue.all(0).await.ids(), ids);
        let commits = opened.store.counters().commits - before.commits;
        assert!((1..=3).contains(&commits), "what has gathered was written in {commits} groups");
        opened.store.close().await;
    });
}

#[test]
fn what_waits_is_bounded() {
    run(async {
        let mut lab = Lab::new(3);
        lab.options.waiting_bytes = 1 << 20;
        let (disk, opened, first) = held(&lab).await;
        let value = "x".repeat(10_000);
        let mut waiting = Vec::new();
        let refusal = loop {
            match opened.queue.store.append(1, batch("t", &[&value[..]])) {
                Ok(append) => waiting.push(append),
                Err(error) => break error,
            }
            assert!(waiting.len() < 400, "4 MB wait for a disk that does nothing");
        };
        assert!(refusal.is_retryable(), "{refusal}");
        let StoreError::Busy { waiting_bytes, limit_bytes } = refusal else { panic!("{refusal}") };
        assert!(limit_bytes == 1 << 20 && waiting_bytes <= limit_bytes, "{waiting_bytes} of {limit_bytes} bytes wait");
        disk.release_syncs();
        let count = waiting.len();
        for append in waiting {
            append.done.await.unwrap().unwrap();
        }
        opened.queue.put(1, &["taken again"]).await;
        assert_eq!(opened.queue.all(1).await.messages.len(), count + 1);
        assert_eq!(opened.queue.all(0).await.ids(), [first]);
        opened.store.close().await;
    });
}

/// The other queue is on another disk, as it were: only the file of the first one is slow.
#[test]
fn a_slow_sync_holds_up_no_reader_and_no_open() {
    run(async {
        let mut lab = Lab::new(3);
        lab.options.tail_cache_bytes = 0;
        let (disk, opened, first) = held(&lab).await;
        let append = opened.queue.store.append(0, batch("t", &["slow"])).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        for _ in 0..50 {
            assert_eq!(opened.queue.all(0).await.ids(), [first], "from the disk");
            assert!(Instant::now() < deadline, "readers wait for the sync");
        }
        let spec = QueueSpec { name: "other".to_owned(), uid: Uuid::new_v4(), ..lab.spec.clone() };
        disk.release_syncs();
        append.done.await.unwrap().unwrap();
        let other = Queue::open(&*opened.store, spec).await.unwrap();
        assert_eq!(other.all(0).await.messages, []);
        opened.store.close().await;
    });
}

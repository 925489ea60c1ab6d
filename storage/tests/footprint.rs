//! What a store costs beside its messages: threads and memory do not grow with queues or backlog. A process of its own, since it
//! counts the threads of the process.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use hqueue_storage::clock::SystemClock;
use hqueue_storage::conformance::{Queue, batch};
use hqueue_storage::disk::RealDisk;
use hqueue_storage::log::{SegmentStore, StoreOptions};
use hqueue_storage::store::{MessageStore, QueueSpec};
use uuid::Uuid;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn queue(store: &Arc<dyn MessageStore>, n: usize) -> Queue {
    let spec = QueueSpec { name: format!("queue-{n}"), uid: Uuid::new_v4(), partitions: 2, ttl_ms: 3_600_000, limit: None };
    Queue::open(&**store, spec).await.unwrap()
}

/// One test, so that no other runs beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_files_and_memory_do_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = StoreOptions::new(folder.path());
    options.segment_bytes = 1 << 20;
    options.tail_cache_bytes = 2 << 20;
    options.open_files = 16;
    let store: Arc<dyn MessageStore> =
        Arc::new(SegmentStore::open(options, Arc::new(SystemClock::default()), Arc::new(RealDisk)).unwrap());

    let first = queue(&store, 0).await;
    first.put(0, &["v"]).await;
    first.all(0).await;
    let (threads_before, files_before) = (threads(), open_files());
    let mut queues = vec![first];
    for n in 1..200 {
        let queue = queue(&store, n).await;
        queue.put(n as i16 % 2, &["v", "w"]).await;
        queues.push(queue);
    }
    assert!(threads() <= threads_before + 2, "{threads_before} threads with one queue, {} with 200", threads());
    assert!(open_files() <= files_before + 20, "{files_before} files open with one queue, {} with 200", open_files());

    let backlog = &queues[7];
    let value = "x".repeat(10_000);
    for _ in 0..100 {
        backlog.store.append(0, batch("t", &vec![&value[..]; 20])).unwrap().done.await.unwrap().unwrap();
        let cached = store.counters().tail_cache_bytes;
        assert!(cached <= 2 << 20, "the tail cache has {cached} bytes, its limit is 2 MiB");
    }
    assert_eq!(backlog.all(0).await.messages.len(), 2000, "20 MB are read back from behind a cache of 2 MiB");
    store.close().await;
    drop((queues, store));
}

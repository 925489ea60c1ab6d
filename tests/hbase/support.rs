//! Stores in the shared HBase.

use std::path::Path;
use std::sync::Arc;

use hqueue_hbase::store::{HBaseOptions, HBaseStore};
use hqueue_storage::clock::{Clock, SystemClock};
use hqueue_storage::conformance::Queue;
use hqueue_storage::marks::NoMarks;
use hqueue_storage::store::{QueueSpec, StoreError};
use hqueue_tests::hbase::HBase;

/// Runs our little program on HBase's Java client.
pub(crate) fn foreign(what: &str, table: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hbase/java/Foreign.java");
    HBase::shared().script("java", &[source.to_str().unwrap(), what, table], &[])
}

/// Options for a store that has a namespace of its own, in which nobody else has queues.
pub(crate) fn options() -> HBaseOptions {
    let namespace = format!("t{}", uuid::Uuid::new_v4().simple());
    HBaseOptions { namespace, owns_everything: true, ..HBaseOptions::new(vec![HBase::shared().gateway().to_owned()]) }
}

/// The same for a clock that is not HBase's: HBase deletes nothing of what such a store says is old.
pub(crate) fn options_out_of_time() -> HBaseOptions {
    HBaseOptions { delete_after: None, ..options() }
}

pub(crate) async fn open(options: HBaseOptions, clock: Arc<dyn Clock>) -> Result<HBaseStore, StoreError> {
    HBaseStore::open(options, clock, Arc::new(NoMarks)).await
}

/// A store with the machine's clock, and a new queue in it.
pub(crate) async fn queue(options: HBaseOptions, partitions: i16) -> (HBaseStore, Queue) {
    let store = open(options, Arc::new(SystemClock::default())).await.unwrap();
    let queue = Queue::open(&store, spec(partitions)).await.unwrap();
    (store, queue)
}

pub(crate) fn spec(partitions: i16) -> QueueSpec {
    QueueSpec { name: "orders".to_owned(), uid: uuid::Uuid::new_v4(), partitions, ttl_ms: 3_600_000, limit: None }
}

/// A runtime for one test.
pub(crate) fn block_on<R>(test: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

//! Opening the store that the options name.

use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::SharedCoordinator;
use hqueue_hbase::store::{HBaseOptions, HBaseStore};
use hqueue_storage::clock::SystemClock;
use hqueue_storage::disk::Disk;
use hqueue_storage::log::{SegmentStore, StoreOptions};
use hqueue_storage::store::{MessageStore, StoreError};

use crate::broker::{SAY_WAITING, StartError};
use crate::cluster::BrokerMarks;
use crate::data_folder::DataFolder;
use crate::options::{Coordination, Options, Store};
use crate::store_kind::{self, StoreKind};

/// HBase has to answer within this time, or it is said that it does not.
const OPEN_PATIENCE: Duration = Duration::from_secs(30);

/// The store, which may be HBase.
pub type Stores = (Arc<dyn MessageStore>, Option<Arc<HBaseStore>>);

/// Opens the store. HBase is waited for as long as it takes, unless what answers there is something else.
pub async fn open_store(
    options: &Options,
    folder: &DataFolder,
    coordinator: &SharedCoordinator,
    name: &str,
    disk: Arc<dyn Disk>,
) -> Result<Stores, StartError> {
    let Store::HBase(hbase) = &options.store else {
        store_kind::check(&**coordinator, &StoreKind::Log).await?;
        return Ok((open_log(options, folder, disk)?, None));
    };
    if folder.has_queues() {
        return Err(StartError::HasLog { data: folder.path().display().to_string() });
    }
    let hbase = HBaseOptions {
        tail_bytes: options.tail_cache_bytes,
        owns_everything: matches!(options.coordination, Coordination::Embedded),
        ..(**hbase).clone()
    };
    let marks = Arc::new(BrokerMarks::new(Arc::clone(coordinator), name.to_owned()));
    let (store, cluster) = loop {
        let began = tokio::time::Instant::now();
        let opened = async {
            let store = HBaseStore::open(hbase.clone(), Arc::new(SystemClock::default()), Arc::clone(&marks) as _).await?;
            let cluster = store.cluster_id().await?;
            Ok((store, cluster))
        };
        let late = || StoreError::Remote {
            what: "opening the store",
            reason: format!("a gateway answers, and HBase behind it does not within {OPEN_PATIENCE:?}"),
            retryable: true,
        };
        match tokio::time::timeout(OPEN_PATIENCE, opened).await.unwrap_or_else(|_| Err(late())) {
            Ok(opened) => break opened,
            Err(error @ StoreError::Remote { retryable: true, .. }) => tracing::warn!("waiting for HBase: {error}"),
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep_until(began + SAY_WAITING).await;
    };
    let kind = StoreKind::HBase { cluster, namespace: store.namespace().to_owned() };
    store_kind::check(&**coordinator, &kind).await?;
    let store = Arc::new(store);
    Ok((Arc::clone(&store) as _, Some(store)))
}

fn open_log(options: &Options, folder: &DataFolder, disk: Arc<dyn Disk>) -> Result<Arc<dyn MessageStore>, StoreError> {
    let log = StoreOptions {
        durability: options.durability,
        tail_cache_bytes: options.tail_cache_bytes,
        ..StoreOptions::new(folder.path())
    };
    Ok(Arc::new(SegmentStore::open(log, Arc::new(SystemClock::default()), disk)?))
}

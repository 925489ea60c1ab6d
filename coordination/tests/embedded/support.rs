//! What the tests of the embedded coordinator share.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hqueue_coordination::embedded::EmbeddedCoordinator;
use hqueue_coordination::{Coordinator, child_of};
use hqueue_storage::disk::Disk;
use hqueue_storage::journal::JournalError;

pub(crate) const DIR: &str = "/coordination";
pub(crate) const JOURNAL: &str = "/coordination/coordination.journal";

pub(crate) fn try_open(disk: &(impl Disk + Clone)) -> Result<Arc<EmbeddedCoordinator>, JournalError> {
    EmbeddedCoordinator::open(Arc::new(disk.clone()), Path::new(DIR)).map(Arc::new)
}

pub(crate) fn open(disk: &(impl Disk + Clone)) -> Arc<EmbeddedCoordinator> {
    try_open(disk).unwrap()
}

/// Payload and version of every node but the root.
pub(crate) type Dump = BTreeMap<String, (Vec<u8>, i32)>;

pub(crate) async fn dump(coordinator: &dyn Coordinator) -> Dump {
    let mut all = Dump::new();
    let mut waiting = vec!["/".to_owned()];
    while let Some(path) = waiting.pop() {
        let names = coordinator.children(&path).await.unwrap().unwrap();
        waiting.extend(names.iter().map(|name| child_of(&path, name)));
        let node = coordinator.get(&path).await.unwrap().unwrap();
        if path != "/" {
            all.insert(path, (node.payload, node.version));
        }
    }
    all
}

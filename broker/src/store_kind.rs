//! Which store the brokers of a cluster keep messages in: written down by the first, compared by every other. One that kept them elsewhere
//! would take partitions without their messages.

use hqueue_coordination::{CoordinationError, Coordinator, NodeKind};
use serde::{Deserialize, Serialize};

use crate::paths;

/// The payload of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StoreKind {
    /// In the log of each broker's data folder.
    Log,
    /// In tables of this HBase, in this namespace of it.
    HBase {
        /// As HBase calls itself.
        cluster: String,
        namespace: String,
    },
}

impl StoreKind {
    fn describe(&self) -> String {
        match self {
            Self::Log => "in the log of each broker (--store log)".to_owned(),
            Self::HBase { cluster, namespace } => {
                format!("in HBase {cluster}, namespace {namespace} (--store hbase --hbase-namespace {namespace})")
            }
        }
    }
}

/// Why a broker cannot be one of these.
#[derive(Debug, thiserror::Error)]
pub enum StoreKindError {
    #[error(transparent)]
    Coordination(#[from] CoordinationError),
    #[error(
        "the brokers that meet here keep messages {}, and this one was started to keep them {}: start it as the others, or with \
         another root", known.describe(), ours.describe()
    )]
    Other { known: StoreKind, ours: StoreKind },
    #[error("the node {} cannot be read: {reason}", paths::STORE)]
    Unreadable { reason: String },
}

/// Compares what we are with what the others are; the first says it.
pub async fn check(coordinator: &dyn Coordinator, ours: &StoreKind) -> Result<(), StoreKindError> {
    let known = match read(coordinator).await? {
        Some(known) => known,
        // Queues of brokers that did not say it yet: they had nothing but the log.
        None if !coordinator.children(paths::QUEUES).await?.unwrap_or_default().is_empty() => {
            write(coordinator, &StoreKind::Log).await?
        }
        None => write(coordinator, ours).await?,
    };
    if known == *ours { Ok(()) } else { Err(StoreKindError::Other { known, ours: ours.clone() }) }
}

async fn read(coordinator: &dyn Coordinator) -> Result<Option<StoreKind>, StoreKindError> {
    let Some(node) = coordinator.get(paths::STORE).await? else { return Ok(None) };
    serde_json::from_slice(&node.payload).map(Some).map_err(|error| StoreKindError::Unreadable { reason: error.to_string() })
}

/// Writes it unless another broker was faster; returns what stands there then.
async fn write(coordinator: &dyn Coordinator, kind: &StoreKind) -> Result<StoreKind, StoreKindError> {
    let payload = serde_json::to_vec(kind).unwrap_or_default();
    match coordinator.create(paths::STORE, &payload, NodeKind::Persistent).await {
        Ok(_) => Ok(kind.clone()),
        Err(CoordinationError::NodeExists(_)) => Ok(read(coordinator).await?.unwrap_or_else(|| kind.clone())),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hqueue_coordination::create_all;
    use hqueue_coordination::embedded::EmbeddedCoordinator;
    use hqueue_storage::disk::RealDisk;

    use super::*;

    fn hbase(cluster: &str) -> StoreKind {
        StoreKind::HBase { cluster: cluster.to_owned(), namespace: "default".to_owned() }
    }

    #[tokio::test]
    async fn brokers_of_different_kinds_refuse_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap();
        check(&coordinator, &hbase("one")).await.unwrap();
        check(&coordinator, &hbase("one")).await.unwrap();
        for other in [StoreKind::Log, hbase("two")] {
            let error = check(&coordinator, &other).await.unwrap_err().to_string();
            assert!(error.contains("HBase one") && error.contains(&other.describe()), "{error}");
        }
    }

    #[tokio::test]
    async fn queues_of_earlier_versions_are_in_logs() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap();
        create_all(&coordinator, &paths::queue("q")).await.unwrap();
        assert!(check(&coordinator, &hbase("one")).await.unwrap_err().to_string().contains("--store log"));
        check(&coordinator, &StoreKind::Log).await.unwrap();
    }
}

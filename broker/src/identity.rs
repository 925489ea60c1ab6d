//! Which cluster a data folder belongs to: an id in coordination, and the same in the folder. A folder that is started below another
//! root, by a mistyped address or in another mode, must not take its messages for those of a queue that was dropped.

use hqueue_coordination::{CoordinationError, Coordinator, Node, create_all};
use uuid::Uuid;

use crate::data_folder::{DataFolder, DataFolderError};
use crate::paths;

/// Why a folder does not belong here.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(transparent)]
    Coordination(#[from] CoordinationError),
    #[error(transparent)]
    DataFolder(#[from] DataFolderError),
    #[error(
        "the data folder {folder} belongs to cluster {known}, and this is {found}: is it another root, another ZooKeeper, or another \
         mode than before? To give its messages up, take another folder; if the cluster is the same and was made anew, remove {file}"
    )]
    Other { folder: String, file: String, known: String, found: String },
}

/// Compares the ids; where there is none, makes one. `own`: coordination lives in this very folder.
pub async fn check(coordinator: &dyn Coordinator, folder: &DataFolder, own: bool) -> Result<(), IdentityError> {
    create_all(coordinator, paths::BROKERS).await?;
    let known = folder.cluster_id()?;
    let found = read(coordinator).await?;
    match (known, found) {
        (Some(known), Some(found)) if known == found => Ok(()),
        (None, Some(found)) => Ok(folder.keep_cluster_id(&found)?),
        // What coordination in this folder knew was given up by hand.
        (Some(known), None) if own => {
            let id = write(coordinator, &known).await?;
            Ok(folder.keep_cluster_id(&id)?)
        }
        (known, None) if known.is_none() || !folder.has_queues() => {
            let id = write(coordinator, &Uuid::new_v4().to_string()).await?;
            Ok(folder.keep_cluster_id(&id)?)
        }
        // There is nothing to lose.
        (Some(_), Some(found)) if !folder.has_queues() => Ok(folder.keep_cluster_id(&found)?),
        (known, found) => Err(IdentityError::Other {
            folder: folder.path().display().to_string(),
            file: folder.cluster_file().display().to_string(),
            known: known.unwrap_or_default(),
            found: found.unwrap_or_else(|| "one without an id".to_owned()),
        }),
    }
}

async fn read(coordinator: &dyn Coordinator) -> Result<Option<String>, CoordinationError> {
    Ok(coordinator.get(paths::BROKERS).await?.and_then(id_of))
}

fn id_of(node: Node) -> Option<String> {
    String::from_utf8(node.payload).ok().filter(|id| !id.is_empty())
}

/// Writes the id unless another broker was faster; returns what stands there then.
async fn write(coordinator: &dyn Coordinator, id: &str) -> Result<String, CoordinationError> {
    // That it is empty and which version it has is seen in one look: who writes in between makes ours fail.
    let node = coordinator.get(paths::BROKERS).await?;
    let version = node.as_ref().map_or(0, |node| node.version);
    if let Some(theirs) = node.and_then(id_of) {
        return Ok(theirs);
    }
    match coordinator.set(paths::BROKERS, id.as_bytes(), Some(version)).await {
        Ok(_) => Ok(id.to_owned()),
        Err(CoordinationError::BadVersion { .. }) => Ok(read(coordinator).await?.unwrap_or_else(|| id.to_owned())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hqueue_coordination::embedded::EmbeddedCoordinator;
    use hqueue_storage::disk::RealDisk;

    use super::*;

    fn coordinator(folder: &tempfile::TempDir) -> EmbeddedCoordinator {
        EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap()
    }

    #[tokio::test]
    async fn a_folder_with_messages_starts_in_no_other_cluster() {
        let (one, two, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (one, two, folder) = (coordinator(&one), coordinator(&two), DataFolder::open(data.path()).unwrap());
        check(&one, &folder, false).await.unwrap();
        // Nothing is in it yet: it may go elsewhere, and back.
        check(&two, &folder, false).await.unwrap();
        check(&one, &folder, false).await.unwrap();
        std::fs::create_dir_all(data.path().join("queues").join("q")).unwrap();
        check(&one, &folder, false).await.unwrap();
        let error = check(&two, &folder, false).await.unwrap_err().to_string();
        assert!(error.contains(data.path().to_str().unwrap()) && error.contains("cluster"), "{error}");
        check(&one, &folder, false).await.unwrap();
        std::fs::remove_file(folder.cluster_file()).unwrap();
        check(&two, &folder, false).await.unwrap();
    }
}

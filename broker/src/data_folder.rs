//! The folder of a broker: one broker at a time, with a name that stays.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// A data folder that is ours. The lock ends with it, also when the process is killed.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    _lock: File,
}

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataFolderError {
    #[error("the data folder {0} is in use by another broker")]
    InUse(PathBuf),
    #[error("the data folder {path} cannot be used: {error}")]
    Io { path: PathBuf, error: io::Error },
}

impl DataFolder {
    /// Makes the folder if it is not there, and locks it.
    pub fn open(path: &Path) -> Result<Self, DataFolderError> {
        let failed = |error| DataFolderError::Io { path: path.to_owned(), error };
        fs::create_dir_all(path).map_err(failed)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataFolderError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The broker's name: made at the first start, kept in the folder.
    pub fn broker_name(&self) -> Result<String, DataFolderError> {
        let path = self.path.join("broker-name");
        let failed = |error| DataFolderError::Io { path: path.clone(), error };
        match fs::read_to_string(&path) {
            Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let name = format!("broker-{}", Uuid::new_v4().simple());
        let unfinished = self.path.join("broker-name.new");
        let mut file = File::create(&unfinished).map_err(failed)?;
        file.write_all(name.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&unfinished, &path).map_err(failed)?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_broker_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataFolder::open(folder.path()).unwrap();
        let error = DataFolder::open(folder.path()).unwrap_err();
        assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
        drop(first);
        DataFolder::open(folder.path()).unwrap();
    }

    #[test]
    fn the_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let name = DataFolder::open(folder.path()).unwrap().broker_name().unwrap();
        assert_eq!(DataFolder::open(folder.path()).unwrap().broker_name().unwrap(), name);
    }
}

//! The folder of a broker: one broker at a time, with a name that stays.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

    /// Where the id of the cluster is kept.
    #[must_use]
    pub fn cluster_file(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// The cluster that the folder belongs to; `None`: none yet.
    pub fn cluster_id(&self) -> Result<Option<String>, DataFolderError> {
        let path = self.cluster_file();
        match fs::read_to_string(&path) {
            Ok(id) => Ok(Some(id.trim().to_owned()).filter(|id| !id.is_empty())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DataFolderError::Io { path, error }),
        }
    }

    /// Keeps the id of the cluster, durably.
    pub fn keep_cluster_id(&self, id: &str) -> Result<(), DataFolderError> {
        let path = self.cluster_file();
        if self.cluster_id()?.as_deref() == Some(id) {
            return Ok(());
        }
        let failed = |error| DataFolderError::Io { path: path.clone(), error };
        let unfinished = self.path.join("cluster.new");
        let mut file = File::create(&unfinished).map_err(failed)?;
        file.write_all(id.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&unfinished, &path).map_err(failed)?;
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// There are messages of queues in it.
    #[must_use]
    pub fn has_queues(&self) -> bool {
        fs::read_dir(self.path.join("queues")).is_ok_and(|mut queues| queues.next().is_some())
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

impl DataFolder {
    /// Folders of queues that are not among `known`. A queue that was dropped while this broker was away leaves its messages here, and
    /// so does every queue when the broker is sent to a wrong root: whoever knows which it is has to remove them.
    #[must_use]
    pub fn unknown_queues(&self, known: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.path.join("queues")).into_iter().flatten().flatten();
        let is_unknown = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !name.starts_with('.') && !known(name)
        };
        let mut unknown: Vec<PathBuf> = folders.map(|entry| entry.path()).filter(is_unknown).collect();
        unknown.sort();
        unknown
    }
}

/// So many sessions are remembered: more than can live at the same time.
const REMEMBERED: usize = 16;

/// The sessions that this broker has had with coordination, kept in its data folder: what nodes of theirs are still there after a
/// crash are its own.
#[derive(Debug)]
pub struct SessionBook {
    path: PathBuf,
    known: Mutex<Vec<i64>>,
}

impl SessionBook {
    /// Reads the book; one that is missing or cannot be read is empty: then nodes of earlier sessions are waited for.
    #[must_use]
    pub fn open(folder: &DataFolder) -> Self {
        let path = folder.path.join("sessions");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let known = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
        Self { path, known: Mutex::new(known) }
    }

    /// One that is kept nowhere.
    #[cfg(test)]
    pub fn in_memory() -> Self {
        Self { path: PathBuf::from("/nowhere/sessions"), known: Mutex::default() }
    }

    #[must_use]
    pub fn contains(&self, session: i64) -> bool {
        self.lock().contains(&session)
    }

    /// Writes a session down, before anything is made in it. Durable when it returns.
    pub fn note(&self, session: i64) -> io::Result<()> {
        let mut known = self.lock();
        if known.contains(&session) {
            return Ok(());
        }
        known.push(session);
        let too_many = known.len().saturating_sub(REMEMBERED);
        known.drain(..too_many);
        let text: String = known.iter().map(|id| format!("{id}\n")).collect();
        let unfinished = self.path.with_extension("new");
        let mut file = File::create(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &self.path)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<i64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn sessions_are_remembered_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(folder.path()).unwrap();
        let book = SessionBook::open(&folder);
        (1..=20).for_each(|id| book.note(id).unwrap());
        let again = SessionBook::open(&folder);
        assert!(again.contains(20) && again.contains(5) && !again.contains(4) && !again.contains(21));
    }
}

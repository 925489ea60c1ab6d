//! The index: where, in sealed segments, the blocks of a partition are.
//!
//! It is a view of the log and disposable. It is not believed, but dropped and built anew from the logs, when the run before ended
//! without a close and the machine has been started since; when it cannot be opened, or is another one than the checkpoint speaks of;
//! when it fails or panics; and when an entry of it turns out to be wrong. While there is none, readers find their way by the headers
//! of segments, which is slower but as right.

mod checkpoint;
mod database;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use hqueue_protocol::id::MessageId;
use uuid::Uuid;

use self::checkpoint::{Checkpoint, Left};
use self::database::{Database, Reason};
use super::recovery::Ending;
use super::segment::IndexEntry;
use crate::disk::Disk;

/// Of the segments that are gone, so many entries of a partition stay, to tell how many messages went.
const KEPT_OF_GONE: usize = 16;

#[derive(Debug)]
pub(super) struct Index {
    disk: Arc<dyn Disk>,
    data: PathBuf,
    /// `None` where a database cannot keep files.
    folder: Option<PathBuf>,
    cache_bytes: u64,
    boot: Option<String>,
    database: RwLock<Option<Database>>,
    checkpoint: Mutex<Checkpoint>,
    /// It was dropped and has to be built anew.
    is_wrong: AtomicBool,
}

impl Index {
    /// Opens the index and begins a run: until it is closed, the checkpoint says that it was not.
    pub(super) fn open(disk: Arc<dyn Disk>, data: &Path, cache_bytes: u64) -> io::Result<Self> {
        let boot = disk.boot_id();
        let before = Checkpoint::read(&*disk, data)?;
        let lost_power = before.as_ref().is_none_or(|before| before.lost_power(boot.as_deref()));
        let checkpoint = before.unwrap_or_default().begin_run(boot.clone());
        let folder = disk.native_path(&data.join("index"));
        let index = Self {
            disk,
            data: data.to_owned(),
            folder,
            cache_bytes,
            boot,
            database: RwLock::new(None),
            checkpoint: Mutex::new(checkpoint),
            is_wrong: AtomicBool::new(false),
        };
        index.open_database(lost_power);
        index.begin_run()?;
        Ok(index)
    }

    /// Opens the database of the run before, if it can be believed, else an empty one.
    fn open_database(&self, lost_power: bool) {
        let Some(folder) = &self.folder else { return };
        let generation = self.checkpoint().generation;
        let believed = match generation {
            None => Err("there is none yet".to_owned()),
            Some(_) if lost_power => Err("the machine was started anew without a close of the store".to_owned()),
            Some(generation) => self.open_generation(folder, generation),
        };
        match believed {
            Ok(database) => self.set_database(Some(database)),
            Err(reason) => {
                if generation.is_some() {
                    tracing::warn!(folder = %folder.display(), reason, "the index is built anew from the logs");
                }
                self.make_database(folder);
            }
        }
    }

    fn open_generation(&self, folder: &Path, generation: Uuid) -> Result<Database, Reason> {
        let folder = folder.join(generation.simple().to_string());
        if !folder.is_dir() {
            return Err(format!("{} is not there", folder.display()));
        }
        let database = Database::open(&folder, self.cache_bytes)?;
        match database.generation()? {
            Some(found) if found == generation => Ok(database),
            _ => Err("it came back empty".to_owned()),
        }
    }

    /// Begins an empty database in a folder of its own, and removes the others.
    fn make_database(&self, folder: &Path) {
        let generation = Uuid::new_v4();
        let mut checkpoint = self.checkpoint();
        checkpoint.generation = None;
        checkpoint.queues.values_mut().for_each(|mark| mark.indexed_epoch = 0);
        if let Err(error) = std::fs::remove_dir_all(folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "an index that is not used any more is left behind");
        }
        let made = Database::open(&folder.join(generation.simple().to_string()), self.cache_bytes).and_then(|database| {
            database.set_generation(generation)?;
            database.flush()?;
            Ok(database)
        });
        match made {
            Ok(database) => {
                checkpoint.generation = Some(generation);
                self.set_database(Some(database));
            }
            Err(reason) => {
                tracing::error!(folder = %folder.display(), reason, "there is no index: reads of old messages take longer");
            }
        }
    }

    /// Says durably that this run has begun. An older word that the store was closed must not be left.
    fn begin_run(&self) -> io::Result<()> {
        let written = self.checkpoint().write(&*self.disk, &self.data);
        let Err(error) = written else { return Ok(()) };
        tracing::warn!(%error, "the checkpoint cannot be written: after this run, everything will be looked at");
        match self.disk.remove_file(&Checkpoint::path(&self.data)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.disk.sync_dir(&self.data),
        }
    }

    fn checkpoint(&self) -> MutexGuard<'_, Checkpoint> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_database(&self, database: Option<Database>) {
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = database;
    }

    /// Asks the database; an error makes an end of it.
    fn ask<T>(&self, question: impl FnOnce(&Database) -> Result<T, Reason>) -> Option<T> {
        let answer = question(self.database.read().unwrap_or_else(PoisonError::into_inner).as_ref()?);
        match answer {
            Ok(answer) => Some(answer),
            Err(reason) => {
                self.drop_wrong(&reason);
                None
            }
        }
    }

    /// The index is not used any more, until it is built anew.
    pub(super) fn drop_wrong(&self, reason: &str) {
        if !self.is_wrong.swap(true, SeqCst) {
            tracing::error!(reason, "the index is dropped, and built anew from the logs");
        }
        self.set_database(None);
        self.checkpoint().generation = None;
    }

    /// Begins an empty index, if it was dropped. True if all segments have to be put into it.
    pub(super) fn renew(&self) -> bool {
        if !self.is_wrong.load(SeqCst) {
            return false;
        }
        if let Some(folder) = &self.folder {
            self.make_database(folder);
        }
        self.is_wrong.store(false, SeqCst);
        self.write_checkpoint();
        true
    }

    /// How the run before left a queue.
    pub(super) fn ending_of(&self, uid: Uuid) -> Ending {
        self.checkpoint().queues.get(&uid).map_or(Ending::PowerCut, |mark| mark.left.ending(self.boot.as_deref()))
    }

    /// A queue is open from now on.
    pub(super) fn opened(&self, uid: Uuid) {
        self.checkpoint().queues.entry(uid).or_default().left = Left::Open(self.boot.clone());
    }

    /// Segments of the queue up to this epoch are in the index.
    pub(super) fn indexed_epoch(&self, uid: Uuid) -> u64 {
        self.checkpoint().queues.get(&uid).map_or(0, |mark| mark.indexed_epoch)
    }

    pub(super) fn floor(&self, uid: Uuid, partition: i16, from: MessageId) -> Option<IndexEntry> {
        self.ask(|database| database.floor(uid, partition, from)).flatten()
    }

    pub(super) fn next(&self, uid: Uuid, partition: i16, id: MessageId) -> Option<IndexEntry> {
        self.ask(|database| database.next(uid, partition, id)).flatten()
    }

    /// Puts the entries of a sealed segment in, durably as far as the end of the process goes. False if there is no index.
    pub(super) fn save(&self, uid: Uuid, epoch: u64, entries: impl Iterator<Item = (i16, IndexEntry)>) -> bool {
        let mut entries = entries;
        let saved = self.ask(|database| {
            entries.try_for_each(|(partition, entry)| database.insert(uid, partition, &entry))?;
            database.flush()
        });
        if saved.is_none() {
            return false;
        }
        let mark = |checkpoint: &mut Checkpoint| {
            let mark = checkpoint.queues.entry(uid).or_default();
            mark.indexed_epoch = mark.indexed_epoch.max(epoch);
        };
        mark(&mut self.checkpoint());
        self.write_checkpoint();
        true
    }

    /// Segments of a lower epoch are gone.
    pub(super) fn remove_below(&self, uid: Uuid, partitions: i16, epoch: u64) {
        self.ask(|database| (0..partitions).try_for_each(|p| database.remove_below(uid, p, epoch, KEPT_OF_GONE)));
    }

    /// A queue is gone.
    pub(super) fn remove_queue(&self, uid: Uuid) {
        self.checkpoint().queues.remove(&uid);
        self.ask(|database| database.remove_queue(uid));
    }

    /// Lets go of the database without a word: a start finds a run that was not closed.
    pub(super) fn abandon(&self) {
        self.set_database(None);
    }

    /// Ends the run: the queues of `closed` have nothing in them that is not synced.
    pub(super) fn close(&self, closed: &[Uuid]) {
        let flushed = self.ask(Database::flush).is_some();
        self.set_database(None);
        let mut checkpoint = self.checkpoint();
        if !flushed {
            checkpoint.generation = None;
        }
        for uid in closed {
            checkpoint.queues.entry(*uid).or_default().left = Left::Closed;
        }
        checkpoint.closed = true;
        drop(checkpoint);
        self.write_checkpoint();
    }

    fn write_checkpoint(&self) {
        let checkpoint = self.checkpoint().clone();
        if let Err(error) = checkpoint.write(&*self.disk, &self.data) {
            tracing::warn!(%error, "the checkpoint cannot be written: the next start has more to look at");
        }
    }
}

/// Harm that tests do.
#[cfg(test)]
impl Index {
    /// Removes the entries that are not kept, by their number.
    pub(super) fn tear_holes(&self, uid: Uuid, kept: impl Fn(usize) -> bool) {
        self.ask(|database| database.remove_some(uid, kept)).unwrap();
    }

    /// Lets every entry name another place.
    pub(super) fn falsify(&self, uid: Uuid) {
        self.ask(|database| database.falsify(uid)).unwrap();
    }
}

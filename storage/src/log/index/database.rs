//! The entries of the index in sled.
//!
//! ```text
//! key    0  16  uid of the queue
//!       16   2  partition
//!       18  10  first id of the block
//! value  0   8  epoch of its segment
//!        8   8  offset in it
//!       16   8  running number of its first message
//! ```
//! Big-endian, so that keys stand in the order of queues, partitions and ids.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hqueue_protocol::id::MessageId;
use uuid::Uuid;

use crate::log::format::bytes::Taker;
use crate::log::format::header::LogPosition;
use crate::log::segment::IndexEntry;

/// Under this key stands which index it is: sled may come back empty without an error.
const GENERATION: &[u8] = b"generation";

/// What went wrong, in sled's words.
pub(super) type Reason = String;

/// An open sled database. sled may fail and may panic; both become an error here, after which nothing it says is believed.
#[derive(Debug)]
pub(super) struct Database {
    db: sled::Db,
}

impl Database {
    /// Opens or makes the database in a folder.
    pub(super) fn open(folder: &Path, cache_bytes: u64) -> Result<Self, Reason> {
        let config = sled::Config::new().path(folder).cache_capacity(cache_bytes).flush_every_ms(None);
        guarded(|| config.open()).map(|db| Self { db })
    }

    /// Which index it says it is.
    pub(super) fn generation(&self) -> Result<Option<Uuid>, Reason> {
        let value = guarded(|| self.db.get(GENERATION))?;
        Ok(value.and_then(|value| Uuid::from_slice(&value).ok()))
    }

    pub(super) fn set_generation(&self, generation: Uuid) -> Result<(), Reason> {
        guarded(|| self.db.insert(GENERATION, generation.as_bytes())).map(|_| ())
    }

    pub(super) fn insert(&self, uid: Uuid, partition: i16, entry: &IndexEntry) -> Result<(), Reason> {
        guarded(|| self.db.insert(key(uid, partition, entry.first), value(entry))).map(|_| ())
    }

    /// The last entry of a partition at or below an id.
    pub(super) fn floor(&self, uid: Uuid, partition: i16, from: MessageId) -> Result<Option<IndexEntry>, Reason> {
        let (begin, end) = (key(uid, partition, MessageId::MIN), key(uid, partition, from));
        let found = guarded(|| self.db.range(begin..=end).next_back().transpose())?;
        Ok(found.and_then(|(key, value)| entry(&key, &value)))
    }

    /// The first entry of a partition at or above an id.
    pub(super) fn next(&self, uid: Uuid, partition: i16, id: MessageId) -> Result<Option<IndexEntry>, Reason> {
        let (begin, end) = (key(uid, partition, id), key(uid, partition, MessageId::MAX));
        let found = guarded(|| self.db.range(begin..=end).next().transpose())?;
        Ok(found.and_then(|(key, value)| entry(&key, &value)))
    }

    /// Removes the entries of a partition for segments of a lower epoch but the last `kept` of them. Returns how many are left of these.
    pub(super) fn remove_below(&self, uid: Uuid, partition: i16, epoch: u64, kept: usize) -> Result<(), Reason> {
        let (begin, end) = (key(uid, partition, MessageId::MIN), key(uid, partition, MessageId::MAX));
        let mut gone = Vec::new();
        let mut entries = self.db.range(begin..=end);
        while let Some((key, value)) = guarded(|| entries.next().transpose())? {
            if entry(&key, &value).is_some_and(|entry| entry.at.epoch >= epoch) {
                break;
            }
            gone.push(key);
        }
        gone.truncate(gone.len().saturating_sub(kept));
        gone.iter().try_for_each(|key| guarded(|| self.db.remove(key)).map(|_| ()))
    }

    /// Removes all entries of a queue.
    pub(super) fn remove_queue(&self, uid: Uuid) -> Result<(), Reason> {
        let mut keys = self.db.scan_prefix(uid.as_bytes()).keys();
        while let Some(key) = guarded(|| keys.next().transpose())? {
            guarded(|| self.db.remove(key))?;
        }
        Ok(())
    }

    /// Writes everything out. Of a power cut after it sled does not survive all, of the end of the process it does.
    pub(super) fn flush(&self) -> Result<(), Reason> {
        guarded(|| self.db.flush()).map(|_| ())
    }
}

/// Harm that tests do.
#[cfg(test)]
impl Database {
    pub(super) fn remove_some(&self, uid: Uuid, kept: impl Fn(usize) -> bool) -> Result<(), Reason> {
        let keys: Vec<_> = self.db.scan_prefix(uid.as_bytes()).keys().map(Result::unwrap).collect();
        let gone = keys.iter().enumerate().filter(|(n, _)| !kept(*n));
        gone.for_each(|(_, key)| drop(self.db.remove(key).unwrap()));
        Ok(())
    }

    pub(super) fn falsify(&self, uid: Uuid) -> Result<(), Reason> {
        for (key, value) in self.db.scan_prefix(uid.as_bytes()).map(Result::unwrap) {
            let mut entry = entry(&key, &value).unwrap();
            entry.at.offset += 17;
            self.db.insert(key, super::database::value(&entry)).unwrap();
        }
        Ok(())
    }
}

fn guarded<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, Reason> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("sled has panicked".to_owned()),
    }
}

fn key(uid: Uuid, partition: i16, first: MessageId) -> Vec<u8> {
    let mut key = uid.as_bytes().to_vec();
    key.extend_from_slice(&partition.to_be_bytes());
    key.extend_from_slice(&first.timestamp.to_be_bytes());
    key.extend_from_slice(&first.sequence.to_be_bytes());
    key
}

fn value(entry: &IndexEntry) -> Vec<u8> {
    [entry.at.epoch, entry.at.offset, entry.number].into_iter().flat_map(u64::to_be_bytes).collect()
}

/// `None` if it is no entry.
fn entry(key: &[u8], value: &[u8]) -> Option<IndexEntry> {
    let first = Taker(key.get(18..)?).id()?;
    let mut value = Taker(value);
    let at = LogPosition { epoch: value.u64()?, offset: value.u64()? };
    Some(IndexEntry { first, number: value.u64()?, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_at(ms: i64, epoch: u64) -> IndexEntry {
        let at = LogPosition { epoch, offset: ms as u64 * 10 };
        IndexEntry { first: MessageId::new(ms, 3), number: ms as u64, at }
    }

    #[test]
    fn entries_are_found_beside_those_of_other_partitions_and_queues() {
        let folder = tempfile::TempDir::new().unwrap();
        let db = Database::open(folder.path(), 1 << 20).unwrap();
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for (uid, partition) in [(one, 0), (one, 1), (one, i16::MAX), (two, 0)] {
            for ms in [10, 20, 30] {
                db.insert(uid, partition, &entry_at(ms, ms as u64 / 10)).unwrap();
            }
        }
        for partition in [0, 1, i16::MAX] {
            let floor = |ms, seq| db.floor(one, partition, MessageId::new(ms, seq)).unwrap();
            assert_eq!(floor(9, 0), None);
            assert_eq!(floor(10, 2), None);
            assert_eq!(floor(10, 3), Some(entry_at(10, 1)));
            assert_eq!(floor(29, 0), Some(entry_at(20, 2)));
            assert_eq!(db.floor(one, partition, MessageId::MAX), Ok(Some(entry_at(30, 3))));
            assert_eq!(db.next(one, partition, MessageId::new(20, 3)), Ok(Some(entry_at(20, 2))));
            assert_eq!(db.next(one, partition, MessageId::new(20, 4)), Ok(Some(entry_at(30, 3))));
            assert_eq!(db.next(one, partition, MessageId::new(31, 0)), Ok(None));
        }
        db.remove_below(one, 1, 3, 1).unwrap();
        assert_eq!(db.next(one, 1, MessageId::MIN), Ok(Some(entry_at(20, 2))));
        db.remove_queue(one).unwrap();
        assert_eq!(db.next(one, 0, MessageId::MIN), Ok(None));
        assert_eq!(db.next(two, 0, MessageId::MIN), Ok(Some(entry_at(10, 1))));
    }

    #[test]
    fn a_panic_is_an_error() {
        assert!(guarded::<()>(|| panic!("on purpose")).is_err());
    }
}

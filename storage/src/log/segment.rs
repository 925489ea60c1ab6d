//! One use of a segment file.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hqueue_protocol::id::MessageId;
use uuid::Uuid;

use super::format::block::{BlockHeader, Place};
use super::format::header::{FIXED_LEN, LogPosition, SegmentHeader};
use super::format::table::{ENTRY_LEN, PartitionMark};
use super::source::Source;

/// A segment as long as its file is in this use. Whoever holds it keeps the file from being used anew.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) epoch: u64,
    pub(super) path: PathBuf,
    pub(super) place: Place,
    /// Where the first block begins.
    pub(super) data_start: u64,
    /// Committed blocks end here.
    end: AtomicU64,
    /// The arrival of the last block up to the end of this segment. Milliseconds.
    last_arrival_ms: AtomicI64,
    /// What the index does not have yet.
    index: RwLock<Option<SegmentIndex>>,
}

/// Where the blocks of a partition are: one entry for a stretch of them.
#[derive(Debug)]
pub(super) struct SegmentIndex {
    spacing: u64,
    partitions: HashMap<i16, Stretches>,
}

#[derive(Debug, Default)]
struct Stretches {
    entries: Vec<IndexEntry>,
    bytes_since: u64,
}

/// Where a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) first: MessageId,
    pub(super) number: u64,
    pub(super) at: LogPosition,
}

/// So many bytes of a partition's blocks get one entry.
const STRETCH: u64 = 1 << 20;

impl Segment {
    pub(super) fn new(uid: Uuid, epoch: u64, path: PathBuf, data_start: u64, index: Option<SegmentIndex>) -> Self {
        Self {
            epoch,
            path,
            place: Place::new(uid, epoch),
            data_start,
            end: AtomicU64::new(data_start),
            last_arrival_ms: AtomicI64::new(i64::MIN),
            index: RwLock::new(index),
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.end.load(Acquire)
    }

    pub(super) fn set_end(&self, end: u64) {
        self.end.store(end, Release);
    }

    pub(super) fn last_arrival_ms(&self) -> i64 {
        self.last_arrival_ms.load(Relaxed)
    }

    pub(super) fn set_last_arrival_ms(&self, ms: i64) {
        self.last_arrival_ms.store(ms, Relaxed);
    }

    pub(super) fn has_blocks(&self) -> bool {
        self.end() > self.data_start
    }

    pub(super) fn index(&self) -> RwLockReadGuard<'_, Option<SegmentIndex>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn index_mut(&self) -> RwLockWriteGuard<'_, Option<SegmentIndex>> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The header of the file; `None` if it is damaged.
    pub(super) fn header(source: &mut Source<'_>) -> io::Result<Option<SegmentHeader>> {
        Ok(SegmentHeader::decode(&source.fetch(0, FIXED_LEN)?))
    }

    /// All marks that the header has of partitions; `None` if it is damaged.
    pub(super) fn marks(source: &mut Source<'_>) -> io::Result<Option<Vec<(i16, PartitionMark)>>> {
        let Some(header) = Self::header(source)? else { return Ok(None) };
        Ok(header.decode_table(&source.fetch(FIXED_LEN as u64, header.table_len())?))
    }

    /// The mark of one partition when the segment began; `None` if the header is damaged.
    pub(super) fn mark_of(source: &mut Source<'_>, partition: i16) -> io::Result<Option<PartitionMark>> {
        let Some(header) = Self::header(source)? else { return Ok(None) };
        Ok(header.decode_entry(&source.fetch(FIXED_LEN as u64, header.table_len())?, partition))
    }
}

impl SegmentIndex {
    /// Of a queue with so many partitions: a partition gets no more entries than suit the size of the whole.
    pub(super) fn new(partitions: i16) -> Self {
        Self { spacing: (8 * STRETCH).max(u64::from(partitions.unsigned_abs()) * 8192), partitions: HashMap::new() }
    }

    /// Notes a block, if it is time for an entry.
    pub(super) fn note(&mut self, header: &BlockHeader, at: LogPosition) {
        let stretches = self.partitions.entry(header.partition).or_default();
        let is_far = |entry: &IndexEntry| at.offset.saturating_sub(entry.at.offset) >= self.spacing;
        if stretches.bytes_since >= STRETCH || stretches.entries.last().is_none_or(is_far) {
            stretches.entries.push(IndexEntry { first: header.first, number: header.number, at });
            stretches.bytes_since = 0;
        }
        stretches.bytes_since += header.total_len();
    }

    /// The last entry of the partition that begins at or below `from`.
    pub(super) fn floor(&self, partition: i16, from: MessageId) -> Option<IndexEntry> {
        let entries = &self.partitions.get(&partition)?.entries;
        entries.get(entries.partition_point(|entry| entry.first <= from).checked_sub(1)?).copied()
    }

    /// The first entry of the partition that begins at or above `id`.
    pub(super) fn next(&self, partition: i16, id: MessageId) -> Option<IndexEntry> {
        let entries = &self.partitions.get(&partition)?.entries;
        entries.get(entries.partition_point(|entry| entry.first < id)).copied()
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (i16, IndexEntry)> + '_ {
        self.partitions.iter().flat_map(|(partition, stretches)| stretches.entries.iter().map(|entry| (*partition, *entry)))
    }
}

// The length of a whole table in bytes fits the memory of any machine that runs this.
const _: () = assert!(ENTRY_LEN * (i16::MAX as usize) < super::format::header::MAX_LEN as usize);

#[cfg(test)]
mod tests {
    use hqueue_protocol::stored::TopicTable;

    use super::super::format::block::{FIXED_LEN, Kind};
    use super::*;

    fn header(partition: i16, number: u64, body_len: u32) -> BlockHeader {
        let id = MessageId::new(number as i64, 0);
        BlockHeader {
            kind: Kind::Messages,
            header_len: FIXED_LEN,
            body_len,
            body_crc: 0,
            in_group: 0,
            group: 1,
            partition,
            count: 1,
            number,
            bytes_before: 0,
            first: id,
            last: id,
            arrival_ms: 0,
            topics: TopicTable::Many,
        }
    }

    #[test]
    fn a_mebibyte_of_a_partition_or_eight_of_the_log_get_an_entry() {
        let mut index = SegmentIndex::new(4);
        let at = |mib: u64| LogPosition { epoch: 1, offset: mib << 20 };
        for mib in 0..20 {
            index.note(&header(0, mib, 1 << 20), at(mib));
            index.note(&header(1, mib, 10), at(mib));
        }
        assert_eq!(index.entries().filter(|(p, _)| *p == 0).count(), 20);
        let sparse: Vec<u64> = index.entries().filter(|(p, _)| *p == 1).map(|(_, entry)| entry.at.offset >> 20).collect();
        assert_eq!(sparse, [0, 8, 16]);
        assert_eq!(index.floor(1, MessageId::new(15, 9)).unwrap().number, 8);
        assert_eq!(index.next(1, MessageId::new(8, 1)).unwrap().number, 16);
        assert_eq!(index.floor(2, MessageId::MAX), None);
        assert_eq!(index.next(1, MessageId::MAX), None);
    }
}

//! The segments of a log.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hqueue_protocol::id::MessageId;

use super::segment::{IndexEntry, Segment};

/// By epoch. Cheap to ask, however many there are.
#[derive(Debug)]
pub(super) struct Segments {
    all: RwLock<BTreeMap<u64, Arc<Segment>>>,
    /// Those whose entries are in memory, as the index does not have them.
    unsaved: RwLock<BTreeMap<u64, Arc<Segment>>>,
}

impl Segments {
    pub(super) fn new(found: BTreeMap<u64, Arc<Segment>>) -> Self {
        let in_memory = found.iter().filter(|(_, segment)| segment.index().is_some());
        let unsaved = in_memory.map(|(epoch, segment)| (*epoch, Arc::clone(segment))).collect();
        Self { all: RwLock::new(found), unsaved: RwLock::new(unsaved) }
    }

    /// The oldest first.
    pub(super) fn all(&self) -> Vec<Arc<Segment>> {
        read(&self.all).values().cloned().collect()
    }

    /// Those above an epoch, the oldest first.
    pub(super) fn above(&self, epoch: u64) -> Vec<Arc<Segment>> {
        read(&self.all).range(epoch.saturating_add(1)..).map(|(_, segment)| Arc::clone(segment)).collect()
    }

    /// The last one below an epoch.
    pub(super) fn below(&self, epoch: u64) -> Option<Arc<Segment>> {
        read(&self.all).range(..epoch).next_back().map(|(_, segment)| Arc::clone(segment))
    }

    pub(super) fn get(&self, epoch: u64) -> Option<Arc<Segment>> {
        read(&self.all).get(&epoch).cloned()
    }

    pub(super) fn newest(&self) -> Option<Arc<Segment>> {
        read(&self.all).last_key_value().map(|(_, segment)| Arc::clone(segment))
    }

    pub(super) fn add(&self, segment: Arc<Segment>) {
        write(&self.unsaved).insert(segment.epoch, Arc::clone(&segment));
        write(&self.all).insert(segment.epoch, segment);
    }

    /// Takes those below an epoch away from readers.
    pub(super) fn take_below(&self, epoch: u64) -> Vec<Arc<Segment>> {
        write(&self.unsaved).retain(|unsaved, _| *unsaved >= epoch);
        let mut all = write(&self.all);
        let kept = all.split_off(&epoch);
        std::mem::replace(&mut *all, kept).into_values().collect()
    }

    /// The entries of a segment are in the index, or need not be kept.
    pub(super) fn saved(&self, segment: &Segment) {
        write(&self.unsaved).remove(&segment.epoch);
        *segment.index_mut() = None;
    }

    /// The last entry in memory of a partition at or below an id.
    pub(super) fn floor(&self, partition: i16, from: MessageId) -> Option<IndexEntry> {
        read(&self.unsaved).values().rev().find_map(|segment| segment.index().as_ref()?.floor(partition, from))
    }

    /// The first entry in memory of a partition at or above an id.
    pub(super) fn next(&self, partition: i16, id: MessageId) -> Option<IndexEntry> {
        read(&self.unsaved).values().find_map(|segment| segment.index().as_ref()?.next(partition, id))
    }
}

type Map = BTreeMap<u64, Arc<Segment>>;

fn read(map: &RwLock<Map>) -> RwLockReadGuard<'_, Map> {
    map.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(map: &RwLock<Map>) -> RwLockWriteGuard<'_, Map> {
    map.write().unwrap_or_else(PoisonError::into_inner)
}

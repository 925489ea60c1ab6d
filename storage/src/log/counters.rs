//! What the store has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::store::StoreCounters;

/// Upper bounds of the sync histogram in microseconds.
const SYNC_BOUNDS: [u64; 12] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000, u64::MAX];

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) appended_messages: AtomicU64,
    pub(super) appended_bytes: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) damaged_blocks: AtomicU64,
    pub(super) expired_messages: AtomicU64,
    pub(super) dropped_messages: AtomicU64,
    syncs: AtomicU64,
    sync_micros: AtomicU64,
    sync_histogram: [AtomicU64; SYNC_BOUNDS.len()],
    disk_reads: AtomicU64,
    disk_read_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn add(&self, counter: impl FnOnce(&Self) -> &AtomicU64, n: u64) {
        counter(self).fetch_add(n, Relaxed);
    }

    pub(super) fn synced(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.syncs.fetch_add(1, Relaxed);
        self.sync_micros.fetch_add(micros, Relaxed);
        if let Some((_, count)) = SYNC_BOUNDS.iter().zip(&self.sync_histogram).find(|(bound, _)| micros <= **bound) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn read(&self, bytes: usize) {
        self.disk_reads.fetch_add(1, Relaxed);
        self.disk_read_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn snapshot(&self, tail_cache_bytes: u64) -> StoreCounters {
        let histogram = SYNC_BOUNDS.iter().zip(&self.sync_histogram);
        StoreCounters {
            appended_messages: self.appended_messages.load(Relaxed),
            appended_bytes: self.appended_bytes.load(Relaxed),
            commits: self.commits.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            sync_micros: self.sync_micros.load(Relaxed),
            sync_histogram: histogram.map(|(bound, count)| (*bound, count.load(Relaxed))).collect(),
            disk_reads: self.disk_reads.load(Relaxed),
            disk_read_bytes: self.disk_read_bytes.load(Relaxed),
            tail_cache_bytes,
            damaged_blocks: self.damaged_blocks.load(Relaxed),
            expired_messages: self.expired_messages.load(Relaxed),
            dropped_messages: self.dropped_messages.load(Relaxed),
        }
    }
}

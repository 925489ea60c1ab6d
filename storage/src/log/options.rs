//! Every option of the log, with its default and limits.

use std::path::PathBuf;
use std::time::Duration;

use crate::store::Durability;

const MIB: usize = 1 << 20;

/// How a [`SegmentStore`](super::SegmentStore) works.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The folder that holds everything: `queues/` with a folder for each queue, and `index/`. Made if it is not there.
    pub data: PathBuf,
    /// When an append is answered. Default: `Sync`.
    pub durability: Durability,
    /// With `Durability::Async`: how long written bytes stay unsynced at most. Default: 100 ms.
    pub async_sync: Duration,
    /// A segment file is full at so many bytes. Default: 128 MiB; at least 64 KiB, at most 1 GiB.
    pub segment_bytes: u64,
    /// Bytes of one queue that may wait for the disk; beyond, appends are refused as `Busy`. Default: 64 MiB; at least 1 MiB.
    pub waiting_bytes: usize,
    /// Threads that write and sync, shared by all queues. Default: 4; 1 to 64.
    pub io_threads: usize,
    /// Threads that read what memory does not hold. Default: 4; 1 to 64.
    pub read_threads: usize,
    /// Recent messages of all queues that stay in memory, in bytes. Default: 192 MiB.
    pub tail_cache_bytes: usize,
    /// Windows of 1 MiB of the log that stay in memory for readers of old messages, in bytes. Default: 64 MiB; at least 4 MiB.
    pub window_cache_bytes: usize,
    /// Segment files that are kept open. Default: 256; at least 8.
    pub open_files: usize,
    /// What the index may keep in memory, in bytes. Default: 16 MiB; at least 1 MiB.
    pub index_cache_bytes: u64,
    /// How often expired messages are looked for and their files given back. Default: 10 s.
    pub sweep: Duration,
}

/// An option is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} is {value}: it must be {limits}")]
pub struct BadOption {
    pub option: &'static str,
    pub value: u64,
    pub limits: &'static str,
}

impl StoreOptions {
    /// Defaults, in a folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            durability: Durability::Sync,
            async_sync: Duration::from_millis(100),
            segment_bytes: 128 << 20,
            waiting_bytes: 64 * MIB,
            io_threads: 4,
            read_threads: 4,
            tail_cache_bytes: 192 * MIB,
            window_cache_bytes: 64 * MIB,
            open_files: 256,
            index_cache_bytes: 16 << 20,
            sweep: Duration::from_secs(10),
        }
    }

    /// Are all options within their limits?
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), BadOption> {
        let wide = |n: usize| n as u64;
        check("segment_bytes", self.segment_bytes, 64 << 10, 1 << 30, "64 KiB to 1 GiB")?;
        check("waiting_bytes", wide(self.waiting_bytes), 1 << 20, 1 << 30, "1 MiB to 1 GiB")?;
        check("io_threads", wide(self.io_threads), 1, 64, "1 to 64")?;
        check("read_threads", wide(self.read_threads), 1, 64, "1 to 64")?;
        check("window_cache_bytes", wide(self.window_cache_bytes), 4 << 20, u64::MAX, "4 MiB or more")?;
        check("open_files", wide(self.open_files), 8, u64::MAX, "8 or more")?;
        check("index_cache_bytes", self.index_cache_bytes, 1 << 20, u64::MAX, "1 MiB or more")
    }
}

fn check(option: &'static str, value: u64, least: u64, most: u64, limits: &'static str) -> Result<(), BadOption> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(BadOption { option, value, limits }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_within_the_limits_and_refusals_name_them() {
        let mut options = StoreOptions::new("/data");
        assert_eq!(options.check(), Ok(()));
        options.io_threads = 0;
        assert_eq!(options.check().unwrap_err().to_string(), "io_threads is 0: it must be 1 to 64");
    }
}

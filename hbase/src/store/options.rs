//! How the store works.

use std::time::Duration;

use crate::gateway::GatewayOptions;

/// What a store can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HBaseOptions {
    pub gateway: GatewayOptions,
    /// HBase's namespace for the tables of queues. Default `default`.
    pub namespace: String,
    /// How many partitions lie in a region of a table that is made without saying so: as many as give [`DEFAULT_REGIONS`] regions.
    pub partitions_per_region: Option<i16>,
    /// Rows in a call. Default 1000.
    pub rows_per_call: u32,
    /// A call is closed when it has reached so many bytes. Default 4 MiB.
    pub bytes_per_call: usize,
    /// Calls under way for the partitions of a region; what comes meanwhile gathers. Default 2.
    pub calls_per_region: usize,
    /// Appends are refused as busy while so many bytes wait for HBase, in all queues together. Default 64 MiB.
    pub waiting_bytes: usize,
    /// Recent messages of all queues stay in memory up to so many bytes. Default 256 MiB.
    pub tail_bytes: usize,
    /// A put is tried again and again for so long before it fails; its outcome is not known then. Default 60 s.
    pub write_patience: Duration,
    /// The same for reads. Default 30 s.
    pub read_patience: Duration,
    /// The same for making, emptying and removing tables. Default 120 s.
    pub table_patience: Duration,
    /// HBase deletes what has expired so long ago: clocks of brokers and region servers differ. `None`: HBase deletes nothing; for tests
    /// whose clock is not HBase's. Default 60 s.
    pub delete_after: Option<Duration>,
    /// The store is the only one, and acquires every partition of a queue when the queue is opened. Default false: partitions are
    /// acquired one by one.
    pub owns_everything: bool,
}

/// Regions of a table whose making does not say how many.
pub const DEFAULT_REGIONS: i16 = 8;

impl HBaseOptions {
    /// The defaults, for gateways at these addresses.
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        Self {
            gateway: GatewayOptions::new(addresses),
            namespace: "default".to_owned(),
            partitions_per_region: None,
            rows_per_call: 1000,
            bytes_per_call: 4 << 20,
            calls_per_region: 2,
            waiting_bytes: 64 << 20,
            tail_bytes: 256 << 20,
            write_patience: Duration::from_secs(60),
            read_patience: Duration::from_secs(30),
            table_patience: Duration::from_secs(120),
            delete_after: Some(Duration::from_secs(60)),
            owns_everything: false,
        }
    }

    /// Partitions in a region of a table of so many; `asked` was said when it was made.
    pub(super) fn region_of(&self, partitions: i16, asked: Option<i16>) -> i16 {
        let default = (partitions / DEFAULT_REGIONS).saturating_add(i16::from(partitions % DEFAULT_REGIONS != 0));
        asked.or(self.partitions_per_region).unwrap_or(default).max(1)
    }

    /// The family's TTL for messages that live so long: `None` keeps them for ever.
    pub(super) fn family_ttl(&self, ttl_ms: i64) -> Option<i32> {
        let delete_after = i64::try_from(self.delete_after?.as_millis()).unwrap_or(i64::MAX);
        let seconds = ttl_ms.saturating_add(delete_after).saturating_add(999) / 1000;
        i32::try_from(seconds).ok().filter(|seconds| *seconds < i32::MAX)
    }
}

//! How long syncs take, as a histogram.

use std::fmt;

use hqueue_storage::store::StoreCounters;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// The store keeps the counts; here they are only shown.
#[derive(Debug)]
pub(super) struct SyncTime(pub(super) StoreCounters);

impl Collector for SyncTime {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let counters = &self.0;
        let seconds = |micros: u64| std::time::Duration::from_micros(micros).as_secs_f64();
        // The last bound of the store has no upper end.
        let buckets: Vec<(f64, u64)> = counters
            .sync_histogram
            .iter()
            .map(|(micros, count)| (if *micros == u64::MAX { f64::MAX } else { seconds(*micros) }, *count))
            .collect();
        let mut metric = encoder.encode_descriptor("sync_seconds", "Time that a sync call took", None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(seconds(counters.sync_micros), counters.syncs, &buckets, None)
    }
}

//! The HBase store does what every store must do.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hqueue_hbase::store::HBaseOptions;
use hqueue_storage::conformance::{Harness, ManualClock};
use hqueue_storage::store::{MessageStore, StoreError};

use crate::support::{open, options_out_of_time};

struct InHBase {
    options: HBaseOptions,
}

impl InHBase {
    fn new(change: fn(&mut HBaseOptions)) -> Self {
        let mut options = options_out_of_time();
        change(&mut options);
        Self { options }
    }
}

impl Harness for InHBase {
    fn open(&self, clock: Arc<ManualClock>) -> BoxFuture<'_, Result<Arc<dyn MessageStore>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(open(self.options.clone(), clock).await?) as _) })
    }

    /// A table of HBase takes seconds to come and go while all tests run.
    fn deadline(&self) -> Duration {
        Duration::from_secs(180)
    }
}

/// Every read goes to HBase, small calls, two partitions in a region.
fn nothing_in_memory(options: &mut HBaseOptions) {
    options.tail_bytes = 0;
    options.rows_per_call = 7;
    options.partitions_per_region = Some(500);
}

hqueue_storage::conformance_tests_without_limits!(hbase: InHBase::new(|_| {}));

/// The cases that read.
mod nothing_in_memory {
    use super::{InHBase, nothing_in_memory};

    macro_rules! cases {
        ($($name:ident: $case:literal;)*) => { $(
            #[test]
            fn $name() {
                hqueue_storage::conformance::run($case, InHBase::new(nothing_in_memory));
            }
        )* };
    }

    cases! {
        in_order: "appends::what_was_appended_is_read_in_order";
        whole_batches: "appends::a_batch_becomes_visible_whole";
        everything_kept: "appends::topics_values_headers_and_unknown_fields_are_kept";
        beginnings: "cursors::a_read_begins_at_the_first_id_at_or_above";
        small_reads: "cursors::small_reads_visit_every_block_once";
        stale_hints: "cursors::stale_hints_are_harmless";
        followers: "concurrency::a_follower_gets_what_was_acknowledged_in_order";
        beside_a_truncation: "concurrency::appends_beside_a_truncation_are_kept_or_gone_whole";
        counts: "counts::counts_without_topics_are_exact_at_every_id";
        told_what_expired: "ttl::a_reader_is_told_what_expired";
        told_what_was_truncated: "truncation::a_reader_is_told_what_was_truncated";
        odd_arrivals: "ttl::an_odd_arrival_neither_holds_nor_kills_its_neighbours";
    }
}

//! What all queues of a store share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use hqueue_storage::clock::Clock;
use hqueue_storage::expiry::SharedExpiryClock;
use hqueue_storage::marks::Marks;
use hqueue_storage::store::StoreError;
use hqueue_storage::tails::Tails;
use tokio::time::Instant;

use super::options::HBaseOptions;
use super::queue::HBaseQueue;
use crate::gateway::{GatewayError, Gateways};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: HBaseOptions,
    pub(super) gateways: Gateways,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) marks: Arc<dyn Marks>,
    expiry: SharedExpiryClock,
    pub(super) tails: Tails<HBaseQueue>,
    pub(super) counters: Counters,
    /// Bytes of appends that HBase has not acknowledged.
    pub(super) waiting_bytes: AtomicUsize,
    pub(super) closed: AtomicBool,
    /// Ids are being reserved ahead of need.
    pub(super) reserving: AtomicBool,
    /// The table of the records.
    pub(super) records: Bytes,
    /// Where calls to HBase run: `append` is no future.
    pub(super) runtime: tokio::runtime::Handle,
}

/// Each is explained in `StoreCounters`.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) appended_messages: AtomicU64,
    pub(super) appended_bytes: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) write_micros: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) read_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn new(options: HBaseOptions, clock: Arc<dyn Clock>, marks: Arc<dyn Marks>, records: Bytes) -> Self {
        Self {
            gateways: Gateways::new(options.gateway.clone()),
            expiry: SharedExpiryClock::starting(&*clock),
            tails: Tails::new(options.tail_bytes),
            counters: Counters::default(),
            waiting_bytes: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            reserving: AtomicBool::new(false),
            records,
            runtime: tokio::runtime::Handle::current(),
            options,
            clock,
            marks,
        }
    }

    /// The time by which messages expire. Milliseconds since 1970 UTC.
    pub(super) fn expiry_now_ms(&self) -> i64 {
        self.expiry.now_ms(&*self.clock)
    }

    pub(super) fn write_deadline(&self) -> Instant {
        Instant::now() + self.options.write_patience
    }

    pub(super) fn read_deadline(&self) -> Instant {
        Instant::now() + self.options.read_patience
    }

    pub(super) fn table_deadline(&self) -> Instant {
        Instant::now() + self.options.table_patience
    }

    pub(super) fn count(&self, of: impl FnOnce(&Counters) -> &AtomicU64, more: u64) {
        of(&self.counters).fetch_add(more, Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }
}

/// An error of HBase as the seam has it.
pub(super) fn failed(what: &'static str) -> impl FnOnce(GatewayError) -> StoreError {
    move |error| StoreError::Remote { what, retryable: error.is_retryable(), reason: error.to_string() }
}

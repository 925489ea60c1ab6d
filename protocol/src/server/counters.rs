//! What a server has counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one server. All but `open` only rise; each is read on its own, so that sums may be off by what is just happening.
#[derive(Debug, Default)]
pub struct ServerCounters {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    foreign: AtomicU64,
    protocol_errors: AtomicU64,
    expired: AtomicU64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $get:ident, $field:ident;)*) => {
        impl ServerCounters {
            $($(#[$doc])* #[must_use] pub fn $get(&self) -> u64 { self.$field.load(Ordering::Relaxed) })*
        }
    };
}

counters! {
    /// Connections now.
    open_connections, open;
    /// Connections accepted since the start, the refused ones not among them.
    accepted_connections, accepted;
    /// Connections closed at once because `max_connections` were there.
    refused_connections, refused;
    /// Calls handed to the service.
    requests, requests;
    /// Bytes read.
    bytes_in, bytes_in;
    /// Bytes written.
    bytes_out, bytes_out;
    /// Connections closed because the peer spoke something else than Thrift.
    foreign_peers, foreign;
    /// Connections closed because of bytes that are no Thrift or beyond a limit.
    protocol_errors, protocol_errors;
    /// Connections closed because a deadline had passed, the idle ones among them.
    expired_connections, expired;
}

impl ServerCounters {
    pub(super) fn opened(&self) {
        add(&self.open, 1);
        add(&self.accepted, 1);
    }

    pub(super) fn closed(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        add(&self.refused, 1);
    }

    pub(super) fn request(&self) {
        add(&self.requests, 1);
    }

    pub(super) fn read(&self, bytes: usize) {
        add(&self.bytes_in, bytes as u64);
    }

    pub(super) fn written(&self, bytes: usize) {
        add(&self.bytes_out, bytes as u64);
    }

    pub(super) fn foreign(&self) {
        add(&self.foreign, 1);
    }

    pub(super) fn protocol_error(&self) {
        add(&self.protocol_errors, 1);
    }

    pub(super) fn expired(&self) {
        add(&self.expired, 1);
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

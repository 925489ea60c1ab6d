//! What all connections of a server share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::budget::Budget;
use super::counters::ServerCounters;
use super::log_gate::LogGate;
use super::options::ServerOptions;
use super::pace::PaceLimits;
use super::service::Service;
use super::watch::Clock;
use crate::wire::Foreign;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) service: Arc<dyn Service>,
    pub(super) counters: Arc<ServerCounters>,
    pub(super) budget: Arc<Budget>,
    pub(super) clock: Clock,
    pub(super) request_pace: PaceLimits,
    pub(super) reply_pace: PaceLimits,
    pub(super) options: ServerOptions,
    stopping: AtomicBool,
    logs: Logs,
}

/// A gate for each kind of line, so that a flood of one does not hide another.
#[derive(Debug, Default)]
struct Logs {
    foreign: [LogGate; 6],
    protocol_error: LogGate,
    late: LogGate,
    over_budget: LogGate,
}

impl Shared {
    pub(super) fn new(options: ServerOptions, service: Arc<dyn Service>) -> Self {
        Self {
            service,
            counters: Arc::default(),
            budget: Budget::new(options.max_buffered_bytes),
            clock: Clock::start(),
            request_pace: PaceLimits::new(options.request_stall, options.transfer_time, options.min_rate),
            reply_pace: PaceLimits::new(options.write_stall, options.transfer_time, options.min_rate),
            options,
            stopping: AtomicBool::new(false),
            logs: Logs::default(),
        }
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn log_foreign(&self, peer: SocketAddr, foreign: &Foreign) {
        let kind = match foreign {
            Foreign::Http => 0,
            Foreign::Tls => 1,
            Foreign::Ssh => 2,
            Foreign::Text => 3,
            Foreign::Frame(_) => 4,
            Foreign::Unknown => 5,
        };
        if let Some(suppressed) = self.logs.foreign.get(kind).and_then(|gate| gate.pass(self.clock.now())) {
            tracing::warn!(%peer, suppressed, "connection closed: {foreign}");
        }
    }

    pub(super) fn log_protocol_error(&self, peer: SocketAddr, reason: &str) {
        if let Some(suppressed) = self.logs.protocol_error.pass(self.clock.now()) {
            tracing::warn!(%peer, suppressed, "connection closed after a request that is refused: {reason}");
        }
    }

    pub(super) fn log_late(&self, peer: SocketAddr, what: &'static str) {
        if let Some(suppressed) = self.logs.late.pass(self.clock.now()) {
            tracing::warn!(%peer, suppressed, "connection closed: {what}");
        }
    }

    pub(super) fn log_over_budget(&self, peer: SocketAddr) {
        if let Some(suppressed) = self.logs.over_budget.pass(self.clock.now()) {
            let (used, limit) = (self.budget.used(), self.budget.limit());
            tracing::warn!(%peer, suppressed, used, limit, "connection closed: too many bytes wait in all connections together");
        }
    }
}

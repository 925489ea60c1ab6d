//! The figures, gathered when they are asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use hqueue_protocol::server::ServerCounters;
use hqueue_storage::store::{MessageStore, StoreError};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::cluster_figures::cluster_figures;
use super::figures::{count, level};
use super::sync_time::SyncTime;
use crate::catalog::{Catalog, Queue, subscription_status};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// At most so many queues, partitions and subscriptions have lines of their own; beyond it a line says how many were left out.
const MAX_SERIES: usize = 10_000;

/// Where the figures come from.
#[derive(Debug)]
pub struct MetricsSource {
    pub catalog: Arc<Catalog>,
    pub store: Arc<dyn MessageStore>,
    pub server: Arc<ServerCounters>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    queue: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartitionLabels {
    queue: String,
    partition: i16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SubscriptionLabels {
    queue: String,
    subscriber: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    queue: String,
    subscriber: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    queue: String,
    subscriber: String,
    result: &'static str,
}

type Count<L> = Family<L, Counter>;
type Level<L> = Family<L, Gauge<i64, AtomicI64>>;
type Seconds<L> = Family<L, Gauge<f64, AtomicU64>>;

impl MetricsSource {
    /// The text that Prometheus reads.
    pub async fn encode(&self) -> Result<String, String> {
        let mut registry = Registry::with_prefix("hqueue");
        self.store_figures(&mut registry);
        self.server_figures(&mut registry);
        cluster_figures(&mut registry, &self.catalog);
        let mut left_out = 0;
        let queues = QueueFigures::register(&mut registry);
        let subscriptions = SubscriptionFigures::register(&mut registry);
        let mut room = MAX_SERIES;
        for queue in self.catalog.queues() {
            left_out += queues.note(&queue, &mut room)?;
            left_out += subscriptions.note(&queue, &mut room).await?;
        }
        level(&mut registry, "series_left_out", "Queues, partitions and subscriptions beyond the bound on labels", left_out);
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|error| error.to_string())?;
        Ok(text)
    }

    fn store_figures(&self, registry: &mut Registry) {
        let counters = self.store.counters();
        count(registry, "appended_messages", "Messages committed", counters.appended_messages);
        count(registry, "appended_bytes", "Bytes of messages committed, as stored", counters.appended_bytes);
        count(registry, "commits", "Groups of puts written", counters.commits);
        count(registry, "syncs", "Sync calls", counters.syncs);
        count(registry, "sync_microseconds", "Time spent in sync calls", counters.sync_micros);
        count(registry, "disk_reads", "Reads of messages that went to a file", counters.disk_reads);
        count(registry, "disk_read_bytes", "Bytes of these reads", counters.disk_read_bytes);
        count(registry, "damaged_blocks", "Blocks that were found damaged and skipped", counters.damaged_blocks);
        count(registry, "expired_messages", "Messages removed because of their age", counters.expired_messages);
        let help = "Messages removed to make room for newer ones";
        count(registry, "dropped_messages", help, counters.dropped_messages);
        level(registry, "tail_cache_bytes", "Recent messages in memory", counters.tail_cache_bytes);
        registry.register_collector(Box::new(SyncTime(counters)));
    }

    fn server_figures(&self, registry: &mut Registry) {
        let counters = &self.server;
        level(registry, "connections", "Connections of clients that are open", counters.open_connections());
        count(registry, "connections_accepted", "Connections accepted", counters.accepted_connections());
        count(registry, "connections_refused", "Connections closed because too many were open", counters.refused_connections());
        count(
            registry,
            "connections_expired",
            "Connections closed because a deadline had passed",
            counters.expired_connections(),
        );
        count(registry, "requests", "Calls of clients", counters.requests());
        count(registry, "received_bytes", "Bytes read from clients", counters.bytes_in());
        count(registry, "sent_bytes", "Bytes written to clients", counters.bytes_out());
        count(
            registry,
            "protocol_errors",
            "Connections closed because of bytes that are no Thrift or beyond a limit",
            counters.protocol_errors(),
        );
        count(
            registry,
            "foreign_connections",
            "Connections closed because their peer does not talk Thrift",
            counters.foreign_peers(),
        );
    }
}

struct QueueFigures {
    puts: Count<QueueLabels>,
    put_bytes: Count<QueueLabels>,
    refused: Count<QueueLabels>,
    committed: Level<PartitionLabels>,
}

impl QueueFigures {
    fn register(registry: &mut Registry) -> Self {
        let figures = Self {
            puts: Family::default(),
            put_bytes: Family::default(),
            refused: Family::default(),
            committed: Family::default(),
        };
        registry.register("put_messages", "Messages put and acknowledged", figures.puts.clone());
        registry.register("put_bytes", "Bytes put and acknowledged, as stored", figures.put_bytes.clone());
        registry.register("puts_refused", "Puts that were refused or failed", figures.refused.clone());
        let help = "Time of the last id that is committed, in milliseconds since 1970 UTC";
        registry.register("committed_timestamp_milliseconds", help, figures.committed.clone());
        figures
    }

    fn note(&self, queue: &Queue, room: &mut usize) -> Result<u64, String> {
        let name = queue.name.as_str().to_owned();
        let labels = QueueLabels { queue: name.clone() };
        self.puts.get_or_create(&labels).inc_by(queue.puts.messages.load(Ordering::Relaxed));
        self.put_bytes.get_or_create(&labels).inc_by(queue.puts.bytes.load(Ordering::Relaxed));
        self.refused.get_or_create(&labels).inc_by(queue.puts.refused.load(Ordering::Relaxed));
        let mut left_out = 0;
        for partition in 0..queue.partitions() {
            let committed = match queue.store.committed(partition) {
                Ok(committed) => committed,
                // Its owner tells.
                Err(StoreError::NotHeld { .. }) => continue,
                Err(error) => return Err(error.to_string()),
            };
            let Some(last) = committed.last else { continue };
            if *room == 0 {
                left_out += 1;
                continue;
            }
            *room -= 1;
            self.committed.get_or_create(&PartitionLabels { queue: name.clone(), partition }).set(last.timestamp);
        }
        Ok(left_out)
    }
}

struct SubscriptionFigures {
    lag: Level<SubscriptionLabels>,
    lag_seconds: Seconds<SubscriptionLabels>,
    in_flight: Level<SubscriptionLabels>,
    delivered: Count<SubscriptionLabels>,
    expired: Count<SubscriptionLabels>,
    damaged: Count<SubscriptionLabels>,
    dead_lettered: Count<SubscriptionLabels>,
    states: Level<StateLabels>,
    calls: Count<ResultLabels>,
    call_time: Count<SubscriptionLabels>,
    last_error: Seconds<SubscriptionLabels>,
}

impl SubscriptionFigures {
    fn register(registry: &mut Registry) -> Self {
        let figures = Self {
            lag: Family::default(),
            lag_seconds: Family::default(),
            in_flight: Family::default(),
            delivered: Family::default(),
            expired: Family::default(),
            damaged: Family::default(),
            dead_lettered: Family::default(),
            states: Family::default(),
            calls: Family::default(),
            call_time: Family::default(),
            last_error: Family::default(),
        };
        registry.register("lag_messages", "Messages wanted and not finished", figures.lag.clone());
        registry.register_with_unit("lag", "Age of the oldest of these", Unit::Seconds, figures.lag_seconds.clone());
        registry.register("in_flight_messages", "Messages in calls under way", figures.in_flight.clone());
        registry.register("delivered_messages", "Messages that the subscriber consumed", figures.delivered.clone());
        registry.register("expired_unread_messages", "Messages that expired before they were consumed", figures.expired.clone());
        let help = "Messages that could not be delivered since their bytes are damaged";
        registry.register("damaged_unread_messages", help, figures.damaged.clone());
        registry.register("dead_lettered_messages", "Messages that became dead letters", figures.dead_lettered.clone());
        let help = "1 for the state in which the subscription is, as in its status";
        registry.register("subscription_state", help, figures.states.clone());
        registry.register("calls", "Calls to the subscriber by result", figures.calls.clone());
        registry.register("call_microseconds", "Time that answered calls took", figures.call_time.clone());
        let help = "When a call failed last, in seconds since 1970 UTC; 0: never";
        registry.register("last_error_timestamp_seconds", help, figures.last_error.clone());
        figures
    }

    async fn note(&self, queue: &Queue, room: &mut usize) -> Result<u64, String> {
        let mut left_out = 0;
        for subscription in queue.subscriptions() {
            if *room == 0 {
                left_out += 1;
                continue;
            }
            *room -= 1;
            let status = subscription_status(queue, &subscription).await.map_err(|e| e.to_string())?;
            let shared = subscription.shared();
            let labels = SubscriptionLabels { queue: shared.queue.clone(), subscriber: shared.name.clone() };
            let counters = &shared.counters;
            self.lag.get_or_create(&labels).set(status.lag_messages.unwrap_or_default());
            self.lag_seconds.get_or_create(&labels).set(status.lag_seconds.map_or(0.0, f64::from));
            self.in_flight.get_or_create(&labels).set(status.in_flight.unwrap_or_default());
            self.delivered.get_or_create(&labels).inc_by(counters.delivered.load(Ordering::Relaxed));
            self.expired.get_or_create(&labels).inc_by(counters.expired.load(Ordering::Relaxed));
            self.damaged.get_or_create(&labels).inc_by(counters.damaged.load(Ordering::Relaxed));
            self.dead_lettered.get_or_create(&labels).inc_by(counters.dead_lettered.load(Ordering::Relaxed));
            let state = subscription.state().name();
            let of_state = StateLabels { queue: shared.queue.clone(), subscriber: shared.name.clone(), state };
            self.states.get_or_create(&of_state).set(1);
            self.call_time.get_or_create(&labels).inc_by(counters.call_micros.load(Ordering::Relaxed));
            let failed = counters.failed.load(Ordering::Relaxed);
            let consumed = counters.consumed.load(Ordering::Relaxed);
            let busy = counters.busy.load(Ordering::Relaxed);
            for (result, value) in [("consumed", consumed), ("failed", failed), ("busy", busy)] {
                let labels = ResultLabels { queue: shared.queue.clone(), subscriber: shared.name.clone(), result };
                self.calls.get_or_create(&labels).inc_by(value);
            }
            let at = shared.last_error().map_or(0.0, |e| std::time::Duration::from_millis(e.at.0.unsigned_abs()).as_secs_f64());
            self.last_error.get_or_create(&labels).set(at);
        }
        Ok(left_out)
    }
}

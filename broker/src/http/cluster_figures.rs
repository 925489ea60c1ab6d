//! What is ours among several brokers.

use prometheus_client::registry::Registry;

use super::figures::level;
use crate::catalog::{Catalog, Route};

/// Partitions that are ours and those that nobody serves, as seen from here.
pub(super) fn cluster_figures(registry: &mut Registry, catalog: &Catalog) {
    let (mut held, mut offline) = (0, 0);
    for queue in catalog.queues() {
        for partition in 0..queue.partitions() {
            match catalog.route(&queue, partition) {
                Route::Here => held += 1,
                Route::Offline(_) => offline += 1,
                Route::At(_) => {}
            }
        }
    }
    level(registry, "partitions_held", "Partitions that this broker serves", held);
    level(registry, "partitions_offline", "Partitions that no broker serves, as this one sees it", offline);
    let session = u64::from(catalog.lease.session().is_some());
    level(registry, "session_held", "1 while this broker certainly has its session with coordination", session);
    if let Some(cluster) = &catalog.cluster {
        let brokers = cluster.members.brokers().len() as u64;
        level(registry, "brokers", "Brokers that are there, as this one sees it", brokers);
        level(registry, "balancer", "1 if this broker gives partitions to brokers", u64::from(cluster.balancer.is_elected()));
    }
}

//! Says when the partitions of this broker go offline since its session may have ended, and when that is over.

use std::sync::Arc;

use super::catalog::Catalog;

/// Follows our session until the broker stops.
pub(super) async fn watch(catalog: Arc<Catalog>) {
    let stop = catalog.scope.stop.clone();
    loop {
        tokio::select! {
            () = catalog.lease.over() => {}
            () = stop.cancelled() => return,
        }
        let claimed: Vec<usize> = catalog.queues().iter().map(|queue| queue.claimed_partitions()).filter(|n| *n > 0).collect();
        let (queues, partitions) = (claimed.len(), claimed.iter().sum::<usize>());
        if partitions > 0 {
            tracing::warn!(
                queues,
                partitions,
                "offline: this broker cannot be sure of its session with ZooKeeper; no puts, pushes and checkpoints until it can"
            );
        }
        tokio::select! {
            () = catalog.lease.holds() => {}
            () = stop.cancelled() => return,
        }
        if partitions > 0 {
            tracing::info!(queues, partitions, "sure of a session with ZooKeeper again: they are claimed anew, or still ours");
        }
    }
}

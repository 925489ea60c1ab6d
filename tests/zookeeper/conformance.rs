//! The coordinator on ZooKeeper does what every coordinator has to do.

use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::conformance::Harness;
use hqueue_coordination::zookeeper::ZooKeeperCoordinator;
use hqueue_coordination::{Coordinator, SharedCoordinator};

use crate::support::{PATIENCE, connect, fresh_root, options, shared_server};

/// A session on a root of its own.
struct OnZooKeeper {
    root: String,
    coordinator: Arc<ZooKeeperCoordinator>,
}

impl OnZooKeeper {
    async fn on(root: String) -> Self {
        let coordinator = connect(options(&shared_server().host(), &root)).await;
        Self { root, coordinator }
    }
}

impl Harness for OnZooKeeper {
    const PATIENCE: Duration = PATIENCE;

    async fn start() -> Self {
        Self::on(fresh_root()).await
    }

    fn coordinator(&self) -> SharedCoordinator {
        self.coordinator.clone()
    }

    async fn second_session(&self) -> Option<SharedCoordinator> {
        Some(connect(options(&shared_server().host(), &self.root)).await)
    }

    async fn restart(self) -> Self {
        self.coordinator.close().await;
        Self::on(self.root).await
    }
}

hqueue_coordination::coordinator_conformance!(OnZooKeeper);

//! The embedded coordinator does what every coordinator has to do.

use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::SharedCoordinator;
use hqueue_coordination::conformance::Harness;
use hqueue_coordination::embedded::EmbeddedCoordinator;
use hqueue_storage::disk::{PowerCut, SimulatedDisk};

use crate::support::open;

/// On a disk in memory that loses, at a restart, what was not synced.
struct Embedded {
    disk: SimulatedDisk,
    coordinator: Arc<EmbeddedCoordinator>,
}

impl Embedded {
    fn on(disk: SimulatedDisk) -> Self {
        Self { coordinator: open(&disk), disk }
    }
}

impl Harness for Embedded {
    const PATIENCE: Duration = Duration::from_secs(10);

    async fn start() -> Self {
        Self::on(SimulatedDisk::new())
    }

    fn coordinator(&self) -> SharedCoordinator {
        self.coordinator.clone()
    }

    async fn second_session(&self) -> Option<SharedCoordinator> {
        Some(Arc::new(self.coordinator.open_session().unwrap()))
    }

    async fn restart(self) -> Self {
        Self::on(self.disk.power_cut(PowerCut::LoseUnsynced))
    }
}

hqueue_coordination::coordinator_conformance!(Embedded);

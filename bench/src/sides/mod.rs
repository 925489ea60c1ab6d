//! What is measured: each side runs as processes of its own, with a data folder of its own.

mod counted;
mod floor;
mod hqueue;
mod live;
mod places;
mod process;
mod running;
mod sdk;
mod syncs;
mod usage;

use std::sync::Arc;

use serde::Serialize;

pub use self::counted::{Allocated, Counted};
pub use self::hqueue::queue_name;
pub use self::live::{Live, Plan};
pub use self::places::Places;
pub use self::process::{Process, free_port, version_of, wait_for_port};
pub use self::running::{Running, Setup};
pub use self::syncs::{SyncCount, files_synced_by_writes};
pub use self::usage::{Usage, descendants, machine_busy};
use crate::driver::{Dialect, FloorDialect, ThriftDialect};
use crate::failure::{Failure, Outcome};
use crate::peers::Peer;
use crate::setting::Durability;

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum Side {
    Floor,
    /// Driven with frames that are encoded once.
    HQueue,
    /// Another build of it.
    Other,
    /// HQueue, driven through its own client library.
    Sdk,
    /// HQueue with messages in HBase.
    InHBase,
    Peer(Peer),
}

impl From<Side> for &'static str {
    fn from(side: Side) -> Self {
        side.name()
    }
}

impl Side {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::HQueue => "hqueue",
            Self::Other => "other",
            Self::Sdk => "hqueue-sdk",
            Self::InHBase => "hqueue in HBase",
            Self::Peer(peer) => peer.name(),
        }
    }

    /// The frames of the sides that are driven by frames. Peers have clients of their own.
    #[must_use]
    pub fn dialect(self) -> Arc<dyn Dialect> {
        match self {
            Self::HQueue | Self::Other | Self::Sdk | Self::InHBase => Arc::new(ThriftDialect),
            Self::Floor | Self::Peer(_) => Arc::new(FloorDialect),
        }
    }

    /// Can it acknowledge as this class says?
    #[must_use]
    pub const fn has(self, durability: Durability) -> bool {
        !matches!((self, durability), (Self::Peer(Peer::RabbitMq), Durability::Async))
    }

    /// How many subscribers it may have.
    #[must_use]
    pub const fn has_subscribers(self, count: usize) -> bool {
        count <= 1 || !matches!(self, Self::Floor)
    }

    /// Starts a side that is driven by frames, with the subscribers of the setup.
    pub async fn start(self, places: &Places, setup: &Setup) -> Outcome<Running> {
        match self {
            Self::Floor => floor::start(places, setup).await,
            Self::HQueue | Self::Sdk => hqueue::start_with(places, &places.hqueue, setup).await,
            Self::Other => hqueue::start_with(places, places.other.as_ref().unwrap_or(&places.hqueue), setup).await,
            Self::InHBase => hqueue::start_in_hbase(places, setup).await,
            Self::Peer(peer) => Err(Failure::Usage(format!("{} has a client of its own", peer.name()))),
        }
    }
}

/// A broker without queues.
pub async fn bare_broker(places: &Places, durability: Durability) -> Outcome<Running> {
    hqueue::start(places, &places.hqueue, durability).await
}

//! What is measured: each side runs as a process of its own, with a data folder of its own.

mod counted;
mod floor;
mod hqueue;
mod process;
mod usage;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use self::counted::{Allocated, Counted};
pub use self::hqueue::queue_name;
pub use self::process::{Process, free_port, version_of, wait_for_port};
pub use self::usage::{Usage, machine_busy};
use crate::driver::{Dialect, FloorDialect, ThriftDialect};
use crate::failure::Outcome;
use crate::setting::Durability;

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Floor,
    HQueue,
    /// Another build of HQueue.
    Other,
}

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The `hqueue` binary.
    pub hqueue: PathBuf,
    /// Another one, to be compared with it.
    pub other: Option<PathBuf>,
    /// This program.
    pub bench: PathBuf,
    /// A folder that this run made for the data of all sides.
    pub data: PathBuf,
}

/// What a side is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub durability: Durability,
    pub queues: u16,
    /// Of each queue.
    pub partitions: u16,
    pub receivers: Vec<SocketAddr>,
}

/// A side that runs and can be put to. Ended, and its data removed, when dropped.
#[derive(Debug)]
pub struct Running {
    pub process: Process,
    pub address: SocketAddr,
    data: PathBuf,
}

impl Side {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::HQueue => "hqueue",
            Self::Other => "other",
        }
    }

    #[must_use]
    pub fn dialect(self) -> Arc<dyn Dialect> {
        match self {
            Self::Floor => Arc::new(FloorDialect),
            Self::HQueue | Self::Other => Arc::new(ThriftDialect),
        }
    }

    /// Starts the side with a subscriber of everything.
    pub async fn start(self, places: &Places, setup: &Setup) -> Outcome<Running> {
        match self {
            Self::Floor => floor::start(places, setup).await,
            Self::HQueue => hqueue::start_with(places, &places.hqueue, setup).await,
            Self::Other => hqueue::start_with(places, places.other.as_ref().unwrap_or(&places.hqueue), setup).await,
        }
    }
}

/// A broker without queues.
pub async fn bare_broker(places: &Places, durability: Durability) -> Outcome<Running> {
    hqueue::start(places, &places.hqueue, durability).await
}

impl Places {
    /// Who takes part in each round, in this order.
    #[must_use]
    pub fn sides(&self) -> Vec<Side> {
        let other = self.other.is_some().then_some(Side::Other);
        [Side::Floor, Side::HQueue].into_iter().chain(other).collect()
    }
}

impl Running {
    /// Ends the broker as a crash would, starts it again on the same data and returns at once.
    pub fn restart(&mut self, places: &Places, durability: Durability) -> Outcome<()> {
        self.process.kill()?;
        self.process = hqueue::spawn(places, &places.hqueue, &self.data, self.address, durability)?;
        Ok(())
    }

    /// Stops the broker in order, starts it again on the same data and returns at once.
    pub async fn restart_in_order(&mut self, places: &Places, durability: Durability) -> Outcome<()> {
        self.process.stop().await?;
        self.process = hqueue::spawn(places, &places.hqueue, &self.data, self.address, durability)?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Removing files under a process that writes them may fail, so it goes first; a failure of either is seen in the output.
        if let Err(failure) = self.process.kill() {
            eprintln!("{failure}");
        }
        if let Err(error) = std::fs::remove_dir_all(&self.data) {
            eprintln!("removing {}: {error}", self.data.display());
        }
    }
}

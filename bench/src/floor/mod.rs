//! The floor: the least that a durable push queue has to do on this machine, and nothing else. No ids, no topics, no index, no
//! checkpoint, no retry.
//!
//! ```text
//! put        length u32 | partition u16 | count u32 | messages         length counts what follows it
//! answer     length u32 = 4 | how many puts of this connection are safe u32
//! push       length u32 | puts as they came, with their lengths
//! answer     length u32 = 4 | 0 u32
//! ```
//!
//! One task a connection reads puts, one thread writes and syncs them in groups, one task a partition pushes them over a connection
//! of its own with one call in flight.

mod delivery;
mod intake;
mod log;
mod vectored;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::delivery::Partition;
use self::log::Log;
use crate::failure::{Doing, Outcome};
use crate::setting::Durability;

/// Bytes of puts that were read and not yet answered by the receiver; while there are so many, nothing more is read.
const MAX_HELD: usize = 256 << 20;

#[derive(Args, Clone, Debug)]
pub struct FloorOptions {
    /// Where producers connect
    #[arg(long)]
    pub listen: SocketAddr,
    /// The folder for the file that puts are written to
    #[arg(long)]
    pub data: PathBuf,
    /// Whom to push to
    #[arg(long)]
    pub receiver: SocketAddr,
    /// When a put is answered: once it is synced, or once it is written (and synced every 100 ms)
    #[arg(long, default_value = "sync")]
    pub durability: Durability,
    /// Partitions, each with a connection of its own to the receiver
    #[arg(long, default_value_t = 8)]
    pub partitions: u16,
    /// Size in MiB of the file, which is written full at the start and used round and round
    #[arg(long, default_value_t = 256)]
    pub file_mib: u64,
}

/// Serves until the process is ended.
pub async fn run(options: FloorOptions) -> Outcome<()> {
    let mut partitions = Vec::new();
    for _ in 0..options.partitions {
        partitions.push(Arc::new(Partition::default()));
    }
    let log = Arc::new(Log::open(&options.data, options.file_mib << 20, options.durability, partitions.clone())?);
    for partition in partitions {
        tokio::spawn(delivery::deliver(partition, options.receiver));
    }
    let held = Arc::new(Semaphore::new(MAX_HELD));
    let listener = TcpListener::bind(options.listen).await.doing(|| format!("listening on {}", options.listen))?;
    loop {
        let (socket, _) = listener.accept().await.doing(|| "accepting a connection".to_owned())?;
        tokio::spawn(intake::serve(socket, Arc::clone(&log), Arc::clone(&held)));
    }
}

/// A put on its way.
#[derive(Debug)]
struct Put {
    /// With its length.
    frame: bytes::Bytes,
    partition: u16,
    /// Its share of [`MAX_HELD`].
    _held: OwnedSemaphorePermit,
}

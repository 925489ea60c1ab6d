//! Every option of a broker, with its effect, unit, default and limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use hqueue_protocol::limits;
use hqueue_storage::store::Durability;

/// How a standalone broker runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that holds everything it keeps. One broker at a time uses it. Default `hqueue-data`.
    pub data: PathBuf,
    /// Where clients reach it; port 0 takes a free one. Default 127.0.0.1:9190.
    pub listen: SocketAddr,
    /// Where `/metrics` and `/healthz` are served; `None`: nowhere. Default 127.0.0.1:9191.
    pub http: Option<SocketAddr>,
    /// When a put is acknowledged. Default: when it is synced to the disk.
    pub durability: Durability,
    /// The largest value of a message, in bytes. Default 4 MiB (4,194,304); 1 to 16,000,000, so that a push with one message stays
    /// below what stock Thrift libraries take.
    pub max_message_bytes: usize,
    /// Recent messages that are kept in memory for all subscribers, in bytes. Default 256 MiB; 1 MiB or more.
    pub tail_cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: PathBuf::from("hqueue-data"),
            listen: SocketAddr::from(([127, 0, 0, 1], 9190)),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 9191))),
            durability: Durability::default(),
            max_message_bytes: limits::DEFAULT_MAX_MESSAGE_BYTES,
            tail_cache_bytes: 256 << 20,
        }
    }
}

/// The largest `max_message_bytes`.
const MESSAGE_BYTES_LIMIT: usize = 16_000_000;
/// The smallest `tail_cache_bytes`.
const SMALLEST_TAIL_CACHE: usize = 1 << 20;

/// An option is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("max_message_bytes is {0}; it can be 1 to {MESSAGE_BYTES_LIMIT}")]
    MaxMessageBytes(usize),
    #[error("tail_cache_bytes is {0}; it can be {SMALLEST_TAIL_CACHE} or more")]
    TailCacheBytes(usize),
}

impl Options {
    /// Compares the options with their limits.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !(1..=MESSAGE_BYTES_LIMIT).contains(&self.max_message_bytes) {
            return Err(OptionsError::MaxMessageBytes(self.max_message_bytes));
        }
        if self.tail_cache_bytes < SMALLEST_TAIL_CACHE {
            return Err(OptionsError::TailCacheBytes(self.tail_cache_bytes));
        }
        Ok(())
    }
}

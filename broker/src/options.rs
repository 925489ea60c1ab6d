//! Every option of a broker, with its effect, unit, default and limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use hqueue_coordination::zookeeper::{ZooKeeperOptions, ZooKeeperOptionsError};

use hqueue_hbase::store::HBaseOptions;
use hqueue_protocol::limits;
use hqueue_storage::store::Durability;

use crate::catalog::check_address;

/// Where brokers meet.
#[derive(Clone, Debug)]
pub enum Coordination {
    /// Nowhere: there is one broker, which keeps what has to be known in its data folder.
    Embedded,
    ZooKeeper(ZooKeeperOptions),
}

/// Where messages are kept.
#[derive(Clone, Debug)]
pub enum Store {
    /// In the broker's data folder.
    Log,
    /// In HBase. The tail cache is that of the broker's options; a broker without others owns everything, whatever the options say.
    HBase(Box<HBaseOptions>),
}

/// How a broker runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Default: embedded.
    pub coordination: Coordination,
    /// Default: the log.
    pub store: Store,
    /// `host:port` that clients and other brokers are told. Default: where it listens; if that is every address, the one by which it
    /// reaches ZooKeeper.
    pub advertise: Option<String>,
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
    /// Recent messages that are kept in memory for all subscribers, in bytes. Default 192 MiB; 1 MiB or more.
    pub tail_cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            coordination: Coordination::Embedded,
            store: Store::Log,
            advertise: None,
            data: PathBuf::from("hqueue-data"),
            listen: SocketAddr::from(([127, 0, 0, 1], 9190)),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 9191))),
            durability: Durability::default(),
            max_message_bytes: limits::DEFAULT_MAX_MESSAGE_BYTES,
            tail_cache_bytes: 192 << 20,
        }
    }
}

/// The largest `max_message_bytes`.
pub const MESSAGE_BYTES_LIMIT: usize = 16_000_000;
/// The smallest `tail_cache_bytes`.
pub const SMALLEST_TAIL_CACHE: usize = 1 << 20;

/// An option is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("max_message_bytes is {0}; it can be 1 to {MESSAGE_BYTES_LIMIT}")]
    MaxMessageBytes(usize),
    #[error("tail_cache_bytes is {0}; it can be {SMALLEST_TAIL_CACHE} or more")]
    TailCacheBytes(usize),
    #[error("{0:?} is no address of a gateway of HBase (host:port)")]
    Gateway(String),
    #[error("no gateway of HBase is named")]
    NoGateway,
    #[error(transparent)]
    ZooKeeper(#[from] ZooKeeperOptionsError),
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
        if let Coordination::ZooKeeper(zookeeper) = &self.coordination {
            zookeeper.check()?;
        }
        if let Store::HBase(hbase) = &self.store {
            let addresses = &hbase.gateway.addresses;
            if addresses.is_empty() {
                return Err(OptionsError::NoGateway);
            }
            if let Some(address) = addresses.iter().find(|address| check_address(address).is_err()) {
                return Err(OptionsError::Gateway(address.clone()));
            }
        }
        Ok(())
    }
}

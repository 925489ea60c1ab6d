//! How the gateway is called.

use std::time::Duration;

/// Where the gateways are, and how long a call may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayOptions {
    /// `host:port` of one or more Thrift2 gateways, as `hbase thrift2 start` starts them (not framed). Calls go to all of them in turn;
    /// one that fails is left alone for [`GatewayOptions::rest`] while another answers.
    pub addresses: Vec<String>,
    /// Calls under way at a time, each on a connection of its own. Default 8, at least 1.
    pub connections: usize,
    /// For a connection to be made. Default 3 s.
    pub connect_timeout: Duration,
    /// From a call to its answer. The gateway itself tries again while regions move, so it is long. Default 20 s.
    pub call_timeout: Duration,
    /// How long a gateway that failed is passed over. Default 5 s.
    pub rest: Duration,
    /// Largest answer that is taken, in bytes. Default 128 MiB.
    pub max_reply_bytes: usize,
}

impl GatewayOptions {
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            connections: 8,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(20),
            rest: Duration::from_secs(5),
            max_reply_bytes: 128 << 20,
        }
    }
}

//! How an endpoint is called.

use std::time::Duration;

use crate::wire::{Dialect, Protocol, Transport};

/// How an endpoint is called.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// `host:port`.
    pub address: String,
    /// `None`: found out by an empty call.
    pub transport: Option<Transport>,
    /// `None`: found out by an empty call.
    pub protocol: Option<Protocol>,
    /// For a connection to be made, its name's resolution included. Default 3 s.
    pub connect_timeout: Duration,
    /// From the first byte sent to the last byte of the reply. Default 30 s.
    pub call_timeout: Duration,
    /// For the reply to each empty call of the detection. Default 1 s.
    pub detect_timeout: Duration,
}

impl EndpointOptions {
    /// The defaults, for `host:port`.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            transport: None,
            protocol: None,
            connect_timeout: Duration::from_secs(3),
            call_timeout: Duration::from_secs(30),
            detect_timeout: Duration::from_secs(1),
        }
    }

    pub(super) fn allows(&self, dialect: Dialect) -> bool {
        self.transport.is_none_or(|transport| transport == dialect.transport)
            && self.protocol.is_none_or(|protocol| protocol == dialect.protocol)
    }
}

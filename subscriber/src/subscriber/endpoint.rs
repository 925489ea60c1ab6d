//! Where a subscriber is called.

use std::net::SocketAddr;

use hqueue_protocol::client::{ClientError, RpcClient};

/// Where the broker finds us.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// Where we listen.
    pub(super) bound: SocketAddr,
    /// Said by the user, and not found out.
    pub(super) advertised: Option<String>,
}

impl Endpoint {
    /// What is advertised, or the address by which we reach the broker, unless we listen on a certain one.
    pub(super) async fn address(&self, client: &RpcClient, subscriber: &str) -> Result<String, ClientError> {
        let address = match &self.advertised {
            Some(advertised) => advertised.clone(),
            None if self.bound.ip().is_unspecified() => {
                let ip = client.local_address().await?.ip();
                SocketAddr::new(ip, self.bound.port()).to_string()
            }
            None => self.bound.to_string(),
        };
        if let Some(ip) = address.parse::<SocketAddr>().ok().map(|a| a.ip()).filter(std::net::IpAddr::is_unspecified) {
            tracing::warn!(subscriber, %ip, "this address cannot be reached by a broker: advertise another");
        }
        Ok(address)
    }
}

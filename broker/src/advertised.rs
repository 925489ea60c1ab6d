//! The address that a broker tells others.

use std::net::{IpAddr, SocketAddr};

use hqueue_coordination::zookeeper::ZooKeeperOptions;
use tokio::net::UdpSocket;

use crate::options::{Coordination, Options};

/// No address can be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdvertiseError {
    #[error("{0:?} is no address to advertise (host:port)")]
    Invalid(String),
    #[error("it listens on {0}, which others cannot reach it by, and no other address was found: advertise one")]
    Unknown(SocketAddr),
}

/// What was asked for; else where it listens, or where that is everywhere, the address by which it reaches ZooKeeper.
pub async fn advertised(options: &Options, bound: SocketAddr) -> Result<String, AdvertiseError> {
    if let Some(address) = &options.advertise {
        let valid = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains(char::is_whitespace) && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if !valid {
            return Err(AdvertiseError::Invalid(address.clone()));
        }
        warn_if_unreachable(address).await;
        return Ok(address.clone());
    }
    let Coordination::ZooKeeper(zookeeper) = &options.coordination else { return Ok(bound.to_string()) };
    let ip = if bound.ip().is_unspecified() {
        own_address_towards(zookeeper).await.ok_or(AdvertiseError::Unknown(bound))?
    } else {
        bound.ip()
    };
    if ip.is_loopback() {
        tracing::warn!("{ip} is advertised: brokers and clients on other machines cannot reach it");
    }
    Ok(SocketAddr::new(ip, bound.port()).to_string())
}

async fn warn_if_unreachable(address: &str) {
    match tokio::net::lookup_host(address).await {
        Ok(mut found) => {
            if let Some(ip) = found.next().map(|a| a.ip()).filter(|ip| ip.is_loopback() || ip.is_unspecified()) {
                tracing::warn!(address, "{ip} is advertised: brokers and clients on other machines cannot reach it");
            }
        }
        Err(error) => tracing::warn!(address, "the advertised address cannot be resolved here: {error}"),
    }
}

/// Nothing is sent: the system only says which way it would go.
async fn own_address_towards(zookeeper: &ZooKeeperOptions) -> Option<IpAddr> {
    for host in &zookeeper.hosts {
        for any in ["0.0.0.0:0", "[::]:0"] {
            let Ok(socket) = UdpSocket::bind(any).await else { continue };
            if socket.connect(host).await.is_ok() {
                return socket.local_addr().ok().map(|address| address.ip());
            }
        }
    }
    None
}

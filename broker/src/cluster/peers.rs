//! Connections to the other brokers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hqueue_protocol::client::{ClientOptions, RpcClient};

/// A broker that is there answers the connection within this time, or counts as out of reach.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A client for each broker that was called, by address. A connection is made by the first call and kept.
#[derive(Debug, Default)]
pub struct Peers {
    by_address: Mutex<HashMap<String, RpcClient>>,
}

impl Peers {
    #[must_use]
    pub fn client(&self, address: &str) -> RpcClient {
        let mut known = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = known.get(address) {
            return client.clone();
        }
        let options = ClientOptions { connect_timeout: CONNECT_TIMEOUT, ..ClientOptions::new(vec![address.to_owned()]) };
        let client = RpcClient::new(options);
        known.insert(address.to_owned(), client.clone());
        client
    }

    /// Forgets all others.
    pub fn keep(&self, is_there: impl Fn(&str) -> bool) {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner).retain(|address, _| is_there(address));
    }
}

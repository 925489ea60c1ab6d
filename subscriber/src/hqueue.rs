//! The way in: a connection to a broker.

use hqueue_protocol::client::{ClientOptions, RpcClient};
use hqueue_protocol::names::QueueName;
use std::time::Duration;

use crate::admin::Admin;
use crate::error::Error;
use crate::queue::Queue;
use crate::url;

/// A broker, or several of which one is used. Cloning is cheap and shares the connections.
///
/// Connections are made anew when they break: the call that finds out fails, the next one connects.
#[derive(Clone, Debug)]
pub struct HQueue {
    /// For puts and administration.
    client: RpcClient,
    /// For scans, which are long and would hold up others: replies of a connection come in the order of the calls.
    reader: RpcClient,
    options: ClientOptions,
}

impl HQueue {
    /// Connects to `hqueue://host:port[,host:port]`: to the first of these brokers that answers within 3 s. Calls have 30 s.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_within(url, Duration::from_secs(3)).await
    }

    /// As [`connect`](Self::connect), with another time for a connection to be made, now and later.
    pub async fn connect_within(url: &str, connect_timeout: Duration) -> Result<Self, Error> {
        let options = ClientOptions { connect_timeout, ..ClientOptions::new(url::addresses(url)?) };
        let client = RpcClient::new(options.clone());
        client.local_address().await?;
        Ok(Self { client, reader: RpcClient::new(options.clone()), options })
    }

    /// A queue of this name. Whether there is one is not asked before it is used.
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        let name = QueueName::parse(name).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Queue::new(self.clone(), name))
    }

    /// Administration: queues, subscribers, status.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(self.client.clone())
    }

    pub(crate) const fn client(&self) -> &RpcClient {
        &self.client
    }

    pub(crate) const fn reader(&self) -> &RpcClient {
        &self.reader
    }

    /// A client with a connection of its own.
    pub(crate) fn new_client(&self) -> RpcClient {
        RpcClient::new(self.options.clone())
    }
}

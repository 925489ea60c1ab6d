//! The way in: a connection to a broker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::zookeeper::{DEFAULT_SESSION_TIMEOUT, ZooKeeperOptions};
use hqueue_protocol::client::{ClientOptions, RpcClient};
use hqueue_protocol::names::QueueName;
use tokio::time::{Instant, timeout_at};

use crate::admin::Admin;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::queue::Queue;
use crate::url::{self, Way};

/// A broker, or several of which one is used. Cloning is cheap and shares the connections.
///
/// Connections are made anew when they break: the call that finds out fails, the next one connects. With `zk://` there is one session
/// with ZooKeeper besides, which all clones and what was made of them share; it ends with the last of these.
#[derive(Clone, Debug)]
pub struct HQueue {
    /// For puts and administration.
    client: RpcClient,
    /// For scans, which are long and would hold up others: replies of a connection come in the order of the calls.
    reader: RpcClient,
    brokers: Brokers,
}

/// How brokers are reached.
#[derive(Clone, Debug)]
struct Brokers {
    options: ClientOptions,
    /// Where they meet, if they are found there.
    cluster: Option<Arc<Cluster>>,
}

/// How [`HQueue::connect_with`] connects. Its `Debug` form hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// For a connection to be made, ZooKeeper included, now and later. Default 3 s.
    pub connect_timeout: Duration,
    /// With `zk://`: how long the nodes of a subscriber that died, or was cut off, stay. 3 s to 1 h; default 10 s; ZooKeeper may grant less.
    pub session_timeout: Duration,
    /// With `zk://`: user and password of ZooKeeper's digest scheme; needed if the brokers use them.
    pub zookeeper_auth: Option<(String, String)>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(3), session_timeout: DEFAULT_SESSION_TIMEOUT, zookeeper_auth: None }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("session_timeout", &self.session_timeout)
            .field("zookeeper_auth", &self.zookeeper_auth.as_ref().map(|(user, _)| user))
            .finish()
    }
}

impl HQueue {
    /// Connects within 3 s. Calls have 30 s.
    ///
    /// * `hqueue://host:port[,host:port]`: to the first of these brokers that answers.
    /// * `zk://host:port[,host:port][/root]`: to one of the brokers that meet in this ZooKeeper (root `/hqueue` unless given). Their coming
    ///   and going is followed, and subscribers register themselves there.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, ConnectOptions::default()).await
    }

    /// As [`connect`](Self::connect), with another time for a connection to be made, now and later.
    pub async fn connect_within(url: &str, connect_timeout: Duration) -> Result<Self, Error> {
        Self::connect_with(url, ConnectOptions { connect_timeout, ..ConnectOptions::default() }).await
    }

    /// As [`connect`](Self::connect), with options.
    pub async fn connect_with(url: &str, options: ConnectOptions) -> Result<Self, Error> {
        let deadline = Instant::now() + options.connect_timeout;
        let brokers = Brokers::find(url, options, deadline).await?;
        let client = brokers.client();
        match timeout_at(deadline, client.local_address()).await {
            Ok(connected) => connected?,
            Err(_) => return Err(Error::Unreachable(brokers.nobody())),
        };
        Ok(Self { client, reader: brokers.client(), brokers })
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
        self.brokers.client()
    }

    /// Where the brokers meet, if they were found there.
    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.brokers.cluster.clone()
    }
}

impl Brokers {
    async fn find(url: &str, options: ConnectOptions, deadline: Instant) -> Result<Self, Error> {
        let ConnectOptions { connect_timeout, session_timeout, zookeeper_auth } = options;
        let (addresses, cluster) = match url::parse(url)? {
            Way::Brokers(addresses) => (addresses, None),
            Way::ZooKeeper(zookeeper) => {
                let zookeeper = ZooKeeperOptions { session_timeout, auth: zookeeper_auth, ..zookeeper };
                zookeeper.check().map_err(|error| Error::Invalid(error.to_string()))?;
                (Vec::new(), Some(Arc::new(Cluster::join(zookeeper, deadline).await?)))
            }
        };
        Ok(Self { options: ClientOptions { connect_timeout, ..ClientOptions::new(addresses) }, cluster })
    }

    fn client(&self) -> RpcClient {
        match &self.cluster {
            None => RpcClient::new(self.options.clone()),
            Some(cluster) => RpcClient::following(Cluster::addresses(cluster), &self.options),
        }
    }

    /// Why nobody was reached in time.
    fn nobody(&self) -> String {
        let within = self.options.connect_timeout;
        match &self.cluster {
            None => format!("cannot connect to {} within {within:?}", self.options.addresses.join(", ")),
            Some(cluster) => format!("no broker could be reached within {within:?}: {}", cluster.who_is_there()),
        }
    }
}

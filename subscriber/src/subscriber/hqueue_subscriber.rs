//! A subscriber: started, it serves the broker's calls and is registered; stopped, it is neither.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hqueue_protocol::client::RpcClient;
use hqueue_protocol::server::{Server, ServerOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint::Endpoint;
use super::registration::Registration;
use super::service::SubscriberService;
use super::subscription::Subscription;
use super::zookeeper::SubscriberZooKeeper;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::hqueue::HQueue;
use crate::listener::Listeners;
use crate::url;

/// When a subscriber stops, calls that are still in hand may take so long to end.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// A subscriber of a queue: a Thrift server on a port of this machine, announced to the broker, which calls it with messages.
///
/// Connected to `zk://`, it registers itself in ZooKeeper, with nodes that go with our session. Otherwise a broker does that for it.
///
/// How far it came is kept by the broker, under the subscription's name. Dropped without [`stop`](Self::stop) it ends at once: calls in
/// hand are answered by nobody. The registration is taken back in the background, or ends by itself if the process does.
#[derive(Debug)]
pub struct HQueueSubscriber {
    client: RpcClient,
    /// Where it registers itself; `None`: a broker does it.
    cluster: Option<Arc<Cluster>>,
    queue: String,
    subscription: Subscription,
    listeners: Listeners,
    listen: Option<SocketAddr>,
    advertised: Option<String>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    bound: SocketAddr,
    leave: CancellationToken,
    close: CancellationToken,
    registration: JoinHandle<()>,
    server: JoinHandle<()>,
    calls: TaskTracker,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends by itself, within some 20 s.
        self.leave.cancel();
        self.server.abort();
    }
}

impl HQueueSubscriber {
    pub(crate) fn new(hqueue: &HQueue, queue: &str, subscription: Subscription, listeners: Listeners) -> Self {
        let (client, cluster) = (hqueue.new_client(), hqueue.cluster());
        let queue = queue.to_owned();
        Self { client, cluster, queue, subscription, listeners, listen: None, advertised: None, running: None }
    }

    /// Listens there; port 0 takes a free one. Default: a free port of the address by which the broker is reached.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Announces this `host:port` rather than the address that is listened on: for containers and mapped ports.
    #[must_use]
    pub fn advertise(mut self, address: impl Into<String>) -> Self {
        self.advertised = Some(address.into());
        self
    }

    /// Begins to listen and registers. When this returns the broker knows the subscriber and will call it; with `zk://` the nodes are
    /// written, and brokers see them within moments. Does nothing if it runs.
    ///
    /// From then on the registration is renewed every 3 s, and made anew when the broker was away. With `zk://` it is made anew in a new
    /// session, and put right when others change it.
    pub async fn start(&mut self) -> Result<(), Error> {
        if self.running.is_some() {
            return Ok(());
        }
        if let Some(address) = self.advertised.as_ref().filter(|a| !url::is_address(a)) {
            return Err(Error::Invalid(format!("{address:?} is no address of an endpoint (host:port)")));
        }
        let listener = self.bind().await?;
        let bound = listener.local_addr().map_err(|error| cannot_listen("a port", &error))?;
        let endpoint = Endpoint { bound, advertised: self.advertised.clone() };
        let calls = TaskTracker::new();
        let service = SubscriberService::new(self.subscription.name.clone(), self.listeners.clone(), calls.clone());
        let options = ServerOptions { stop_grace: STOP_GRACE, ..ServerOptions::default() };
        let server = Server::new(options, Arc::new(service)).map_err(|error| Error::Invalid(error.to_string()))?;
        let (leave, close) = (CancellationToken::new(), CancellationToken::new());
        let stop = close.clone();
        let server = tokio::spawn(async move {
            server.run(listener, stop.cancelled()).await;
        });
        // What was begun is taken back if nobody waits for the end of this.
        let abandoned = leave.clone().drop_guard();
        let (registration, registered) = self.announce(endpoint, leave.clone());
        let registered = match registered.await {
            Ok(registered) => registered,
            Err(_) => Err(Error::Unreachable("the registration has ended badly".to_owned())),
        };
        let mut running = Running { bound, leave, close, registration, server, calls };
        if let Err(error) = registered {
            ended(&mut running.registration).await;
            running.close.cancel();
            ended(&mut running.server).await;
            return Err(error);
        }
        abandoned.disarm();
        self.running = Some(running);
        Ok(())
    }

    /// Begins to register, in a task; the receiver is told how that went.
    fn announce(&self, endpoint: Endpoint, leave: CancellationToken) -> (JoinHandle<()>, oneshot::Receiver<Result<(), Error>>) {
        let (ready, registered) = oneshot::channel();
        let (client, queue, subscription) = (self.client.clone(), self.queue.clone(), self.subscription.clone());
        let task = match self.cluster.clone() {
            None => tokio::spawn(Registration::new(client, queue, subscription, endpoint).run(ready, leave)),
            Some(cluster) => tokio::spawn(async move {
                match endpoint.address(&client, &subscription.name).await {
                    Ok(address) => {
                        SubscriberZooKeeper::new(cluster, client, queue, subscription, address).run(ready, leave).await;
                    }
                    // Nobody may wait any more.
                    Err(error) => drop(ready.send(Err(error.into()))),
                }
            }),
        };
        (task, registered)
    }

    async fn bind(&self) -> Result<TcpListener, Error> {
        let address = match self.listen {
            Some(address) => address,
            None => SocketAddr::new(self.client.local_address().await?.ip(), 0),
        };
        TcpListener::bind(address).await.map_err(|error| cannot_listen(&address.to_string(), &error))
    }

    /// Where it listens, while it runs.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.as_ref().map(|running| running.bound)
    }

    /// Unregisters, waits for the calls in hand and ends the server; takes about 30 s at most. The reason is for the log. It can be
    /// started again.
    pub async fn stop(&mut self, reason: &str) {
        let Some(mut running) = self.running.take() else { return };
        tracing::info!(queue = self.queue, subscriber = self.subscription.name, reason, "stopping");
        running.leave.cancel();
        ended(&mut running.registration).await;
        running.close.cancel();
        ended(&mut running.server).await;
        running.calls.close();
        if tokio::time::timeout(STOP_GRACE, running.calls.wait()).await.is_err() {
            tracing::warn!(queue = self.queue, subscriber = self.subscription.name, "a listener goes on after the stop");
        }
    }
}

async fn ended(task: &mut JoinHandle<()>) {
    if let Err(error) = task.await {
        tracing::error!(%error, "a task of the subscriber ended badly");
    }
}

fn cannot_listen(address: &str, error: &std::io::Error) -> Error {
    Error::Listen { address: address.to_owned(), reason: error.to_string() }
}

//! A subscriber: started, it serves the broker's calls and is registered; stopped, it is neither.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hqueue_protocol::client::RpcClient;
use hqueue_protocol::server::{Server, ServerOptions};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::registration::{Endpoint, Registration};
use super::service::SubscriberService;
use super::subscription::Subscription;
use crate::error::Error;
use crate::listener::Listeners;
use crate::url;

/// When a subscriber stops, calls that are still in hand may take so long to end.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// A subscriber of a queue: a Thrift server on a port of this machine, announced to the broker, which calls it with messages.
///
/// How far it came is kept by the broker, under the subscription's name. Dropped without [`stop`](Self::stop) it ends as if the process had
/// died: calls in hand are answered by nobody, and the broker forgets the registration 10 s later.
#[derive(Debug)]
pub struct HQueueSubscriber {
    client: RpcClient,
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
        self.registration.abort();
        self.server.abort();
    }
}

impl HQueueSubscriber {
    pub(crate) fn new(client: RpcClient, queue: &str, subscription: Subscription, listeners: Listeners) -> Self {
        Self { client, queue: queue.to_owned(), subscription, listeners, listen: None, advertised: None, running: None }
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

    /// Begins to listen and registers. When this returns the broker knows the subscriber and will call it. Does nothing if it runs.
    ///
    /// From then on the registration is renewed every 3 s, and made anew when the broker was away.
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
        let registration = Registration::new(self.client.clone(), self.queue.clone(), self.subscription.clone(), endpoint);
        let id = match registration.subscribe().await {
            Ok(id) => id,
            Err(error) => {
                close.cancel();
                // Its end says nothing more.
                let _ = server.await;
                return Err(error.into());
            }
        };
        let registration = tokio::spawn(registration.keep(id, leave.clone()));
        self.running = Some(Running { bound, leave, close, registration, server, calls });
        Ok(())
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

    /// Unregisters, waits for the calls in hand and ends the server; takes about 20 s at most. The reason is for the log. It can be
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

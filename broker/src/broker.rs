//! A broker, alone or among others. Started part by part, stopped in the reverse order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::embedded::{EmbeddedCoordinator, JOURNAL_NAME};
use hqueue_coordination::zookeeper::ZooKeeperCoordinator;
use hqueue_coordination::{CoordinationError, SharedCoordinator};
use hqueue_protocol::server::{Server, ServerOptions};
use hqueue_storage::disk::{Disk, RealDisk};
use hqueue_storage::journal::JournalError;
use hqueue_storage::store::{MessageStore, StoreError};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::advertised::{AdvertiseError, advertised};
use crate::catalog::{Catalog, CatalogParts};
use crate::cluster::{Balancer, Claims, Cluster, Lease, Members, Peers, make_roots};
use crate::data_folder::{DataFolder, DataFolderError, SessionBook};
use crate::gateway::{Gateway, GatewayOptions};
use crate::http::{self, MetricsSource};
use crate::identity;
use crate::options::{Coordination, Options, OptionsError};
use crate::solitary;
use crate::store_kind::StoreKindError;
use crate::stores::open_store;
use crate::subscription::{CheckpointUpdater, TaskScope};

/// How long a stop waits for calls to subscribers that are under way.
const CALL_PATIENCE: Duration = Duration::from_secs(8);

/// While there is no ZooKeeper, or no HBase, that is said so often.
pub(crate) const SAY_WAITING: Duration = Duration::from_secs(10);

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    DataFolder(#[from] DataFolderError),
    #[error("coordination cannot be opened: {0}")]
    Journal(#[from] JournalError),
    #[error(
        "the data folder {data} has queues, but what is known of them ({journal}) is gone: put a copy of that file back, or move \
         {data}/queues away to begin with nothing"
    )]
    CoordinationLost { data: String, journal: String },
    #[error(
        "the data folder {data} has messages of queues, and this broker was started to keep messages in HBase: start it with \
         --store log, or with another folder"
    )]
    HasLog { data: String },
    #[error("coordination cannot be used: {0}")]
    Coordination(#[from] CoordinationError),
    #[error(transparent)]
    Identity(#[from] identity::IdentityError),
    #[error(transparent)]
    StoreKind(#[from] StoreKindError),
    #[error(transparent)]
    Advertise(#[from] AdvertiseError),
    #[error("the store cannot be opened: {0}")]
    Store(#[from] StoreError),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("the server's options: {0}")]
    Server(#[from] hqueue_protocol::server::BadServerOption),
}

/// A running broker. Dropping it without [`Broker::stop`] ends it as a crash would.
#[derive(Debug)]
pub struct Broker {
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    coordinator: SharedCoordinator,
    store: Arc<dyn MessageStore>,
    catalog: Arc<Catalog>,
    checkpoints: Arc<CheckpointUpdater>,
    scope: TaskScope,
    /// Ends the acceptance of clients.
    close_door: CancellationToken,
    server: JoinHandle<()>,
    http: Option<JoinHandle<()>>,
    _folder: DataFolder,
}

impl Broker {
    /// Starts a broker. When it returns, every partition that it has can be put to and is pushed. Among others it waits for ZooKeeper as
    /// long as it takes.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        options.check()?;
        crate::descriptors::raise_limit();
        let folder = DataFolder::open(&options.data)?;
        let name = folder.broker_name()?;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let coordinator = open_coordination(&options, &folder, Arc::clone(&disk)).await?;
        let own = matches!(options.coordination, Coordination::Embedded);
        identity::check(&*coordinator, &folder, own).await?;
        let (store, hbase) = open_store(&options, &folder, &coordinator, &name, disk).await?;
        let scope = TaskScope {
            handle: Handle::current(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        // Bound now, so that the address is known; opened when there is something to serve.
        let door = bind(options.listen)?;
        let address = door.local_addr().map_err(|error| StartError::Listen { address: options.listen, error })?;
        let advertised = advertised(&options, address).await?;
        let checkpoints = Arc::new(CheckpointUpdater::new(Arc::clone(&coordinator), scope.clone()));
        let cluster = match &options.coordination {
            Coordination::Embedded => {
                solitary::register(&*coordinator, &name, &advertised).await?;
                None
            }
            Coordination::ZooKeeper(_) => Some(join(&coordinator, &folder, &name, &advertised, hbase.is_some(), &scope).await?),
        };
        let parts = CatalogParts {
            coordinator: Arc::clone(&coordinator),
            store: Arc::clone(&store),
            hbase,
            checkpoints: Arc::clone(&checkpoints),
            scope: scope.clone(),
            cluster,
        };
        let catalog = Catalog::open(parts).await?;
        look_after(&catalog, &folder, &scope);
        let gateway_options = GatewayOptions { name: name.clone(), advertised, max_message_bytes: options.max_message_bytes };
        let gateway = Gateway::new(Arc::clone(&catalog), scope.clone(), gateway_options);
        let close_door = CancellationToken::new();
        let server = Server::new(ServerOptions::default(), Arc::new(gateway))?;
        let counters = server.counters();
        // Before any client is served: what can be asked for answers, and a port that is taken refuses the start.
        let source = MetricsSource { catalog: Arc::clone(&catalog), store: Arc::clone(&store), server: counters };
        let listener = door.listen(BACKLOG).map_err(|error| StartError::Listen { address, error })?;
        let (http, http_address) = serve_http(options.http, source, &close_door)?;
        let closing = close_door.clone();
        let server = tokio::spawn(async move {
            server.run(listener, closing.cancelled()).await;
        });
        if let Some(cluster) = &catalog.cluster {
            cluster.members.serve();
        }
        tracing::info!(broker = name, %address, data = %folder.path().display(), "serving");
        Ok(Self {
            address,
            http_address,
            coordinator,
            store,
            catalog,
            checkpoints,
            scope,
            close_door,
            server,
            http,
            _folder: folder,
        })
    }

    /// Where clients reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where `/metrics` and `/healthz` are.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Stops in order: no more clients and no new calls; calls under way end within 8 s or are dropped; checkpoints are written,
    /// the store is closed.
    pub async fn stop(self) {
        self.scope.stop.cancel();
        if let Some(cluster) = &self.catalog.cluster {
            // Nobody is to be sent here any more: before the door closes on calls that are on their way.
            cluster.members.leave().await;
            cluster.balancer.leave().await;
        }
        self.close_door.cancel();
        let abort = self.scope.abort.clone();
        let patience = tokio::spawn(async move {
            tokio::time::sleep(CALL_PATIENCE).await;
            abort.cancel();
        });
        self.catalog.stop(CALL_PATIENCE).await;
        self.scope.tasks.close();
        self.scope.tasks.wait().await;
        patience.abort();
        ended("the server", self.server).await;
        if let Some(http) = self.http {
            ended("the http server", http).await;
        }
        self.checkpoints.flush().await;
        self.store.close().await;
        self.coordinator.close().await;
        tracing::info!("stopped");
    }
}

async fn ended(what: &str, task: JoinHandle<()>) {
    if let Err(error) = task.await {
        tracing::error!("{what} ended badly: {error}");
    }
}

async fn open_coordination(options: &Options, folder: &DataFolder, disk: Arc<dyn Disk>) -> Result<SharedCoordinator, StartError> {
    match &options.coordination {
        Coordination::Embedded => Ok(Arc::new(open_embedded(folder, disk)?)),
        Coordination::ZooKeeper(zookeeper) => {
            let coordinator = ZooKeeperCoordinator::start(zookeeper.clone());
            loop {
                let began = tokio::time::Instant::now();
                let Err(error) = coordinator.connected(SAY_WAITING).await else { break };
                tracing::warn!("waiting for ZooKeeper: {error}");
                // What somebody has to put right, such as rights, is told at once, and again only after the same time.
                tokio::time::sleep_until(began + SAY_WAITING).await;
            }
            Ok(Arc::new(coordinator))
        }
    }
}

/// Becomes one of the brokers.
async fn join(
    coordinator: &SharedCoordinator,
    folder: &DataFolder,
    name: &str,
    address: &str,
    is_shared: bool,
    scope: &TaskScope,
) -> Result<Cluster, StartError> {
    make_roots(coordinator).await?;
    let book = Arc::new(SessionBook::open(folder));
    let (name_, address) = (name.to_owned(), address.to_owned());
    let members = Arc::new(Members::new(Arc::clone(coordinator), Arc::clone(&book), name_, address, is_shared));
    let balancer = Arc::new(Balancer::new(Arc::clone(coordinator), Arc::clone(&members), Arc::clone(&book), is_shared));
    scope.spawn(Arc::clone(&members).run(scope.stop.clone()));
    members.registered().await;
    scope.spawn(Arc::clone(&balancer).run(scope.stop.clone()));
    let claims =
        Claims { coordinator: Arc::clone(coordinator), lease: Lease::new(&**coordinator), book, broker: name.to_owned() };
    Ok(Cluster { members, balancer, claims, peers: Peers::default() })
}

/// What is done beside serving.
fn look_after(catalog: &Arc<Catalog>, folder: &DataFolder, scope: &TaskScope) {
    for path in folder.unknown_queues(|name| catalog.hbase.is_none() && catalog.is_known(name)) {
        let path = path.display();
        tracing::warn!("{path}: no queue of this name is known; its messages are kept, remove them if it was dropped");
    }
    if catalog.cluster.is_some() {
        scope.spawn(tend(Arc::clone(catalog), scope.stop.clone()));
    }
}

/// What has to be done when our session or the other brokers change.
async fn tend(catalog: Arc<Catalog>, stop: CancellationToken) {
    let Some(cluster) = &catalog.cluster else { return };
    let mut session = catalog.lease.last_session();
    let mut brokers = cluster.members.watch();
    loop {
        tokio::select! {
            () = catalog.lease.other_than(session) => {}
            changed = brokers.changed() => if changed.is_err() { return },
            () = stop.cancelled() => return,
        }
        let there = brokers.borrow_and_update().clone();
        cluster.peers.keep(|address| there.values().any(|broker| broker.address == address));
        let now = catalog.lease.last_session();
        if now != session && now.is_some() {
            catalog.announce_again().await;
        }
        session = now;
    }
}

/// Queues that nobody knows of any more must not be taken for rubbish.
fn open_embedded(folder: &DataFolder, disk: Arc<dyn Disk>) -> Result<EmbeddedCoordinator, StartError> {
    let dir = folder.path().join("coordination");
    let journal = dir.join(JOURNAL_NAME);
    if folder.has_queues() && !journal.exists() {
        let (data, journal) = (folder.path().display().to_string(), journal.display().to_string());
        return Err(StartError::CoordinationLost { data, journal });
    }
    Ok(EmbeddedCoordinator::open(disk, &dir)?)
}

/// Connections that wait to be accepted. With the usual 128 a burst of clients meets dropped SYNs, which they repeat a second later.
const BACKLOG: u32 = 1024;

fn bind(address: SocketAddr) -> Result<TcpSocket, StartError> {
    let failed = |error| StartError::Listen { address, error };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    // A broker that is started anew gets its port although old connections linger.
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address, error };
    let listener = bind(address)?.listen(BACKLOG).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

fn serve_http(
    address: Option<SocketAddr>,
    source: MetricsSource,
    stop: &CancellationToken,
) -> Result<(Option<JoinHandle<()>>, Option<SocketAddr>), StartError> {
    let Some(address) = address else { return Ok((None, None)) };
    let (listener, bound) = listen(address)?;
    Ok((Some(tokio::spawn(http::serve(listener, Arc::new(source), stop.clone()))), Some(bound)))
}

//! A broker that needs nobody: store and coordination in one folder. Started part by part, stopped in the reverse order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::embedded::{EmbeddedCoordinator, JOURNAL_NAME};
use hqueue_coordination::{CoordinationError, NodeKind, SharedCoordinator, create_all};
use hqueue_protocol::server::{Server, ServerOptions};
use hqueue_storage::clock::SystemClock;
use hqueue_storage::disk::{Disk, RealDisk};
use hqueue_storage::journal::JournalError;
use hqueue_storage::log::{SegmentStore, StoreOptions};
use hqueue_storage::store::{MessageStore, StoreError};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;
use crate::data_folder::{DataFolder, DataFolderError};
use crate::gateway::{Gateway, GatewayOptions};
use crate::http::{self, MetricsSource};
use crate::options::{Options, OptionsError};
use crate::paths;
use crate::subscription::{CheckpointUpdater, TaskScope};
use crate::time::Moment;

/// How long a stop waits for calls to subscribers that are under way.
const CALL_PATIENCE: Duration = Duration::from_secs(8);

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
    #[error("coordination cannot be used: {0}")]
    Coordination(#[from] CoordinationError),
    #[error("the store cannot be opened: {0}")]
    Store(#[from] StoreError),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("the server's options: {0}")]
    Server(#[from] hqueue_protocol::server::BadServerOption),
}

/// A running broker. Dropping it without [`Standalone::stop`] ends it as a crash would.
#[derive(Debug)]
pub struct Standalone {
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

impl Standalone {
    /// Starts a broker. When it returns, every partition can be put to and is pushed.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        options.check()?;
        crate::descriptors::raise_limit();
        let folder = DataFolder::open(&options.data)?;
        let name = folder.broker_name()?;
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let coordinator: SharedCoordinator = Arc::new(open_coordination(&folder, Arc::clone(&disk))?);
        let store = open_store(&options, &folder, disk)?;
        let scope = TaskScope {
            handle: Handle::current(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        let checkpoints = Arc::new(CheckpointUpdater::new(Arc::clone(&coordinator), scope.clone()));
        let catalog =
            Catalog::open(Arc::clone(&coordinator), Arc::clone(&store), Arc::clone(&checkpoints), scope.clone()).await?;
        let catalog = Arc::new(catalog);

        let (listener, address) = listen(options.listen)?;
        register(&*coordinator, &name, address).await?;
        let gateway_options =
            GatewayOptions { name: name.clone(), advertised: address.to_string(), max_message_bytes: options.max_message_bytes };
        let gateway = Gateway::new(Arc::clone(&catalog), scope.clone(), gateway_options);
        let close_door = CancellationToken::new();
        let server = Server::new(ServerOptions::default(), Arc::new(gateway))?;
        let counters = server.counters();
        // Before any client is served: what can be asked for answers, and a port that is taken refuses the start.
        let source = MetricsSource { catalog: Arc::clone(&catalog), store: Arc::clone(&store), server: counters };
        let (http, http_address) = serve_http(options.http, source, &close_door)?;
        let door = close_door.clone();
        let server = tokio::spawn(async move {
            server.run(listener, door.cancelled()).await;
        });
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
        self.close_door.cancel();
        self.scope.stop.cancel();
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

/// Queues that nobody knows of any more must not be taken for rubbish.
fn open_coordination(folder: &DataFolder, disk: Arc<dyn Disk>) -> Result<EmbeddedCoordinator, StartError> {
    let dir = folder.path().join("coordination");
    let journal = dir.join(JOURNAL_NAME);
    let has_queues = std::fs::read_dir(folder.path().join("queues")).is_ok_and(|mut queues| queues.next().is_some());
    if has_queues && !journal.exists() {
        let (data, journal) = (folder.path().display().to_string(), journal.display().to_string());
        return Err(StartError::CoordinationLost { data, journal });
    }
    Ok(EmbeddedCoordinator::open(disk, &dir)?)
}

fn open_store(options: &Options, folder: &DataFolder, disk: Arc<dyn Disk>) -> Result<Arc<dyn MessageStore>, StoreError> {
    let log = StoreOptions {
        durability: options.durability,
        tail_cache_bytes: options.tail_cache_bytes,
        ..StoreOptions::new(folder.path())
    };
    Ok(Arc::new(SegmentStore::open(log, Arc::new(SystemClock::default()), disk)?))
}

/// Connections that wait to be accepted. With the usual 128 a burst of clients meets dropped SYNs, which they repeat a second later.
const BACKLOG: u32 = 1024;

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |error| StartError::Listen { address, error };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    // A broker that is started anew gets its port although old connections linger.
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    let listener = socket.listen(BACKLOG).map_err(failed)?;
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

/// The broker's own node: who is there, and where.
async fn register(
    coordinator: &dyn hqueue_coordination::Coordinator,
    name: &str,
    address: SocketAddr,
) -> Result<(), CoordinationError> {
    create_all(coordinator, paths::BROKERS).await?;
    let payload = serde_json::json!({
        "address": address.to_string(),
        "started": Moment::now().0,
        "version": env!("CARGO_PKG_VERSION"),
    });
    coordinator.create(&paths::broker(name), payload.to_string().as_bytes(), NodeKind::Ephemeral).await?;
    Ok(())
}

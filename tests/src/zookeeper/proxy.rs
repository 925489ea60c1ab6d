//! A way to a server that can be made bad, as networks do.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::port::free_port;
use crate::wait::{PATIENCE, wait_for};

/// How the way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Everything passes.
    Open,
    /// Connections stand and are accepted, and nothing passes in either direction: what was sent arrives when the way is open
    /// again.
    Held,
    /// Nobody listens; connections that stand go on.
    Refused,
    /// Connections are accepted and closed at once; those that stand go on.
    Closing,
    /// SYNs are dropped; on connections that stand nothing passes.
    Blackhole,
}

/// A port that leads to a server. Its tasks have a thread of their own and end with it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    shared: Arc<Shared>,
    /// `Some` until the drop.
    runtime: Option<Runtime>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    way: Way,
    /// Connections that were accepted before the last cut are reset.
    cuts: u64,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The way for which there is a listener now.
    ready: Option<Way>,
    accepted: u64,
    open: u64,
    /// What the server sent first on each connection.
    first_bytes: Vec<Vec<u8>>,
}

impl Proxy {
    /// An open way.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn to(target: SocketAddr) -> Self {
        Self::with(target, Way::Open)
    }

    /// An open way that begins at another address of the loopback.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn from_host(host: Ipv4Addr, target: SocketAddr) -> Self {
        Self::at((host, free_port()).into(), target, Way::Open)
    }

    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn with(target: SocketAddr, way: Way) -> Self {
        Self::at((Ipv4Addr::LOCALHOST, free_port()).into(), target, way)
    }

    fn at(address: SocketAddr, target: SocketAddr, way: Way) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("proxy").build().expect("a runtime");
        let (state, shared) = (watch::Sender::new(State { way, cuts: 0 }), Arc::new(Shared::default()));
        runtime.spawn(serve(address, target, state.subscribe(), Arc::clone(&shared)));
        let proxy = Self { address, state, shared, runtime: Some(runtime) };
        proxy.wait_until_ready(way);
        proxy
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `host:port`, as in a connect string.
    #[must_use]
    pub fn host(&self) -> String {
        self.address().to_string()
    }

    /// Makes the way so, for connections that stand too; returns when it is.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn set(&self, way: Way) {
        self.state.send_modify(|state| state.way = way);
        self.wait_until_ready(way);
    }

    /// Resets all connections that stand.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.seen().accepted
    }

    /// How many connections stand.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.shared.seen().open
    }

    /// What the server sent first, a piece for each connection.
    #[must_use]
    pub fn first_bytes(&self) -> Vec<Vec<u8>> {
        self.shared.seen().first_bytes.clone()
    }

    fn wait_until_ready(&self, way: Way) {
        wait_for("the proxy listens as it should", PATIENCE, || (self.shared.seen().ready == Some(way)).then_some(()));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(address: SocketAddr, target: SocketAddr, state: watch::Receiver<State>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let way = state.borrow().way;
        let mut other = state.clone();
        let changed = async {
            // An error: the proxy is being dropped.
            let _ = other.wait_for(|state| state.way != way).await;
        };
        match way {
            Way::Refused => {
                shared.seen().ready = Some(way);
                changed.await;
            }
            Way::Blackhole => {
                let _full = full_backlog(address).await;
                shared.seen().ready = Some(way);
                changed.await;
            }
            Way::Open | Way::Held | Way::Closing => {
                let listener = listen(address, 1024).await;
                shared.seen().ready = Some(way);
                tokio::select! {
                    () = accept(&listener, target, way, &state, &shared, &mut connections) => {}
                    () = changed => {}
                }
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn accept(
    listener: &TcpListener,
    target: SocketAddr,
    way: Way,
    state: &watch::Receiver<State>,
    shared: &Arc<Shared>,
    connections: &mut JoinSet<()>,
) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        shared.seen().accepted += 1;
        if way != Way::Closing {
            let (state, shared) = (state.clone(), Arc::clone(shared));
            connections.spawn(async move {
                shared.seen().open += 1;
                connection(client, target, state, &shared).await;
                shared.seen().open -= 1;
            });
        }
    }
}

/// Listens on the port, which may be free only in a moment.
async fn listen(address: SocketAddr, backlog: u32) -> TcpListener {
    for _ in 0..1000 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option of a socket");
        if socket.bind(address).is_ok()
            && let Ok(listener) = socket.listen(backlog)
        {
            return listener;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{address} does not become free");
}

/// A listener whose queue is full: the kernel drops further SYNs.
async fn full_backlog(address: SocketAddr) -> (TcpListener, Vec<TcpStream>) {
    let listener = listen(address, 0).await;
    let mut filling = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        filling.push(stream);
    }
    (listener, filling)
}

async fn connection(mut client: TcpStream, target: SocketAddr, state: watch::Receiver<State>, shared: &Shared) {
    let (born, mut cut) = (state.borrow().cuts, state.clone());
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // They may be closed by now.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let was_cut = {
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let carried = async {
            tokio::join!(
                carry(from_client, to_server, state.clone(), None),
                carry(from_server, to_client, state.clone(), Some(shared)),
            )
        };
        tokio::select! {
            _ = cut.wait_for(|state| state.cuts > born) => true,
            _ = carried => false,
        }
    };
    if was_cut {
        // What is closed so is reset.
        let _ = (set_socket_linger(&client, Some(Duration::ZERO)), set_socket_linger(&server, Some(Duration::ZERO)));
    }
}

/// Carries bytes in one direction until its end, and passes that on.
async fn carry(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, mut state: watch::Receiver<State>, mut tap: Option<&Shared>) {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut bytes).await.unwrap_or(0);
        // An end is held too.
        let passes = |state: &State| !matches!(state.way, Way::Held | Way::Blackhole);
        if state.wait_for(passes).await.is_err() || read == 0 || to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
        if let Some(shared) = tap.take() {
            shared.seen().first_bytes.push(bytes[..read].to_vec());
        }
    }
    // The other side may be gone.
    let _ = to.shutdown().await;
}

//! Endpoints that nobody serves: listeners that leave their callers waiting, in each way that the kernel knows.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

/// Connections are made and what is sent is taken until the buffers are full, but nobody reads it: a process that was stopped.
#[derive(Debug)]
pub struct NeverReads {
    listener: TcpListener,
}

impl NeverReads {
    /// # Panics
    /// If no port can be had.
    #[must_use]
    pub fn listen() -> Self {
        Self { listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port") }
    }

    /// # Panics
    /// Never: a listener has an address.
    #[must_use]
    pub fn address(&self) -> String {
        self.listener.local_addr().expect("an address").to_string()
    }
}

/// Connection attempts get no answer at all: the queue of connections that nobody accepts is full, as behind a firewall that drops.
#[derive(Debug)]
pub struct BlackHole {
    address: SocketAddr,
    _listener: OwnedFd,
    _fill: Vec<TcpStream>,
}

impl BlackHole {
    /// # Panics
    /// If no port can be had.
    #[must_use]
    pub fn listen() -> Self {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listen(&listener, 1).expect("it listens");
        let address = SocketAddr::try_from(getsockname(&listener).expect("an address")).expect("an IPv4 address");
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
        let fill: Vec<TcpStream> = (0..16).map_while(connect).collect();
        assert!(fill.len() < 16, "the queue of connections never fills up");
        Self { address, _listener: listener, _fill: fill }
    }

    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

/// Closes every connection at once and counts them. It runs until the process ends.
#[derive(Debug)]
pub struct HangsUp {
    address: SocketAddr,
    count: Arc<AtomicU64>,
}

impl HangsUp {
    /// # Panics
    /// If no port can be had.
    #[must_use]
    pub fn listen() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        thread::spawn(move || {
            for _connection in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { address, count }
    }

    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Connections so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

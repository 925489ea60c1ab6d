//! Three servers that make one ZooKeeper.

use std::fs;
use std::net::Ipv4Addr;

use crate::port::free_port;
use crate::wait::{PATIENCE, wait_for};

use super::proxy::{Proxy, Way};
use super::server::ZooKeeper;

/// An ensemble; its servers end with it.
#[derive(Debug)]
pub struct Ensemble {
    pub servers: Vec<ZooKeeper>,
    /// From each server to the quorum port of each other, in order.
    ways: Vec<Vec<Proxy>>,
}

impl Ensemble {
    /// Starts three servers and waits until each serves.
    ///
    /// # Panics
    /// If they do not.
    #[must_use]
    pub fn start() -> Self {
        Self::with(false)
    }

    /// The same, with servers that can be [cut off](Self::cut_off).
    ///
    /// # Panics
    /// If they do not serve.
    #[must_use]
    pub fn start_divisible() -> Self {
        Self::with(true)
    }

    fn with(is_divisible: bool) -> Self {
        let peers: Vec<(u16, u16)> = (0..3).map(|_| (free_port(), free_port())).collect();
        let to = |quorum: u16| Proxy::to((Ipv4Addr::LOCALHOST, quorum).into());
        let ways_of = |_| if is_divisible { peers.iter().map(|peer| to(peer.0)).collect() } else { Vec::new() };
        let ways: Vec<Vec<Proxy>> = (0..3).map(ways_of).collect();
        let mut servers = Vec::new();
        for (n, ways) in ways.iter().enumerate() {
            let mut more = String::from("initLimit=20\nsyncLimit=4\n");
            for (peer, (quorum, election)) in peers.iter().enumerate() {
                let way = ways.get(peer).filter(|_| peer != n);
                let quorum = way.map_or(*quorum, |way| way.address().port());
                more += &format!("server.{}=127.0.0.1:{quorum}:{election}\n", peer + 1);
            }
            let mut server = ZooKeeper::configured(free_port(), &more);
            fs::write(server.folder().join("data/myid"), format!("{}\n", n + 1)).expect("the id can be written");
            server.launch();
            servers.push(server);
        }
        servers.iter().for_each(ZooKeeper::wait_until_it_serves);
        Self { servers, ways }
    }

    /// A follower hears nothing of its leader any more, nor the leader of it; its clients still reach it.
    ///
    /// # Panics
    /// If the ensemble is not divisible.
    pub fn cut_off(&self, follower: usize) {
        assert!(!self.ways[follower].is_empty(), "the ensemble was not started as divisible");
        self.ways[follower].iter().for_each(|way| way.set(Way::Held));
    }

    /// `host:port,host:port,host:port`.
    #[must_use]
    pub fn hosts(&self) -> String {
        self.servers.iter().map(ZooKeeper::host).collect::<Vec<_>>().join(",")
    }

    /// Which one leads, once one does.
    ///
    /// # Panics
    /// If none does.
    #[track_caller]
    #[must_use]
    pub fn leader(&self) -> usize {
        let leads = |server: &ZooKeeper| server.mode().as_deref() == Some("leader");
        wait_for("the ensemble has a leader", PATIENCE, || self.servers.iter().position(leads))
    }
}

//! The connections that a server has: their tasks, and what is done to all of them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Interval, sleep};

use super::connection::Connection;
use super::shared::Shared;
use super::watch::Watch;

/// Owns a task for each connection.
#[derive(Debug)]
pub(super) struct Connections {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    watches: HashMap<Id, Arc<Watch>>,
}

impl Connections {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, tasks: JoinSet::new(), watches: HashMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.watches.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    pub(super) fn add(&mut self, socket: TcpStream, peer: SocketAddr) {
        let watch = Arc::new(Watch::new());
        let connection = Connection::new(self.shared.clone(), watch.clone(), socket, peer);
        let task = self.tasks.spawn(connection.serve());
        self.watches.insert(task.id(), watch);
        self.shared.counters.opened();
    }

    /// Waits for one to end; `None` if there is none. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Option<()> {
        let ended = self.tasks.join_next_with_id().await?;
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(%error, "the task of a connection panicked, the connection is closed");
        }
        self.watches.remove(&id);
        self.shared.counters.closed();
        Some(())
    }

    /// Wakes those whose deadline has passed.
    pub(super) fn sweep(&self) {
        let now = self.shared.clock.now();
        self.watches.values().for_each(|watch| watch.wake_if_due(now));
    }

    /// Lets the calls in hand end, for up to `grace`, then cuts the rest off. Returns how many connections were cut off.
    pub(super) async fn stop(mut self, grace: Duration, mut sweeps: Interval) -> usize {
        self.shared.stop();
        self.watches.values().for_each(|watch| watch.wake());
        let mut over = pin!(sleep(grace));
        loop {
            tokio::select! {
                ended = self.ended() => if ended.is_none() { return 0 },
                _ = sweeps.tick() => self.sweep(),
                () = &mut over => break,
            }
        }
        let cut_off = self.len();
        self.tasks.abort_all();
        while self.ended().await.is_some() {}
        cut_off
    }
}

//! Accepts connections until it is told to stop.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::connections::Connections;
use super::counters::ServerCounters;
use super::log_gate::LogGate;
use super::options::{BadServerOption, ServerOptions};
use super::service::Service;
use super::shared::Shared;

/// Waits after an accept that failed: doubling between these.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A Thrift server, not running yet.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

/// How a server came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections whose calls had not ended, or whose replies were not read, when the grace period was over.
    pub cut_off: usize,
}

impl Server {
    /// Refuses options that are outside their limits.
    pub fn new(options: ServerOptions, service: Arc<dyn Service>) -> Result<Self, BadServerOption> {
        options.check()?;
        Ok(Self { shared: Arc::new(Shared::new(options, service)) })
    }

    /// To be read at any time, also after the end.
    #[must_use]
    pub fn counters(&self) -> Arc<ServerCounters> {
        self.shared.counters.clone()
    }

    /// Serves the listener's connections until `stop` is ready; then accepts no more, lets the calls in hand end for up to
    /// [`ServerOptions::stop_grace`] and closes every connection. When it returns, everything has ended.
    ///
    /// Dropped half-way, it cuts all connections off.
    pub async fn run(self, listener: TcpListener, stop: impl Future<Output = ()>) -> Stopped {
        let mut stop = pin!(stop);
        let grace = self.shared.options.stop_grace;
        let mut connections = Connections::new(self.shared.clone());
        let mut accepting =
            Accepting { shared: &self.shared, listener, pause: None, errors: LogGate::default(), full: LogGate::default() };
        let mut sweeps = interval(self.shared.options.sweep_period());
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(()) = connections.ended() => {}
                _ = sweeps.tick(), if !connections.is_empty() => connections.sweep(),
                accepted = accepting.next() => {
                    if let Some((socket, peer)) = accepted {
                        accepting.admit(&mut connections, socket, peer);
                    }
                }
            }
        }
        drop(accepting);
        Stopped { cut_off: connections.stop(grace, sweeps).await }
    }
}

struct Accepting<'a> {
    shared: &'a Shared,
    listener: TcpListener,
    /// After an error: how long to wait, and until when.
    pause: Option<(Duration, Instant)>,
    errors: LogGate,
    full: LogGate,
}

impl Accepting<'_> {
    /// The next connection, or `None` if accepting failed. Cancel-safe.
    async fn next(&mut self) -> Option<(TcpStream, SocketAddr)> {
        if let Some((_, until)) = self.pause {
            sleep_until(until).await;
        }
        match self.listener.accept().await {
            Ok(accepted) => {
                self.pause = None;
                Some(accepted)
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// Out of file descriptors or memory, an accept fails again at once: a tight loop would only make it worse.
    fn failed(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            tracing::debug!(%error, "a connection ended before it was accepted");
            return;
        }
        let pause = self.pause.map_or(FIRST_PAUSE, |(last, _)| (last * 2).min(LONGEST_PAUSE));
        self.pause = Some((pause, Instant::now() + pause));
        if let Some(suppressed) = self.errors.pass(self.shared.clock.now()) {
            tracing::error!(%error, suppressed, ?pause, "no connection can be accepted");
        }
    }

    fn admit(&self, connections: &mut Connections, socket: TcpStream, peer: SocketAddr) {
        let limit = self.shared.options.max_connections;
        if connections.len() >= limit {
            self.shared.counters.refused();
            if let Some(suppressed) = self.full.pass(self.shared.clock.now()) {
                tracing::warn!(%peer, suppressed, limit, "connection refused: the server has as many as it may have");
            }
            return;
        }
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%peer, %error, "a connection ended as soon as it was accepted");
            return;
        }
        connections.add(socket, peer);
    }
}

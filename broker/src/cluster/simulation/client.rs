//! A simulated client of the ensemble: a session with heartbeats and a lease, over a network that delays and loses.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hqueue_coordination::{BoxFuture, CoordinationError as E, Coordinator, Created, Node, NodeKind, Observed, SessionState};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::server::Server;

/// How a lease is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseRule {
    /// From when the confirmed request was sent, and shorter than the session.
    Safe,
    /// From when the answer came, and as long as the session: what must be found out.
    Broken,
}

/// What the network does to this client. Drawn anew at every message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) usual: Duration,
    /// Of a hundred messages so many take `slow`.
    pub(super) slow_percent: u8,
    pub(super) slow: Duration,
}

pub(super) struct Client {
    pub(super) server: Arc<Mutex<Server>>,
    pub(super) timeout: Duration,
    pub(super) rule: LeaseRule,
    pub(super) network: Network,
    pub(super) random: Mutex<fastrand::Rng>,
    /// The process stands still until then.
    pub(super) stopped_until: Mutex<Instant>,
    /// When the last request arrives, and the last answer: on one connection nothing overtakes.
    arrivals: Mutex<(Instant, Instant)>,
    state: watch::Sender<SessionState>,
}

impl Debug for Client {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(server: Arc<Mutex<Server>>, timeout: Duration, rule: LeaseRule, network: Network, seed: u64) -> Self {
        Self {
            server,
            timeout,
            rule,
            network,
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            stopped_until: Mutex::new(Instant::now()),
            arrivals: Mutex::new((Instant::now(), Instant::now())),
            state: watch::Sender::new(SessionState::Away),
        }
    }

    /// Nothing of a process goes on while it is stopped.
    pub(super) async fn running(&self) {
        loop {
            let until = *self.stopped_until.lock().unwrap();
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn delay(&self) -> Duration {
        let mut random = self.random.lock().unwrap();
        let most = if random.u8(0..100) < self.network.slow_percent { self.network.slow } else { self.network.usual };
        most.mul_f64(random.f64())
    }

    /// When a request that leaves now arrives, and its answer.
    fn journey(&self) -> (Instant, Instant) {
        let (there, back) = (self.delay(), self.delay());
        let mut last = self.arrivals.lock().unwrap();
        last.0 = last.0.max(Instant::now() + there);
        last.1 = last.1.max(last.0 + back);
        *last
    }

    /// One request: it travels, is carried out, and its answer travels back. Whoever gave up waiting does not stop it.
    async fn request<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Server, i64) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.running().await;
        let SessionState::Held { id, .. } = *self.state.borrow() else { return Err(E::Away("no session".to_owned())) };
        let (arrives, answered) = self.journey();
        let server = Arc::clone(&self.server);
        let carried_out = tokio::spawn(async move {
            sleep_until(arrives).await;
            let result = act(&mut server.lock().unwrap(), id);
            sleep_until(answered).await;
            result
        });
        let answered = timeout(self.timeout, carried_out).await;
        self.running().await;
        if self.session_id() != Some(id) {
            return Err(E::Away("the session is over".to_owned()));
        }
        answered.map_or_else(|_| Err(E::Away("no answer".to_owned())), |joined| joined.unwrap())
    }

    fn session_id(&self) -> Option<i64> {
        match *self.state.borrow() {
            SessionState::Held { id, .. } => Some(id),
            _ => None,
        }
    }

    fn lease(&self, sent: Instant) -> Instant {
        match self.rule {
            LeaseRule::Safe => sent + self.timeout * 2 / 3,
            LeaseRule::Broken => Instant::now() + self.timeout,
        }
    }

    /// Has a session, confirms it, and has another one when it is over.
    pub(super) async fn live(self: Arc<Self>) {
        loop {
            self.running().await;
            let sent = Instant::now();
            sleep(self.delay()).await;
            // A connection of its own: what the last one still carries does not hold it up.
            *self.arrivals.lock().unwrap() = (Instant::now(), Instant::now());
            let id = self.server.lock().unwrap().begin_session(self.timeout);
            sleep(self.delay()).await;
            self.running().await;
            if sent.elapsed() < self.timeout / 3 {
                self.state.send_replace(SessionState::Held { id, lease_until: Some(self.lease(sent)) });
                self.keep(id).await;
                self.state.send_replace(SessionState::Away);
            }
            sleep(self.timeout / 30).await;
        }
    }

    async fn keep(&self, id: i64) {
        loop {
            sleep(self.timeout / 6).await;
            self.running().await;
            let sent = Instant::now();
            let (arrives, answered) = self.journey();
            let server = Arc::clone(&self.server);
            let beat = async move {
                sleep_until(arrives).await;
                let heard = server.lock().unwrap().ping(id);
                sleep_until(answered).await;
                heard
            };
            let heard = timeout(self.timeout / 3, beat).await;
            self.running().await;
            match heard {
                Ok(Ok(())) => {
                    let lease_until = Some(self.lease(sent));
                    self.state.send_replace(SessionState::Held { id, lease_until });
                }
                _ => return,
            }
        }
    }
}

impl Coordinator for Client {
    fn create<'a>(&'a self, path: &'a str, payload: &'a [u8], kind: NodeKind) -> BoxFuture<'a, Result<Created, E>> {
        Box::pin(async move {
            let (at, bytes) = (path.to_owned(), payload.to_vec());
            let id = self.request(move |server, id| server.create(id, &at, &bytes, kind).map(|()| id)).await?;
            Ok(Created { path: path.to_owned(), session: (kind == NodeKind::Ephemeral).then_some(id) })
        })
    }

    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Option<Node>, E>> {
        let at = path.to_owned();
        Box::pin(self.request(move |server, id| server.get(id, &at)))
    }

    fn set<'a>(&'a self, path: &'a str, payload: &'a [u8], version: Option<i32>) -> BoxFuture<'a, Result<i32, E>> {
        let (at, bytes) = (path.to_owned(), payload.to_vec());
        Box::pin(self.request(move |server, id| server.set(id, &at, &bytes, version)))
    }

    fn delete<'a>(&'a self, path: &'a str, version: Option<i32>) -> BoxFuture<'a, Result<(), E>> {
        let at = path.to_owned();
        Box::pin(self.request(move |server, id| server.delete(id, &at, version)))
    }

    fn children<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Vec<String>>, E>> {
        unreachable!("claims read no children")
    }

    fn watch_node(&self, _: &str) -> watch::Receiver<Observed<Option<Node>>> {
        unreachable!("claims watch nothing")
    }

    fn watch_children(&self, _: &str) -> watch::Receiver<Observed<Option<Vec<String>>>> {
        unreachable!("claims watch nothing")
    }

    fn session(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        unreachable!("a schedule ends by being dropped")
    }
}

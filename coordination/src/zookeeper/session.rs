//! Gets a session, holds it, and gets the next one when it is over. One task owns this; it runs in a thread of its own, so that a
//! busy program does not miss heartbeats.
//!
//! One connection is one session: the first sign of a lost connection, or a heartbeat that is late, ends it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::Dispatch;
use zookeeper_async::ZkError;

use super::backoff::Backoff;
use super::client::{Client, Ready, Task};
use super::connection::Connection;
use super::dial::{dial, wait_until_gone};
use super::establish::{Failure, Session, establish};
use super::lease::Lease;
use super::options::{MIN_SESSION_TIMEOUT, ZooKeeperOptions};
use super::reader::{self, Reader};
use super::root::Root;
use super::shared::Shared;
use super::wire::{Rights, Wire};
use super::{Tuning, reports};
use crate::SessionState;

/// Connecting and the first requests are done within this time.
const ESTABLISH: Duration = Duration::from_secs(5);

/// Ending a session that we close takes at most this time for each of three steps: calls under way, asking, and the server's
/// part.
const CLOSE: Duration = Duration::from_secs(2);

/// Gets and holds sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) options: ZooKeeperOptions,
    pub(super) tuning: Tuning,
    pub(super) shared: Arc<Shared>,
    pub(super) log: Dispatch,
}

/// A session that is held.
#[derive(Debug)]
struct Held {
    address: SocketAddr,
    client: Client,
    wire: Arc<Wire>,
    connection: Arc<Connection>,
    session: Session,
    lease: Lease,
}

/// Why a session ended.
#[derive(Debug)]
enum Ended {
    /// The connection is over.
    Lost,
    /// The session was given up.
    GivenUp(String),
    /// It has carried so many requests that a new one is better.
    WornOut,
}

impl Sessions {
    /// Until the coordinator is closed.
    pub(super) async fn run(self, mut closing: watch::Receiver<bool>) {
        let mut backoff = Backoff::new();
        let mut reports = reports::Reports::new();
        let mut closed = std::pin::pin!(async move {
            // An error is a coordinator that was dropped.
            let _ = closing.wait_for(|closing| *closing).await;
        });
        loop {
            let begun = tokio::select! {
                begun = self.begin() => begun,
                () = &mut closed => break,
            };
            match begun {
                Ok(held) => {
                    let since = Instant::now();
                    let ended = tokio::select! {
                        ended = self.hold(&held) => Some(ended),
                        () = &mut closed => None,
                    };
                    if since.elapsed() >= held.lease.deadline() * 3 {
                        backoff.reset();
                        reports.reset();
                    }
                    let Some(ended) = ended else {
                        self.close(held).await;
                        break;
                    };
                    self.give_up(held, ended).await;
                }
                Err(failure) => {
                    reports.failed(&self.options.hosts, &failure);
                    self.shared.failed(failure);
                }
            }
            tokio::select! {
                () = sleep(backoff.next(fastrand::f64())) => {}
                () = &mut closed => break,
            }
        }
        self.shared.watches.end();
    }

    /// A session that is announced, with its watches being read.
    async fn begin(&self) -> Result<Held, Failure> {
        let asked = self.options.session_timeout;
        let dialled = dial(&self.options.hosts, asked).await.map_err(Failure::passing)?;
        let (address, granted) = (dialled.address, dialled.granted);
        let (_, begun) = tokio::join!(dialled.end_throwaway(), self.connect(address, granted));
        begun
    }

    async fn connect(&self, address: SocketAddr, granted: Duration) -> Result<Held, Failure> {
        if granted < MIN_SESSION_TIMEOUT {
            return Err(Failure::lasting(format!(
                "{address} grants a session timeout of {granted:?}, at least {MIN_SESSION_TIMEOUT:?} is needed (maxSessionTimeout)"
            )));
        }
        let rights = if self.options.auth.is_some() { Rights::Creator } else { Rights::Everybody };
        let root = Root::new(&self.options.root);
        let task = Task { address, session_timeout: self.options.session_timeout, root, rights };
        let epoch = self.shared.watches.begin();
        let events = Arc::clone(&self.shared);
        let started = Client::start(task, move |event, path| events.watches.event(epoch, event, path));
        let (client, ready) = started.map_err(Failure::passing)?;
        let establishing = async {
            let Ready { wire, runtime } = ready.await.map_err(|_| Failure::passing("the client does not start"))?;
            // In the client's thread, where the crate logs nothing, and not cancelled if it takes too long.
            let task = runtime.spawn({
                let (wire, auth) = (Arc::clone(&wire), self.options.auth.clone());
                async move { establish(&wire, auth.as_ref()).await }
            });
            let session = task.await.unwrap_or_else(|_| Err(Failure::passing("the client ended")))?;
            Ok((wire, runtime, session))
        };
        let established = timeout(ESTABLISH, establishing).await;
        let late = || Err(Failure::passing(format!("{address}: no session within {ESTABLISH:?}")));
        match established.unwrap_or_else(|_| late()) {
            Ok((wire, runtime, session)) => {
                let reader = Reader {
                    wire: Arc::clone(&wire),
                    watches: Arc::clone(&self.shared.watches),
                    epoch,
                    log: self.log.clone(),
                    complained: AtomicBool::new(false),
                };
                // It ends with the client's runtime.
                drop(runtime.spawn(reader::run(Arc::new(reader))));
                let connection = Arc::new(Connection::new(Arc::clone(&wire), runtime, granted));
                let (id, lease) = (session.id, Lease::new(granted));
                tracing::info!(session = %format_args!("{id:#x}"), %address, timeout = ?granted, "a session with ZooKeeper");
                Ok(Held { address, client, wire, connection, session, lease })
            }
            Err(failure) => {
                self.shared.watches.suspend();
                client.end(None).await;
                Err(failure)
            }
        }
    }

    /// Confirms the session again and again, until it is over.
    async fn hold(&self, held: &Held) -> Ended {
        let (lease, id) = (held.lease, held.session.id);
        let mut sent = held.session.confirmed;
        self.shared.connect(Arc::clone(&held.connection));
        let turns = self.turns(lease);
        for turn in (0..turns).cycle() {
            let lease_until = lease.until(sent);
            if Instant::now() >= lease_until {
                return Ended::GivenUp("its lease ran out before it was confirmed again".to_owned());
            }
            self.shared.announce(SessionState::Held { id, lease_until: Some(lease_until) });
            tokio::select! {
                biased;
                () = held.client.over() => return Ended::Lost,
                () = sleep_until(sent + lease.interval()) => {}
            }
            if held.wire.requests() >= self.tuning.requests_in_a_session {
                return Ended::WornOut;
            }
            let next = Instant::now();
            let beat = tokio::select! {
                biased;
                () = held.client.over() => return Ended::Lost,
                beat = timeout(lease.deadline(), held.beat()) => beat,
            };
            match beat {
                Ok(Ok(())) if next.elapsed() < lease.deadline() => sent = next,
                Ok(Err(why)) => return Ended::GivenUp(why),
                _ => return Ended::GivenUp(format!("a heartbeat was not answered within {:?}", lease.deadline())),
            }
            self.shared.watches.mark_turn(turn, turns);
        }
        Ended::Lost
    }

    /// In how many parts everything watched is read again.
    fn turns(&self, lease: Lease) -> u64 {
        let turns = self.tuning.reread_within.as_nanos() / lease.interval().as_nanos().max(1);
        u64::try_from(turns).unwrap_or(u64::MAX).max(1)
    }

    /// The session is over for us. The server is not asked to end it: what is registered in it would be gone at once, and others
    /// would take it over before much of it is registered again. So it stays, for the session's timeout at most, and is replaced
    /// piece by piece.
    async fn give_up(&self, held: Held, ended: Ended) {
        let session = format!("{:#x}", held.session.id);
        self.shared.disconnect(SessionState::Away);
        match ended {
            Ended::Lost => tracing::warn!(session, "the connection to ZooKeeper ended, and the session with it"),
            Ended::GivenUp(why) => tracing::warn!(session, why, "a session with ZooKeeper was given up"),
            Ended::WornOut => {
                tracing::info!(session, requests = held.wire.requests(), "a worn out session with ZooKeeper is renewed")
            }
        }
        held.connection.end();
        self.shared.watches.suspend();
        held.client.end(None).await;
    }

    /// Ends the session, and waits until the server has done so: its ephemeral nodes are gone then.
    async fn close(&self, held: Held) {
        self.shared.disconnect(SessionState::Closed);
        // Answers that come later are of no use to anybody.
        let _ = timeout(CLOSE, held.connection.drain()).await;
        self.shared.watches.suspend();
        let (address, node, id) = (held.address, held.wire.root().full(&held.session.node), held.session.id);
        held.client.end(Some(CLOSE)).await;
        let gone = timeout(CLOSE, wait_until_gone(address, self.options.session_timeout, &node)).await;
        if let Err(why) = gone.unwrap_or_else(|_| Err(format!("not within {CLOSE:?}"))) {
            let session = format!("{id:#x}");
            tracing::warn!(session, why, "whether ZooKeeper has ended a session is not known; it lasts for its timeout at most");
        }
    }
}

impl Held {
    /// Writes our own node. An answer that does not name our session is somebody else's answer.
    async fn beat(&self) -> Result<(), String> {
        let (wire, node) = (Arc::clone(&self.wire), self.session.node.clone());
        let answer = self.connection.at_once(async move { wire.set(&node, &[], None).await }).await;
        match answer {
            Some(Ok(stat)) if stat.ephemeral_owner == self.session.id => Ok(()),
            Some(Ok(_)) => Err("a heartbeat got the answer to another request".to_owned()),
            // Somebody has deleted our node; the server knows the session all the same.
            Some(Err(ZkError::NoNode)) => Ok(()),
            Some(Err(error)) => Err(format!("a heartbeat was answered with {error:?}")),
            None => Err("the client ended".to_owned()),
        }
    }
}

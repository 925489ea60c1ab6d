//! The brokers that are there, ourselves included.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hqueue_coordination::{Claim, CoordinationError, NodeKind, SharedCoordinator, Watched, claim, create_all};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::grace::Presence;
use super::lease::Lease;
use super::pace::Pace;
use crate::data_folder::SessionBook;
use crate::paths;
use crate::time::Moment;

/// The payload of a broker's node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRecord {
    /// `host:port` at which clients and other brokers reach it.
    pub address: String,
    /// Milliseconds since 1970 UTC.
    #[serde(default)]
    pub started: i64,
    #[serde(default)]
    pub version: String,
    /// Its door is not open yet. Said only where partitions are given anew to brokers that come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starting: bool,
}

/// A broker that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerInfo {
    pub address: String,
    /// The session that holds its node.
    pub session: Option<i64>,
    pub presence: Presence,
}

/// The brokers that are there, by name.
pub type Brokers = BTreeMap<String, BrokerInfo>;

/// Keeps our own node where it belongs and knows who else is there.
#[derive(Debug)]
pub struct Members {
    coordinator: SharedCoordinator,
    lease: Lease,
    book: Arc<SessionBook>,
    name: String,
    record: Mutex<BrokerRecord>,
    /// Has our node looked at although nothing has changed in coordination.
    nudge: Notify,
    brokers: watch::Sender<Arc<Brokers>>,
    /// The session in which our node stands.
    registered: watch::Sender<Option<i64>>,
}

impl Members {
    #[must_use]
    pub fn new(coordinator: SharedCoordinator, book: Arc<SessionBook>, name: String, address: String, starting: bool) -> Self {
        let lease = Lease::new(&*coordinator);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let record = Mutex::new(BrokerRecord { address, started: Moment::now().0, version, starting });
        let (brokers, registered) = (watch::Sender::new(Arc::default()), watch::Sender::new(None));
        Self { coordinator, lease, book, name, record, nudge: Notify::new(), brokers, registered }
    }

    fn record(&self) -> BrokerRecord {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Our door is open.
    pub fn serve(&self) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).starting = false;
        self.nudge.notify_one();
    }

    /// Who is there, as seen last.
    #[must_use]
    pub fn brokers(&self) -> Arc<Brokers> {
        Arc::clone(&self.brokers.borrow())
    }

    /// The same, with its changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Brokers>> {
        self.brokers.subscribe()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until our node stands in a session that holds.
    pub async fn registered(&self) {
        let mut registered = self.registered.subscribe();
        if registered.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Keeps at it until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut watched = Watched::until(Arc::clone(&self.coordinator), stop.clone());
        let mut pace = Pace::new("our node among the brokers");
        loop {
            watched.begin();
            let session = self.lease.last_session();
            let tried = self.look(&mut watched, session).await;
            watched.end();
            let wait = pace.after(&tried);
            tokio::select! {
                changed = watched.changed() => if changed.is_err() { return },
                () = self.lease.other_than(session) => {}
                () = self.nudge.notified() => {}
                () = tokio::time::sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Takes our node away: others are to go elsewhere.
    pub async fn leave(&self) {
        let path = paths::broker(&self.name);
        match self.coordinator.get(&path).await {
            Ok(Some(node)) if node.owner_session == self.lease.last_session() => {
                if let Err(error) = self.coordinator.delete(&path, Some(node.version)).await {
                    tracing::debug!(path, "not removed, it goes with our session: {error}");
                }
            }
            _ => {}
        }
    }

    async fn look(&self, watched: &mut Watched, session: Option<i64>) -> Result<(), CoordinationError> {
        let Some(session) = session else {
            self.registered.send_replace(None);
            return Ok(());
        };
        let names = match watched.children(paths::BROKERS).await.map_err(|_| CoordinationError::Closed)? {
            Some(names) => names,
            None => {
                create_all(&*self.coordinator, paths::BROKERS).await?;
                Vec::new()
            }
        };
        names.iter().for_each(|name| watched.expect_node(&paths::broker(name)));
        let mut brokers = Brokers::new();
        for name in names {
            let node = watched.node(&paths::broker(&name)).await.map_err(|_| CoordinationError::Closed)?;
            let Some(node) = node else { continue };
            match serde_json::from_slice::<BrokerRecord>(&node.payload) {
                Ok(record) => {
                    let presence = if record.starting { Presence::Starting } else { Presence::Serving };
                    let info = BrokerInfo { address: record.address, session: node.owner_session, presence };
                    brokers.insert(name, info);
                }
                Err(error) => tracing::warn!(broker = name, "its node cannot be read: {error}"),
            }
        }
        let record = self.record();
        let presence = if record.starting { Presence::Starting } else { Presence::Serving };
        let is_it = |b: &BrokerInfo| b.session == Some(session) && b.address == record.address && b.presence == presence;
        let ours = brokers.get(&self.name).is_some_and(is_it);
        self.brokers.send_if_modified(|known| {
            let is_new = **known != brokers;
            self.say_changes(known, &brokers);
            *known = Arc::new(brokers);
            is_new
        });
        if !ours {
            self.register(session, &record).await?;
        }
        self.registered.send_replace(Some(session));
        Ok(())
    }

    fn say_changes(&self, before: &Brokers, now: &Brokers) {
        let others = |of: &Brokers, not_in: &Brokers| -> Vec<(String, String)> {
            let new = of.iter().filter(|(name, _)| **name != self.name && !not_in.contains_key(*name));
            new.map(|(name, info)| (name.clone(), info.address.clone())).collect()
        };
        for (broker, address) in others(before, now) {
            tracing::warn!(
                broker,
                address,
                "gone: the partitions that it has are offline until it is back, or another broker has them"
            );
        }
        for (broker, address) in others(now, before) {
            tracing::info!(broker, address, "there");
        }
    }

    async fn register(&self, session: i64, record: &BrokerRecord) -> Result<(), CoordinationError> {
        // First what tells a later start that the session was ours.
        if let Err(error) = self.book.note(session) {
            tracing::warn!("a restart will have to wait for the end of this session: {error}");
        }
        let payload = serde_json::to_vec(record).unwrap_or_default();
        let path = paths::broker(&self.name);
        let is_left = |node: &hqueue_coordination::Node| node.owner_session.is_none_or(|s| s != session && self.book.contains(s));
        match claim(&*self.coordinator, &path, &payload, is_left).await? {
            Claim::Held { .. } => {
                tracing::info!(broker = self.name, session = %hex(session), address = record.address, "registered");
                Ok(())
            }
            Claim::Taken(node) if node.owner_session == Some(session) => {
                self.coordinator.set(&path, &payload, Some(node.version)).await.map(drop)
            }
            Claim::Taken(node) => Err(CoordinationError::NodeExists(format!(
                "{path}, held by session {}; it goes when that session ends",
                hex(node.owner_session.unwrap_or_default())
            ))),
        }
    }
}

/// A session's id as ZooKeeper's own tools show it.
pub fn hex(session: i64) -> String {
    format!("0x{:x}", session.cast_unsigned())
}

/// Makes a node of our candidacy, and returns its path.
pub(super) async fn stand(coordinator: &SharedCoordinator, name: &str) -> Result<String, CoordinationError> {
    create_all(&**coordinator, paths::BALANCER).await?;
    coordinator.create(&paths::candidate(), name.as_bytes(), NodeKind::EphemeralSequential).await.map(|made| made.path)
}

//! The brokers that meet in a ZooKeeper, and our session there.

mod names;
pub(crate) mod paths;

use std::sync::Arc;
use std::time::Duration;

use hqueue_coordination::zookeeper::{ZooKeeperCoordinator, ZooKeeperOptions};
use hqueue_coordination::{Ended, SessionState, SharedCoordinator, Watched, child_of};
use hqueue_protocol::client::ChangingAddresses;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::names::Names;
pub(crate) use self::names::Turn;
use crate::error::Error;

/// Our session with ZooKeeper, and who else is there. The session ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    coordinator: SharedCoordinator,
    session: watch::Receiver<SessionState>,
    /// For people.
    place: String,
    brokers: watch::Receiver<Vec<String>>,
    follower: JoinHandle<()>,
    names: Arc<Names>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It holds the coordinator, too.
        self.follower.abort();
    }
}

impl Cluster {
    /// Gets a session, and begins to follow the brokers.
    pub(crate) async fn join(options: ZooKeeperOptions, deadline: Instant) -> Result<Self, Error> {
        let place = format!("zk://{}{}", options.hosts.join(","), options.root);
        let coordinator = ZooKeeperCoordinator::start(options);
        let within = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        coordinator.connected(within).await.map_err(|error| Error::Unreachable(error.to_string()))?;
        let coordinator: SharedCoordinator = Arc::new(coordinator);
        let (list, brokers) = watch::channel(Vec::new());
        let follower = tokio::spawn(follow(Watched::new(Arc::clone(&coordinator)), list));
        Ok(Self { session: coordinator.session(), coordinator, place, brokers, follower, names: Arc::default() })
    }

    /// Where brokers are, for a client that follows them.
    pub(crate) fn addresses(this: &Arc<Self>) -> ChangingAddresses {
        let source = format!("a broker of {}: none is registered there", this.place);
        let follower = Arc::clone(this);
        ChangingAddresses { list: this.brokers.clone(), source, follower }
    }

    /// For people: who would have to answer.
    pub(crate) fn who_is_there(&self) -> String {
        let brokers = self.brokers.borrow();
        if brokers.is_empty() {
            format!("none is registered in {}", self.place)
        } else {
            format!("{} of {} does not answer", brokers.join(", "), self.place)
        }
    }

    pub(crate) const fn coordinator(&self) -> &SharedCoordinator {
        &self.coordinator
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The session that we have now.
    pub(crate) fn session(&self) -> Option<i64> {
        held(&self.session.borrow())
    }

    /// Waits until the session is another one than `known`, or none.
    pub(crate) async fn other_session(&self, known: Option<i64>) {
        let mut session = self.session.clone();
        // It cannot be closed while we are here.
        if session.wait_for(|state| held(state) != known).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A turn among the subscribers of this name that are registered in this session.
    pub(crate) fn turn(&self, queue: &str, subscriber: &str) -> Turn {
        Names::take(&self.names, queue, subscriber)
    }
}

const fn held(state: &SessionState) -> Option<i64> {
    match state {
        SessionState::Held { id, .. } => Some(*id),
        SessionState::Away | SessionState::Closed => None,
    }
}

/// Keeps the list of brokers as it is in coordination.
async fn follow(mut watched: Watched, list: watch::Sender<Vec<String>>) {
    loop {
        watched.begin();
        let Ok(mut now) = read_brokers(&mut watched).await else { return };
        watched.end();
        // Clients take the first that answers: not all the same one.
        fastrand::shuffle(&mut now);
        list.send_if_modified(|known| {
            let same = known.len() == now.len() && known.iter().all(|address| now.contains(address));
            if !same {
                *known = now;
            }
            !same
        });
        if watched.changed().await.is_err() {
            return;
        }
    }
}

async fn read_brokers(watched: &mut Watched) -> Result<Vec<String>, Ended> {
    let names = watched.children(paths::BROKERS).await?.unwrap_or_default();
    let nodes: Vec<_> = names.iter().map(|name| child_of(paths::BROKERS, name)).collect();
    nodes.iter().for_each(|node| watched.expect_node(node));
    let mut addresses = Vec::with_capacity(nodes.len());
    for path in &nodes {
        let Some(node) = watched.node(path).await? else { continue };
        match broker_address(&node.payload) {
            Ok(address) if !addresses.contains(&address) => addresses.push(address),
            Ok(_) => {}
            Err(reason) => tracing::warn!(path, reason, "a broker's node cannot be read: it is not used"),
        }
    }
    Ok(addresses)
}

fn broker_address(payload: &[u8]) -> Result<String, String> {
    let record: serde_json::Value = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let address = record.get("address").and_then(|a| a.as_str()).ok_or("it has no address")?;
    if crate::url::is_address(address) { Ok(address.to_owned()) } else { Err(format!("{address:?} is no host:port")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_says_where_it_is() {
        let good = br#"{"address":"10.0.0.1:9190","started":1,"version":"0.1.0","more":[]}"#;
        assert_eq!(broker_address(good), Ok("10.0.0.1:9190".to_owned()));
        for bad in [&b""[..], b"10.0.0.1:9190", b"{}", br#"{"address":"nowhere"}"#, br#"{"address":5}"#] {
            broker_address(bad).unwrap_err();
        }
    }
}

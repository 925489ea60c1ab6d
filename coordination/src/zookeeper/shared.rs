//! What callers, the session's task and the client's thread share.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::connection::Connection;
use super::establish::Failure;
use super::watches::Watches;
use crate::{CoordinationError as E, SessionState};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) watches: Arc<Watches>,
    state: watch::Sender<SessionState>,
    /// The last failure to get a session; none yet, or none since the last session.
    failure: watch::Sender<Option<Failure>>,
    connection: RwLock<Option<Arc<Connection>>>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            watches: Arc::new(Watches::new()),
            state: watch::Sender::new(SessionState::Away),
            failure: watch::Sender::new(None),
            connection: RwLock::new(None),
        }
    }

    pub(super) fn state(&self) -> watch::Receiver<SessionState> {
        self.state.subscribe()
    }

    pub(super) fn failure(&self) -> watch::Receiver<Option<Failure>> {
        self.failure.subscribe()
    }

    pub(super) fn failed(&self, failure: Failure) {
        self.failure.send_replace(Some(failure));
    }

    /// Calls go this way from now on.
    pub(super) fn connect(&self, connection: Arc<Connection>) {
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        self.failure.send_replace(None);
    }

    /// There is no way for calls any more.
    pub(super) fn disconnect(&self, state: SessionState) {
        self.announce(state);
        *self.connection.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Shows a state, unless the coordinator is closed: that is for ever.
    pub(super) fn announce(&self, state: SessionState) {
        self.state.send_if_modified(|shown| {
            let changes = *shown != SessionState::Closed && *shown != state;
            if changes {
                *shown = state;
            }
            changes
        });
    }

    /// The way for calls.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, E> {
        if *self.state.borrow() == SessionState::Closed {
            return Err(E::Closed);
        }
        let connection = self.connection.read().unwrap_or_else(PoisonError::into_inner).clone();
        connection.ok_or_else(|| match &*self.failure.borrow() {
            Some(failure) => E::Away(format!("no session with ZooKeeper: {}", failure.why)),
            None => E::Away("no session with ZooKeeper now".to_owned()),
        })
    }
}

//! Our session with coordination, and whether it certainly holds at this moment.

use hqueue_coordination::{Coordinator, SessionState};
use tokio::sync::watch;
use tokio::time::Instant;

/// Asked at every put and push: reads memory and the clock.
#[derive(Clone, Debug)]
pub struct Lease {
    state: watch::Receiver<SessionState>,
}

impl Lease {
    #[must_use]
    pub fn new(coordinator: &dyn Coordinator) -> Self {
        Self { state: coordinator.session() }
    }

    /// The session that is certainly ours now; `None`: there is none, or it could have ended without our knowing.
    #[must_use]
    pub fn session(&self) -> Option<i64> {
        match *self.state.borrow() {
            SessionState::Held { id, lease_until: None } => Some(id),
            SessionState::Held { id, lease_until: Some(until) } => (Instant::now() < until).then_some(id),
            SessionState::Away | SessionState::Closed => None,
        }
    }

    /// The last session, whether its lease has run out or not: nodes are made in it.
    #[must_use]
    pub fn last_session(&self) -> Option<i64> {
        match *self.state.borrow() {
            SessionState::Held { id, .. } => Some(id),
            SessionState::Away | SessionState::Closed => None,
        }
    }

    /// Waits until there is no session that is certainly ours. Never returns once coordination is closed.
    pub async fn over(&self) {
        let mut state = self.state.clone();
        loop {
            let now = *state.borrow_and_update();
            let until = match now {
                SessionState::Held { lease_until, .. } => lease_until,
                SessionState::Away => return,
                SessionState::Closed => std::future::pending().await,
            };
            if until.is_some_and(|until| until <= Instant::now()) {
                return;
            }
            let runs_out = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = runs_out => {}
                changed = state.changed() => if changed.is_err() { std::future::pending::<()>().await },
            }
        }
    }

    /// Waits until a session is certainly ours. Never returns once coordination is closed.
    pub async fn holds(&self) {
        let mut state = self.state.clone();
        while self.session().is_none() {
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the session is another one than `known`. Never returns once coordination is closed.
    pub async fn other_than(&self, known: Option<i64>) {
        let mut state = self.state.clone();
        let is_other = |state: &SessionState| match state {
            SessionState::Held { id, .. } => Some(*id) != known,
            SessionState::Away => known.is_some(),
            SessionState::Closed => false,
        };
        if state.wait_for(is_other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

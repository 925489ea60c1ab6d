//! Says why there is no session, without saying it all the time.

use std::time::Duration;

use tokio::time::Instant;

use super::establish::Failure;

/// The same reason is said again after this time.
const AGAIN: Duration = Duration::from_secs(60);

/// What was said last, and when.
#[derive(Debug)]
pub(super) struct Reports {
    last: Option<(Failure, Instant)>,
    unsaid: u64,
}

impl Reports {
    pub(super) const fn new() -> Self {
        Self { last: None, unsaid: 0 }
    }

    pub(super) fn failed(&mut self, hosts: &[String], failure: &Failure) {
        let known = self.last.as_ref().is_some_and(|(last, said)| last == failure && said.elapsed() < AGAIN);
        if known {
            self.unsaid += 1;
            return;
        }
        tracing::warn!(hosts = hosts.join(","), why = failure.why, attempts_unsaid = self.unsaid, "no session with ZooKeeper");
        *self = Self { last: Some((failure.clone(), Instant::now())), unsaid: 0 };
    }

    /// There was a session that lasted.
    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }
}

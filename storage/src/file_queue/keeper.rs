//! The thread that makes durable later what need not be durable at once. It sleeps while there is nothing to do.

use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::options::SyncWhen;
use super::shared::{Shared, State};

/// Starts it, if the options leave it something to do.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Option<JoinHandle<()>>> {
    let options = &shared.options;
    if (options.offers, options.polls) == (SyncWhen::Each, SyncWhen::Each) {
        return Ok(None);
    }
    let shared = Arc::clone(shared);
    thread::Builder::new().name("file-queue".to_owned()).spawn(move || keep(&shared)).map(Some)
}

fn keep(shared: &Shared) {
    let mut state = shared.state();
    while !state.is_stopping {
        let due = due(shared, &state);
        let now = Instant::now();
        state = match due {
            Some(at) if at <= now => {
                drop(state);
                make_durable(shared);
                shared.state()
            }
            Some(at) => shared.changed.wait_timeout(state, at - now).unwrap_or_else(PoisonError::into_inner).0,
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

/// When the next thing has to be durable.
fn due(shared: &Shared, state: &State) -> Option<Instant> {
    let within = |when: SyncWhen, since: Option<Instant>| match when {
        SyncWhen::Within(time) => since.and_then(|since| since.checked_add(time)),
        SyncWhen::Each => None,
    };
    let offers = within(shared.options.offers, state.unsynced_since);
    let polls = within(shared.options.polls, state.polled_since);
    offers.into_iter().chain(polls).min()
}

fn make_durable(shared: &Shared) {
    if shared.state().unsynced_since.is_some()
        && let Err(error) = shared.sync_elements()
    {
        tracing::error!(%error, "what was offered last is not certain to be on the disk");
    }
    if shared.state().polled_since.is_some()
        && let Err(error) = shared.commit(false)
    {
        // The next poll is refused until it succeeds; until then there is a try now and then.
        tracing::warn!(%error, "what was polled may come again");
        shared.state().polled_since = Some(Instant::now());
    }
}

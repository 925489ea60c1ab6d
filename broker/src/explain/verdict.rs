//! What follows from the facts: the decision alone, without what it is about.

use std::sync::Arc;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::MissingReason;

use super::facts::{Facts, Held, Letter, Past};
use crate::subscription::{Call, FlightPlace, Mover, OnItsWay, Standing, What};
use crate::time::Moment;

/// Where a message stands with a subscription.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Delivered {
        at: Moment,
        call: Call,
    },
    /// A consumer that pulls has said so.
    Committed {
        at: Moment,
    },
    /// It was dead-lettered, and accepted later.
    Redriven {
        at: Moment,
        call: Call,
    },
    InFlight(OnItsWay),
    Waiting(Wait),
    /// Its topic is not wanted; or was not when its turn came, and is by now.
    Filtered {
        then: bool,
    },
    /// It went before it could be delivered.
    Gone(MissingReason),
    DeadLettered(Letter),
    /// It was dead-lettered; whether the letter is still there cannot be told.
    LetterAway {
        at: Moment,
    },
    /// It was dead-lettered; the letter has been dropped, or has expired.
    LetterGone {
        at: Moment,
    },
    PassedOver {
        at: Moment,
        by: Mover,
    },
    /// It is finished; how is not known any more.
    BelowCheckpoint,
    BeforeStart,
    NotRead,
}

/// Why a message waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    /// The message that it waits behind; `None`: itself is what comes next, or it does not depend on others.
    pub(super) behind: Option<MessageId>,
    /// Failed attempts of that one, or of its own batch.
    pub(super) attempts: Option<u32>,
    /// It is tried again after so long at the latest.
    pub(super) wait: Option<Duration>,
    pub(super) endpoint: Option<Arc<str>>,
    pub(super) since: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Disabled,
    Paused,
    Broken,
    Changing,
    /// A dead letter has to be kept first.
    DeadLetterQueue,
    Blocked,
    NoEndpoint,
    EndpointAway,
    Failing,
    Retrying,
    Busy,
    Rate,
    /// As many calls as may be are under way.
    Call,
    Span,
    Window,
    Messages,
    Next,
}

/// Where the message stands.
pub(super) fn explanation(facts: &Facts) -> Verdict {
    let Some(standing) = &facts.standing else { return unread(facts) };
    if let Some(call) = under_way(facts, standing) {
        return Verdict::InFlight(call.clone());
    }
    if facts.id <= standing.checkpoint || standing.flight == Some(FlightPlace::Done) {
        return finished(facts, standing);
    }
    if facts.wanted == Some(false) {
        return Verdict::Filtered { then: false };
    }
    match facts.gone {
        Some(why) => Verdict::Gone(why),
        None => Verdict::Waiting(waiting(facts, standing)),
    }
}

fn unread(facts: &Facts) -> Verdict {
    match (&facts.letter, facts.held) {
        (Some(letter), _) => Verdict::DeadLettered(letter.clone()),
        // Nobody reads the partition because nobody can.
        (None, Some(Held::Broken)) => Verdict::Waiting(Wait::for_all(Reason::Broken)),
        (None, _) => Verdict::NotRead,
    }
}

fn under_way<'a>(facts: &Facts, standing: &'a Standing) -> Option<&'a OnItsWay> {
    let carries = |call: &&OnItsWay| (call.first..=call.last).contains(&facts.id) && facts.wanted != Some(false);
    standing.calls.iter().find(carries)
}

/// Of a message that is done with: how that came.
fn finished(facts: &Facts, standing: &Standing) -> Verdict {
    if let Some(letter) = &facts.letter {
        return Verdict::DeadLettered(letter.clone());
    }
    let newest_first = || facts.past.iter().rev();
    // Once it was missed no call carried it, whatever was around it.
    let missed = facts.past.iter().position(|past| facts.gone.is_some() && matches!(past.event.what, What::Missed { .. }));
    let before_that = facts.past.get(..missed.unwrap_or(facts.past.len())).unwrap_or_default();
    if let Some(verdict) = before_that.iter().rev().find_map(|past| ended(facts, past)) {
        return verdict;
    }
    if let Some(verdict) = newest_first().find_map(|past| passed(facts, past)) {
        return verdict;
    }
    if standing.began.is_some_and(|began| facts.id <= began) {
        return Verdict::BeforeStart;
    }
    if facts.wanted == Some(false) {
        return Verdict::Filtered { then: false };
    }
    if facts.past.iter().any(|past| !past.carried && call_that_consumed(facts.id, past).is_some()) {
        return Verdict::Filtered { then: true };
    }
    Verdict::BelowCheckpoint
}

fn call_that_consumed(id: MessageId, past: &Past) -> Option<&Call> {
    match &past.event.what {
        What::Call(call) if call.consumed_to.is_some_and(|to| id <= to) => Some(call),
        _ => None,
    }
}

/// The end of the message itself.
fn ended(facts: &Facts, past: &Past) -> Option<Verdict> {
    let at = past.event.at;
    if let What::Buried { .. } = past.event.what {
        let is_away = facts.letters_away.is_some();
        return Some(if is_away { Verdict::LetterAway { at } } else { Verdict::LetterGone { at } });
    }
    let call = call_that_consumed(facts.id, past).filter(|_| past.carried)?.clone();
    Some(if call.is_redelivery { Verdict::Redriven { at, call } } else { Verdict::Delivered { at, call } })
}

/// The subscription went past it.
fn passed(facts: &Facts, past: &Past) -> Option<Verdict> {
    let at = past.event.at;
    match past.event.what {
        What::Moved { from, to, .. } if to < from => None,
        // Whether it was fetched before it went nobody knows.
        What::Moved { by: Mover::Commit, .. } if facts.gone.is_some() => Some(Verdict::BelowCheckpoint),
        What::Moved { by: Mover::Commit, .. } if facts.wanted == Some(false) => Some(Verdict::Filtered { then: false }),
        What::Moved { by: Mover::Commit, .. } => Some(Verdict::Committed { at }),
        What::Moved { by, .. } => Some(Verdict::PassedOver { at, by }),
        What::Missed { .. } => facts.gone.map(Verdict::Gone),
        What::Call(_) | What::Buried { .. } | What::Topics { .. } => None,
    }
}

impl Wait {
    /// What has nothing to do with single messages.
    const fn for_all(reason: Reason) -> Self {
        Self { reason, behind: None, attempts: None, wait: None, endpoint: None, since: None }
    }
}

/// Of a message that is there, wanted, and not done: what is in its way, the nearest first.
fn waiting(facts: &Facts, standing: &Standing) -> Wait {
    let behind = facts.first.filter(|first| *first < facts.id);
    by_order(facts)
        .or_else(|| by_poison(facts, standing, behind))
        .or_else(|| by_endpoint(facts, standing, behind))
        .or_else(|| by_failure(facts, standing, behind))
        .unwrap_or_else(|| by_others(facts, standing, behind))
}

fn by_order(facts: &Facts) -> Option<Wait> {
    Some(Wait::for_all(match facts.held? {
        Held::Disabled => Reason::Disabled,
        Held::Paused => Reason::Paused,
        Held::Broken => Reason::Broken,
        Held::Changing => Reason::Changing,
    }))
}

fn by_poison(facts: &Facts, standing: &Standing, behind: Option<MessageId>) -> Option<Wait> {
    match standing.flight {
        Some(FlightPlace::Blocked { attempts }) => {
            return Some(Wait { attempts: Some(attempts), ..Wait::for_all(Reason::Blocked) });
        }
        Some(FlightPlace::Burying) => return Some(Wait::for_all(Reason::DeadLetterQueue)),
        _ => {}
    }
    if let Some(letter) = standing.burying {
        return Some(Wait { behind: Some(letter).filter(|letter| *letter < facts.id), ..Wait::for_all(Reason::DeadLetterQueue) });
    }
    standing.is_blocked.then(|| Wait { behind, attempts: Some(standing.attempts), ..Wait::for_all(Reason::Blocked) })
}

fn by_endpoint(facts: &Facts, standing: &Standing, behind: Option<MessageId>) -> Option<Wait> {
    let Some(endpoint) = facts.endpoint.clone() else { return Some(Wait::for_all(Reason::NoEndpoint)) };
    if facts.endpoint_is_away {
        return Some(Wait { endpoint: Some(endpoint), wait: standing.wait, ..Wait::for_all(Reason::EndpointAway) });
    }
    let attempts = Some(standing.attempts);
    facts.is_failing.then(|| Wait { behind, attempts, wait: standing.wait, ..Wait::for_all(Reason::Failing) })
}

fn by_failure(facts: &Facts, standing: &Standing, behind: Option<MessageId>) -> Option<Wait> {
    if let Some(FlightPlace::Waiting { attempts, wait }) = standing.flight {
        let wait = Some(wait).filter(|wait| !wait.is_zero());
        let reason = if attempts > 0 { Reason::Retrying } else { wait.map(|_| Reason::Busy)? };
        return Some(Wait { attempts: Some(attempts), wait, ..Wait::for_all(reason) });
    }
    if standing.is_without_order {
        return None;
    }
    if standing.attempts > 0 {
        // Those of its own batch are no others' fault.
        let is_of_the_batch = standing.attempts_to.is_none_or(|to| facts.id <= to);
        let behind = behind.filter(|_| !is_of_the_batch);
        let attempts = Some(standing.attempts);
        return Some(Wait { behind, attempts, wait: standing.wait, ..Wait::for_all(Reason::Retrying) });
    }
    let reason = if standing.is_busy { Reason::Busy } else { standing.wait.map(|_| Reason::Retrying)? };
    Some(Wait { behind, wait: standing.wait, ..Wait::for_all(reason) })
}

fn by_others(facts: &Facts, standing: &Standing, behind: Option<MessageId>) -> Wait {
    if let Some(pace) = standing.pace {
        return Wait { behind, wait: Some(pace), ..Wait::for_all(Reason::Rate) };
    }
    if standing.span_is_full && standing.flight.is_none() {
        return Wait { behind, ..Wait::for_all(Reason::Span) };
    }
    let oldest = standing.calls.iter().filter(|call| !call.is_redelivery).min_by_key(|call| call.began);
    if let Some(call) = oldest.filter(|_| standing.calls_are_full) {
        let (endpoint, since) = (Some(Arc::clone(&call.endpoint)), Some(call.began));
        return Wait { behind: behind.or(Some(call.first)), endpoint, since, ..Wait::for_all(Reason::Call) };
    }
    if facts.window_is_full {
        return Wait { behind, ..Wait::for_all(Reason::Window) };
    }
    Wait { behind, ..Wait::for_all(if facts.ahead > 0 { Reason::Messages } else { Reason::Next }) }
}

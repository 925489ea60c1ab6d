//! A verdict as it is answered: by names for programs, and in a sentence for people.

use std::time::Duration;

use hqueue_protocol::duration;
use hqueue_protocol::generated::{TCallDetails, TMessageID, TMessageStanding};
use hqueue_protocol::id::MessageId;
use hqueue_storage::store::MissingReason;

use super::facts::Facts;
use super::lookup::Found;
use super::verdict::{Reason, Verdict, Wait};
use crate::subscription::{Call, CallResult, Mover, What};

/// Of the calls that carried a message the last so many are told.
const CALLS: usize = 20;

/// The state of a message in its queue, and the same in a sentence.
pub(super) fn of_message(found: &Found, newest: Option<MessageId>) -> (&'static str, String) {
    match found {
        Found::Stored(_) => ("stored", "it is stored".to_owned()),
        Found::Never { next: Some(next) } => {
            ("never", format!("there is no message of this id, and never was: the next one is {next}"))
        }
        Found::Never { next: None } => {
            let newest =
                newest.map_or_else(|| "there is none in the partition yet".to_owned(), |id| format!("the newest is {id}"));
            ("never", format!("there is no message of this id yet: {newest}"))
        }
        Found::Gone { why, certain: true } => (of_gone(*why), format!("it is not there any more: {}", why_gone(*why))),
        Found::Gone { why, certain: false } => {
            ("gone", format!("it is not there, and perhaps never was: messages around it {}", why_around(*why)))
        }
    }
}

const fn why_around(why: MissingReason) -> &'static str {
    match why {
        MissingReason::Expired => "have expired",
        MissingReason::Truncated => "were removed by truncate_queue",
        MissingReason::Dropped => "were dropped to make room for newer ones",
        MissingReason::Damaged => "are damaged on the disk",
    }
}

const fn of_gone(why: MissingReason) -> &'static str {
    match why {
        MissingReason::Expired => "expired",
        MissingReason::Truncated => "truncated",
        MissingReason::Dropped => "dropped",
        MissingReason::Damaged => "damaged",
    }
}

const fn why_gone(why: MissingReason) -> &'static str {
    match why {
        MissingReason::Expired => "older than the time to live",
        MissingReason::Truncated => "removed by truncate_queue",
        MissingReason::Dropped => "dropped to make room for newer ones",
        MissingReason::Damaged => "its bytes on the disk are damaged",
    }
}

impl Verdict {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Delivered { .. } | Self::Committed { .. } => "delivered",
            Self::Redriven { .. } => "redriven",
            Self::InFlight(_) => "in_flight",
            Self::Waiting(_) => "waiting",
            Self::Filtered { .. } => "filtered",
            Self::Gone(why) => of_gone(*why),
            Self::DeadLettered(_) | Self::LetterAway { .. } => "dead_lettered",
            Self::LetterGone { .. } => "letter_gone",
            Self::PassedOver { .. } => "passed_over",
            Self::BelowCheckpoint => "below_checkpoint",
            Self::BeforeStart => "before_start",
            Self::NotRead => "not_read",
        }
    }
}

impl Reason {
    const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Paused => "paused",
            Self::Broken => "broken",
            Self::Changing => "changing",
            Self::DeadLetterQueue => "dead_letter_queue",
            Self::Blocked => "blocked",
            Self::NoEndpoint => "no_endpoint",
            Self::EndpointAway => "endpoint_away",
            Self::Failing => "failing",
            Self::Retrying => "retrying",
            Self::Busy => "busy",
            Self::Rate => "rate_limit",
            Self::Call => "call",
            Self::Span => "span",
            Self::Window => "window",
            Self::Messages => "messages",
            Self::Next => "next",
        }
    }
}

/// What is answered for one subscription.
pub(super) fn standing(subscriber: &[u8], facts: &Facts, verdict: &Verdict) -> TMessageStanding {
    // Not by default: that of the generated code is full of empty texts.
    let mut told = TMessageStanding {
        subscriber: Some(subscriber.to_vec()),
        state: Some(verdict.name().to_owned()),
        reason: None,
        text: Some(text(facts, verdict) + &about_letters(facts, verdict)),
        time: None,
        endpoint: None,
        attempts: None,
        last_error: None,
        behind: None,
        ahead: None,
        wait_ms: None,
        letter_i_d: facts.letter.as_ref().map(|letter| wire(letter.id)),
        calls: Some(calls(facts)),
    };
    match verdict {
        Verdict::Delivered { at, call } | Verdict::Redriven { at, call } => {
            told.time = Some(at.to_string());
            told.endpoint = Some(call.endpoint.to_string());
            told.attempts = Some(count(call.attempt));
        }
        Verdict::InFlight(call) => {
            told.time = Some(call.began.to_string());
            told.endpoint = Some(call.endpoint.to_string());
            told.attempts = Some(count(call.attempts.saturating_add(1)));
        }
        Verdict::Waiting(wait) => {
            told.reason = Some(wait.reason.name().to_owned());
            told.time = wait.since.map(|since| since.to_string());
            told.endpoint = wait.endpoint.as_ref().map(ToString::to_string);
            told.attempts = wait.attempts.map(count);
            told.last_error = error_of(facts, wait);
            told.behind = wait.behind.map(wire);
            told.ahead = Some(i64::try_from(facts.ahead).unwrap_or(i64::MAX));
            told.wait_ms = wait.wait.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        }
        Verdict::DeadLettered(letter) => {
            told.attempts = Some(count(letter.attempts));
            told.last_error = Some(letter.error.clone());
        }
        Verdict::Committed { at } | Verdict::LetterAway { at } | Verdict::LetterGone { at } | Verdict::PassedOver { at, .. } => {
            told.time = Some(at.to_string())
        }
        Verdict::Filtered { .. } | Verdict::Gone(_) | Verdict::BelowCheckpoint | Verdict::BeforeStart | Verdict::NotRead => {}
    }
    told
}

pub(super) const fn wire(id: MessageId) -> TMessageID {
    TMessageID { timestamp: Some(id.timestamp), sequence_i_d: Some(id.sequence) }
}

fn count(n: u32) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// An error has to do with some waits only.
fn error_of(facts: &Facts, wait: &Wait) -> Option<String> {
    let has_one = matches!(
        wait.reason,
        Reason::Broken | Reason::DeadLetterQueue | Reason::Blocked | Reason::EndpointAway | Reason::Failing | Reason::Retrying
    );
    facts.last_error.clone().filter(|_| has_one)
}

fn calls(facts: &Facts) -> Vec<TCallDetails> {
    let detail = |past: &super::facts::Past| match &past.event.what {
        What::Call(call) if past.carried => Some(TCallDetails {
            time: Some(past.event.at.to_string()),
            endpoint: Some(call.endpoint.to_string()),
            attempt: Some(count(call.attempt)),
            result: Some(result(facts.id, call)),
        }),
        _ => None,
    };
    let mut calls: Vec<TCallDetails> = facts.past.iter().rev().filter_map(detail).take(CALLS).collect();
    calls.reverse();
    calls
}

/// What came of a call for one message of it.
fn result(id: MessageId, call: &Call) -> String {
    match (&call.result, call.consumed_to) {
        (CallResult::Consumed, Some(to)) if id > to => format!("consumed up to {to} only"),
        (CallResult::Consumed, _) => "consumed".to_owned(),
        (CallResult::Busy, _) => "the subscriber was busy (-2)".to_owned(),
        (CallResult::Refused, _) if call.first == id => "refused for good (-3)".to_owned(),
        (CallResult::Refused, _) => format!("{} was refused for good (-3)", call.first),
        (CallResult::Failed(reason) | CallResult::NoAnswer(reason), _) => reason.to_string(),
    }
}

fn text(facts: &Facts, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Delivered { at, call } => format!("delivered to {} at {at}, attempt {}", call.endpoint, call.attempt),
        Verdict::Committed { at } => format!("a consumer that pulls has committed it at {at}"),
        Verdict::Redriven { at, call } => format!("dead-lettered, then redriven: accepted by {} at {at}", call.endpoint),
        Verdict::InFlight(call) if call.is_redelivery => {
            format!("a dead letter that is pushed again: in a call to {} since {}", call.endpoint, call.began)
        }
        Verdict::InFlight(call) => {
            format!("in a call to {} since {}, attempt {}", call.endpoint, call.began, call.attempts.saturating_add(1))
        }
        Verdict::Waiting(wait) => waiting(facts, wait),
        Verdict::Filtered { then: false } => "not for it: it does not want the topic".to_owned(),
        Verdict::Filtered { then: true } => "not for it: it did not want the topic when its turn came".to_owned(),
        Verdict::Gone(why) => format!("not delivered before it went: {}", why_gone(*why)),
        Verdict::DeadLettered(letter) => {
            format!(
                "dead-lettered after {}, in the dead-letter queue as {}: {}",
                attempts(letter.attempts),
                letter.id,
                letter.error
            )
        }
        Verdict::LetterAway { at } => format!("dead-lettered at {at}"),
        Verdict::LetterGone { at } => format!("dead-lettered at {at}; the letter has been dropped since, or has expired"),
        Verdict::PassedOver { at, by: Mover::Hand } => format!("passed over at {at}: its checkpoint was moved by hand"),
        Verdict::PassedOver { at, .. } => format!("passed over by a seek at {at}"),
        Verdict::BelowCheckpoint if facts.was_unwanted => {
            "below the checkpoint; its call is no longer in memory, or its topic was not wanted when its turn came".to_owned()
        }
        Verdict::BelowCheckpoint if facts.gone.is_some() => {
            "below the checkpoint; its call is no longer in memory, or it went before it could be delivered".to_owned()
        }
        Verdict::BelowCheckpoint => "below the checkpoint; its call is no longer in memory".to_owned(),
        Verdict::BeforeStart => "before the start: it was put before the subscription began".to_owned(),
        Verdict::NotRead => "not for it: it does not read this partition".to_owned(),
    }
}

/// A letter might be the end of the story.
fn about_letters(facts: &Facts, verdict: &Verdict) -> String {
    let matters = matches!(verdict, Verdict::LetterAway { .. } | Verdict::BelowCheckpoint | Verdict::NotRead);
    let away = facts.letters_away.as_ref().filter(|_| matters);
    away.map_or_else(String::new, |reason| format!("; whether there is a dead letter of it cannot be told: {reason}"))
}

fn attempts(n: u32) -> String {
    if n == 1 { "1 attempt".to_owned() } else { format!("{n} attempts") }
}

/// Rounded up, so that nobody looks too early.
fn soon(wait: Option<Duration>, what: &str) -> String {
    let Some(wait) = wait else { return format!("{what} now") };
    let rounded = if wait < Duration::from_secs(1) { wait } else { Duration::from_secs(wait.as_secs() + 1) };
    format!("{what} in {}", duration::format(Duration::from_millis(u64::try_from(rounded.as_millis()).unwrap_or(u64::MAX))))
}

fn waiting(facts: &Facts, wait: &Wait) -> String {
    let tries = attempts(wait.attempts.unwrap_or_default());
    let again = soon(wait.wait, "tried again");
    let endpoint = wait.endpoint.as_deref().unwrap_or_default();
    let mut text = match (wait.reason, wait.behind) {
        (Reason::Disabled, _) => "waits: its queue is disabled".to_owned(),
        (Reason::Paused, _) => "waits: the subscription is paused".to_owned(),
        (Reason::Broken, _) => "waits: what coordination has of the subscription cannot be read".to_owned(),
        (Reason::Changing, _) => "waits: other options are about to count, calls under way end first".to_owned(),
        (Reason::DeadLetterQueue, None) => "waits to be kept as a dead letter".to_owned(),
        (Reason::DeadLetterQueue, Some(id)) => format!("waits behind {id}, which is to be kept as a dead letter first"),
        (Reason::Blocked, None) => format!("blocks its partition after {tries}, resume tries it again"),
        (Reason::Blocked, Some(id)) => {
            format!("waits behind {id}, which blocks the partition after {tries}; resume tries it again")
        }
        (Reason::NoEndpoint, _) => "waits: the subscription has no endpoint for this partition".to_owned(),
        (Reason::EndpointAway, _) => format!("waits: {endpoint} does not answer"),
        (Reason::Failing, None) => format!("waits: the subscriber fails at everything; {tries} so far, {again}"),
        (Reason::Failing, Some(id)) => {
            format!("waits behind {id}: the subscriber fails at everything; {tries} of that one so far, {again}")
        }
        (Reason::Retrying, None) => format!("its batch has failed: {tries} so far, {again}"),
        (Reason::Retrying, Some(id)) => format!("waits behind {id}, whose batch has failed: {tries} so far, {again}"),
        (Reason::Busy, _) => format!("waits: the subscriber is busy (-2), {}", soon(wait.wait, "asked again")),
        (Reason::Rate, _) => format!("waits: the rate of the subscription lets the next call go {}", soon(wait.wait, "out")),
        (Reason::Call, _) => {
            let since = wait.since.map(|since| format!(" since {since}")).unwrap_or_default();
            format!("waits behind a call to {endpoint}{since}")
        }
        (Reason::Span, _) => {
            "waits: as many messages lie between the checkpoint and the furthest one as may (max-span)".to_owned()
        }
        (Reason::Window, _) => "waits: as much of the subscription is in flight as may be (its window)".to_owned(),
        (Reason::Messages, _) => "waits for its turn".to_owned(),
        (Reason::Next, _) => "comes next".to_owned(),
    };
    if let Some(error) = error_of(facts, wait) {
        text.push_str(": ");
        text.push_str(&error);
    }
    match facts.ahead {
        0 => {}
        1 => text.push_str("; 1 message lies before it"),
        n => text.push_str(&format!("; {n} messages lie before it")),
    }
    text
}

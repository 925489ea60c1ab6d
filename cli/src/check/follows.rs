//! What follows for the options of a subscription.

use std::time::Duration;

use hqueue_broker::SubscriptionOptions;
use hqueue_protocol::duration::format;
use hqueue_protocol::endpoint::EndpointOptions;
use hqueue_protocol::limits::CALL_LIMIT_BYTES;

use super::Subscriber;
use super::idle::{Fate, Idle};
use super::trials::{SecondConnection, Trial};

/// A call that takes longer than so many milliseconds without messages is slow for reasons of its own.
const SLOW_MS: f64 = 5.0;

pub(super) fn of(found: &Subscriber, call_timeout: Duration) -> Vec<String> {
    let Subscriber { address, transport, protocol, .. } = found;
    let registration = format!("add_subscriber QUEUE NAME --address {address} --transport {transport} --protocol {protocol}");
    let mut lines = vec![match found.found_after_ms {
        None => format!("{registration}; without these two the broker finds them by empty calls"),
        Some(ms) => format!(
            "{registration}: these two are needed. An empty call takes {ms:.0} ms, and a broker that has to find them out waits {} for \
             each answer",
            format(EndpointOptions::new(address).detect_timeout)
        ),
    }];
    lines.extend(of_connections(found));
    lines.extend(of_round_trips(found.empty_calls.median_ms));
    lines.push(of_size(found));
    lines.extend(found.batch.as_ref().and_then(of_batch));
    lines.extend(found.idle.as_ref().map(|idle| of_idle(idle, call_timeout)));
    lines
}

fn of_connections(found: &Subscriber) -> Option<String> {
    match found.second_connection {
        SecondConnection::Served if found.empty_calls.connections > 1 => Some(format!(
            "{} connections were needed for {} calls: it closes them between calls, and each costs a broker time",
            found.empty_calls.connections, found.empty_calls.calls
        )),
        SecondConnection::Served => None,
        SecondConnection::Waits | SecondConnection::Refused => Some(
            "it serves one connection at a time: one subscription of one broker. Others that call it, and --ordering none with \
             --calls above 1, wait in vain for a connection that is kept open; a server with threads serves all of them"
                .to_owned(),
        ),
    }
}

fn of_round_trips(median_ms: f64) -> Option<String> {
    (median_ms >= SLOW_MS).then(|| {
        format!(
            "a call takes {median_ms:.1} ms even without messages, so at most {:.0} calls a second go over a connection: large batches \
             (--batch-messages, --batch-bytes) make up for it",
            1000.0 / median_ms
        )
    })
}

fn of_size(found: &Subscriber) -> String {
    let default = SubscriptionOptions::default().batch_bytes;
    match &found.large {
        None => format!("calls of up to --batch-bytes {default} (the default) will come; --large 1MiB tries one of that size"),
        Some(trial) if trial.answer.is_some() => {
            let limit = if found.transport == "framed" {
                format!("; most libraries take frames of up to {CALL_LIMIT_BYTES} bytes, and a broker's calls stay below")
            } else {
                String::new()
            };
            format!("a --batch-bytes of {} is not too large for it (default {default}){limit}", trial.bytes)
        }
        Some(trial) => format!(
            "a call of {} bytes was not answered: stay below with --batch-bytes (default {default}), or raise the server's limits of \
             frames and messages; find its limit with smaller --large. A single message larger than that goes alone in its call",
            trial.bytes
        ),
    }
}

fn of_batch(trial: &Trial) -> Option<String> {
    (!trial.is_consumed()).then(|| {
        let attempts = SubscriptionOptions::default().max_attempts;
        format!(
            "messages that end so are sent again, at most {attempts} times (--max-attempts), and then dead-lettered (--on-poison)"
        )
    })
}

fn of_idle(idle: &Idle, call_timeout: Duration) -> String {
    match idle.connection {
        Fate::Kept => "a connection that was idle for so long is kept: nothing to set".to_owned(),
        Fate::Closed | Fate::ClosedWhenCalled => {
            "it closes idle connections: nothing to set, a broker connects again and counts no attempt".to_owned()
        }
        Fate::SpokenOn => {
            "it sends what nobody has asked for: a broker closes such a connection and makes another. Let the server answer \
                           each call once, and say nothing else"
                .to_owned()
        }
        Fate::LeftOpen => format!(
            "it leaves idle connections and does not close them: the first call behind a pause waits in vain for --call-timeout ({}), \
             later ones go over new connections. Raise the server's timeout of receiving, or set a shorter --call-timeout",
            format(call_timeout)
        ),
        Fate::Unknown => "it did not answer before the idle wait any more: see above".to_owned(),
    }
}

//! What was found, for people or as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::idle::{Fate, Idle};
use super::trials::{SecondConnection, Trial};
use super::{Stranger, Subscriber};
use crate::connection::Format;
use crate::failure::Failure;
use crate::output::{escaped, print_json};

/// Whether it is a subscriber stands first in the object.
#[derive(Serialize)]
struct Verdict<T> {
    subscriber: bool,
    #[serde(flatten)]
    found: T,
}

#[derive(Serialize)]
struct At<'a> {
    address: &'a str,
    #[serde(flatten)]
    stranger: &'a Stranger,
}

pub(crate) fn print_subscriber(format: Format, found: &Subscriber) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&Verdict { subscriber: true, found });
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{} is a subscriber\n", found.address)?;
    writeln!(out, "speaks             {} {}", found.transport, found.protocol)?;
    let calls = &found.empty_calls;
    writeln!(
        out,
        "empty calls        answered with 0; round trip {:.2} ms at least, {:.2} ms in the middle of {}",
        calls.min_ms, calls.median_ms, calls.calls
    )?;
    writeln!(
        out,
        "second connection  {}",
        match found.second_connection {
            SecondConnection::Served => "served at the same time",
            SecondConnection::Waits => "not served while another is open",
            SecondConnection::Refused => "refused while another is open",
        }
    )?;
    for (name, trial) in [("batch", &found.batch), ("large call", &found.large)] {
        if let Some(trial) = trial {
            writeln!(out, "{name:<19}{}", of_trial(trial))?;
        }
    }
    if let Some(idle) = &found.idle {
        writeln!(out, "idle               {}", of_idle(idle))?;
    }
    writeln!(out, "\nwhat follows:")?;
    Ok(found.follows.iter().try_for_each(|line| writeln!(out, "- {line}"))?)
}

fn of_trial(trial: &Trial) -> String {
    let meaning = trial.meaning();
    let meaning = escaped(meaning.as_bytes());
    format!("{} messages, {} bytes: {meaning} ({:.1} ms)", trial.messages, trial.bytes, trial.ms)
}

fn of_idle(idle: &Idle) -> String {
    let after = format!("after {:.1} s", idle.after_ms / 1000.0);
    let fate = match idle.connection {
        Fate::Kept => format!("the same connection was answered {after}"),
        Fate::Closed => format!("the server closed the connection {after}"),
        Fate::ClosedWhenCalled => format!("the server closed the connection when it was called {after}"),
        Fate::SpokenOn => format!("the server sent bytes that nobody had asked for {after}"),
        Fate::LeftOpen => format!("the connection is open {after}, but a call on it had no answer"),
        Fate::Unknown => "not tried".to_owned(),
    };
    match &idle.error {
        Some(error) => format!("{fate}; then: {}", escaped(error.as_bytes())),
        None => fate,
    }
}

/// The reason goes to standard error by the failure that is returned.
pub(crate) fn print_stranger(format: Format, address: &str, stranger: &Stranger) -> Result<(), Failure> {
    if format == Format::Json {
        print_json(&Verdict { subscriber: false, found: At { address, stranger } })?;
    }
    Err(Failure::failed(format!("{address} is no subscriber: {}", escaped(stranger.reason.as_bytes()))))
}

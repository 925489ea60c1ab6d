//! What is checked of every language.

mod by_hand;
mod consumers;
mod examples;
mod gateway;
mod messages;
mod strangers;

pub(crate) use by_hand::by_hand;
pub(crate) use consumers::{answers, every_dialect, idle, killed_and_back, replaced, ten_thousand};
pub(crate) use examples::examples;
pub(crate) use gateway::gateway;
pub(crate) use messages::{check_complete, check_no_failure, put, with_headers};
pub(crate) use strangers::strangers;

/// Waits between calls that are repeated: short ones.
const QUICK: [(&str, &str); 3] = [("retry-min", "20ms"), ("retry-max", "100ms"), ("call-timeout", "5s")];

/// The same, where a call with 3 MiB may take its time on a busy machine.
const PATIENT: [(&str, &str); 3] = [("retry-min", "20ms"), ("retry-max", "100ms"), ("call-timeout", "60s")];

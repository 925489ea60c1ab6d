//! What `explain` says.

use serde_json::Value;

use crate::broker::Broker;
use crate::message::Id;
use crate::wait::{PATIENCE, wait_for};

/// `explain QUEUE PARTITION ID`, with JSON.
///
/// # Panics
/// If it is refused.
#[track_caller]
#[must_use]
pub fn explain(broker: &Broker, queue: &str, partition: i16, id: Id) -> Value {
    broker.run(&["explain", queue, &partition.to_string(), &id.to_string(), "--format", "json"]).json()
}

/// What it says of one subscriber; checks that people are told the same.
///
/// # Panics
/// If it says nothing of it.
#[track_caller]
#[must_use]
pub fn explained(broker: &Broker, queue: &str, partition: i16, id: Id, name: &str) -> Value {
    let (partition, id) = (partition.to_string(), id.to_string());
    let told = broker.run(&["explain", queue, &partition, &id, "--name", name, "--format", "json"]).json();
    let all = told["subscriptions"].as_array().expect("subscriptions");
    assert!(all.len() == 1 && all[0]["name"] == name, "one, and the one that was named: {told}");
    all[0].clone()
}

/// Waits until it says this of a subscriber: `delivered`, or a state and a reason, `waiting paused`.
///
/// # Panics
/// If it does not.
#[track_caller]
pub fn wait_until(broker: &Broker, queue: &str, partition: i16, id: Id, name: &str, wanted: &str) -> Value {
    wait_for(&format!("{id} is {wanted} for {name}"), PATIENCE, || {
        let told = explained(broker, queue, partition, id, name);
        let is_it = state(&told) == wanted;
        if !is_it {
            println!("{told}");
        }
        is_it.then_some(told)
    })
}

/// `delivered`, or with a reason: `waiting paused`.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn state(told: &Value) -> String {
    let state = told["state"].as_str().expect("a state");
    told["reason"].as_str().map_or_else(|| state.to_owned(), |reason| format!("{state} {reason}"))
}

/// The sentence.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn text(told: &Value) -> &str {
    told["text"].as_str().expect("a text")
}

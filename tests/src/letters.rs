//! Dead letters, and consumers that make some.

use serde_json::Value;

use crate::broker::Broker;
use crate::consumer::Answer;
use crate::message::{Id, Message};

/// Quick repetitions, and few of them.
pub const QUICK: [(&str, &str); 4] =
    [("retry-min", "10ms"), ("retry-max", "20ms"), ("max-attempts", "2"), ("call-timeout", "2s")];

/// What `dlq list` shows, oldest first.
///
/// # Panics
/// If it is refused.
#[track_caller]
#[must_use]
pub fn letters(broker: &Broker, queue: &str, subscriber: &str) -> Vec<Value> {
    broker.run(&["dlq", "list", queue, subscriber, "--format", "json"]).json_lines()
}

/// The values of these.
///
/// # Panics
/// If one is not text.
#[track_caller]
#[must_use]
pub fn values(letters: &[Value]) -> Vec<String> {
    letters.iter().map(|letter| letter["value"].as_str().expect("a value").to_owned()).collect()
}

/// Partition and id of a letter.
///
/// # Panics
/// If it has none.
#[track_caller]
#[must_use]
pub fn place(letter: &Value) -> (i16, Id) {
    let partition = letter["partition"].as_i64().and_then(|p| i16::try_from(p).ok()).expect("a partition");
    (partition, letter["id"].as_str().expect("an id").parse().expect("an id"))
}

/// Consumes what stands before the first message that `is_poison`, and answers `with` when that comes first.
pub fn failing_at(is_poison: impl Fn(&Message) -> bool + Send, with: Answer) -> impl FnMut(&[Message]) -> Answer + Send {
    move |messages| match messages.iter().position(&is_poison) {
        Some(0) => with.clone(),
        Some(k) => Answer::Value(i32::try_from(k).expect("few")),
        None => Answer::Value(0),
    }
}

/// Fails whole calls with `with` if there is a message in them that `is_poison`, as most consumers do.
pub fn failing_whole(is_poison: impl Fn(&Message) -> bool + Send, with: Answer) -> impl FnMut(&[Message]) -> Answer + Send {
    move |messages| if messages.iter().any(&is_poison) { with.clone() } else { Answer::Value(0) }
}

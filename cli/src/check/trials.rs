//! Calls that are timed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_protocol::endpoint::{CallError, EndpointCaller, EndpointMemory, EndpointOptions};
use hqueue_protocol::stored::StoredSlice;
use hqueue_protocol::wire::Dialect;
use serde::Serialize;

use super::{milliseconds, since};

const EMPTY_CALLS: usize = 20;
/// No more empty calls are made after so long.
const EMPTY_CALLS_END: Duration = Duration::from_secs(3);
/// As long as a detection waits for a reply: the endpoint has answered in it before. One that is slow has three times what it took.
const SECOND_CONNECTION: Duration = Duration::from_secs(1);

/// Round trips of empty calls, the first of which connects and is not counted.
#[derive(Debug, Serialize)]
pub(super) struct EmptyCalls {
    pub(super) calls: usize,
    pub(super) min_ms: f64,
    pub(super) median_ms: f64,
    /// More than one: it closes them between calls.
    pub(super) connections: u64,
}

impl EmptyCalls {
    /// The error says which answer was none.
    pub(super) async fn make(caller: &mut EndpointCaller) -> Result<Self, String> {
        let mut times = Vec::with_capacity(EMPTY_CALLS);
        let started = Instant::now();
        empty_call(caller).await?;
        while times.is_empty() || (times.len() < EMPTY_CALLS && started.elapsed() < EMPTY_CALLS_END) {
            let began = Instant::now();
            empty_call(caller).await?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let at = |index: usize| milliseconds(times.get(index).copied().unwrap_or_default());
        Ok(Self { calls: times.len(), min_ms: at(0), median_ms: at(times.len() / 2), connections: caller.connections() })
    }
}

async fn empty_call(caller: &mut EndpointCaller) -> Result<(), String> {
    match caller.consume(&[]).await {
        Ok(0) => Ok(()),
        Ok(other) => Err(format!("a call without messages was answered with {other}")),
        Err(error) => Err(error.to_string()),
    }
}

/// What becomes of an empty call while another connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SecondConnection {
    Served,
    /// It was made, and the call not answered: one at a time.
    Waits,
    /// It was not made, or closed.
    Refused,
}

impl SecondConnection {
    pub(super) async fn try_beside(address: &str, dialect: Dialect, took: Duration) -> Self {
        let options = EndpointOptions {
            transport: Some(dialect.transport),
            protocol: Some(dialect.protocol),
            call_timeout: SECOND_CONNECTION.max(took * 3),
            ..EndpointOptions::new(address)
        };
        match EndpointCaller::new(options, Arc::new(EndpointMemory::default())).consume(&[]).await {
            Ok(_) | Err(CallError::Exception { .. }) => Self::Served,
            Err(CallError::Timeout { .. }) => Self::Waits,
            Err(_) => Self::Refused,
        }
    }
}

/// One call with messages.
#[derive(Debug, Serialize)]
pub(super) struct Trial {
    pub(super) messages: u32,
    pub(super) bytes: usize,
    pub(super) ms: f64,
    /// The number that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<i32>,
    /// Why none came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Trial {
    pub(super) async fn make(caller: &mut EndpointCaller, messages: Option<StoredSlice>) -> Self {
        let batch: Vec<StoredSlice> = messages.into_iter().collect();
        let (messages, bytes) =
            batch.iter().fold((0, 0), |(count, bytes), slice| (count + slice.count, bytes + slice.bytes.len()));
        let began = Instant::now();
        let result = caller.consume(&batch).await;
        let (answer, error) = match result {
            Ok(answer) => (Some(answer), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { messages, bytes, ms: since(began), answer, error }
    }

    /// All of it is consumed, as a broker takes the answer.
    pub(super) fn is_consumed(&self) -> bool {
        match self.answer {
            Some(0) => true,
            Some(count) => u32::try_from(count) == Ok(self.messages),
            None => false,
        }
    }

    /// What a broker makes of it.
    pub(super) fn meaning(&self) -> String {
        match (self.answer, &self.error) {
            (_, Some(error)) => error.clone(),
            (Some(-1), _) => "answered with -1: failed".to_owned(),
            (Some(-2), _) => "answered with -2: busy, to be sent again later".to_owned(),
            (Some(-3), _) => "answered with -3: the first message is refused for good".to_owned(),
            (Some(0), _) => "answered with 0: all consumed".to_owned(),
            (Some(answer), _) => match u32::try_from(answer) {
                Ok(count) if count <= self.messages => format!("answered with {answer}: the first {count} consumed"),
                _ => format!("answered with {answer}, which means nothing and is taken for failed"),
            },
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_they_mean_to_a_broker() {
        let trial = |answer| Trial { messages: 10, bytes: 1, ms: 1.0, answer: Some(answer), error: None };
        for (answer, consumed, says) in [
            (0, true, "all consumed"),
            (10, true, "first 10"),
            (3, false, "first 3"),
            (11, false, "means nothing"),
            (-1, false, "failed"),
            (-2, false, "busy"),
            (-3, false, "refused for good"),
            (-4, false, "means nothing"),
        ] {
            let trial = trial(answer);
            assert_eq!(trial.is_consumed(), consumed, "{answer}");
            assert!(trial.meaning().contains(says) && trial.meaning().contains(&answer.to_string()), "{}", trial.meaning());
        }
    }
}

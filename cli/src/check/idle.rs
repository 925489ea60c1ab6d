//! What becomes of a connection without calls.

use std::time::{Duration, Instant};

use hqueue_protocol::endpoint::{CallError, EndpointCaller, IdleEnd};
use serde::Serialize;
use tokio::time::timeout;

use super::since;

#[derive(Debug, Serialize)]
pub(super) struct Idle {
    pub(super) connection: Fate,
    /// Until it ended, or until it was called.
    pub(super) after_ms: f64,
    /// What the call behind it ended with, if not with 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fate {
    Kept,
    /// By the server, while it was idle.
    Closed,
    /// By the server, when it was called.
    ClosedWhenCalled,
    /// The server sent something on it, without being called.
    SpokenOn,
    /// It is open, and calls on it are not answered.
    LeftOpen,
    Unknown,
}

impl Idle {
    /// Waits, no longer than until the connection ends, and calls.
    pub(super) async fn wait(mut caller: EndpointCaller, wait: Duration) -> Self {
        // A trial before it may have cost the connection.
        if let Err(error) = caller.consume(&[]).await {
            return Self { connection: Fate::Unknown, after_ms: 0.0, error: Some(error.to_string()) };
        }
        let (made, began) = (caller.connections(), Instant::now());
        let ended = timeout(wait, caller.idle_ends()).await.ok().flatten();
        let after_ms = since(began);
        let mut called = caller.consume(&[]).await;
        let connection = match &called {
            _ if ended == Some(IdleEnd::Closed) => Fate::Closed,
            _ if ended == Some(IdleEnd::Spoke) => Fate::SpokenOn,
            Err(CallError::Timeout { .. }) => Fate::LeftOpen,
            _ if caller.connections() > made => Fate::ClosedWhenCalled,
            Ok(_) | Err(CallError::Exception { .. }) => Fate::Kept,
            Err(_) => Fate::ClosedWhenCalled,
        };
        if connection == Fate::LeftOpen {
            called = caller.consume(&[]).await;
        }
        let error = match called {
            Ok(0) => None,
            Ok(other) => Some(format!("a call without messages was answered with {other}")),
            Err(error) => Some(error.to_string()),
        };
        Self { connection, after_ms, error }
    }
}

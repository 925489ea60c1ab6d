//! What `hqueue check` finds out of an endpoint: it is called as a broker calls it, by the same code and with the same times.
//!
//! ```text
//! detection by empty calls ── answered with 0 ──> Subscriber: second connection, round trips, and the trials that were asked for
//!          ├─ nothing, in no time ──────────> the same with more time: a Subscriber that is slow, else a Stranger
//!          └─ anything else ──────────────────> Stranger: what it looks like
//! ```

mod follows;
mod idle;
mod messages;
mod print;
mod stranger;
mod trials;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hqueue_protocol::duration::format;
use hqueue_protocol::endpoint::{CallError, EndpointCaller, EndpointMemory, EndpointOptions};
use hqueue_protocol::wire::{Dialect, Protocol, Transport};
use serde::Serialize;

use self::idle::Idle;
pub(crate) use self::print::{print_stranger, print_subscriber};
pub(crate) use self::stranger::Stranger;
use self::trials::{EmptyCalls, SecondConnection, Trial};
use crate::output::say;

/// For each answer of an endpoint that was silent for as long as a broker waits.
const SECOND_THOUGHT: Duration = Duration::from_secs(5);

/// What is tried. Without any of the trials nothing but empty calls is sent.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) address: String,
    pub(crate) call_timeout: Duration,
    /// So many small messages in one call.
    pub(crate) batch: Option<u32>,
    /// So many bytes in one call.
    pub(crate) large: Option<usize>,
    /// So long without a call.
    pub(crate) idle: Option<Duration>,
}

/// An endpoint that answers an empty call with 0.
#[derive(Debug, Serialize)]
pub(crate) struct Subscriber {
    pub(crate) address: String,
    transport: &'static str,
    protocol: &'static str,
    /// It was found only when it had more time than a broker gives it: so long took its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_after_ms: Option<f64>,
    empty_calls: EmptyCalls,
    second_connection: SecondConnection,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<Trial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    large: Option<Trial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<Idle>,
    /// What follows for a subscription's options, in words.
    follows: Vec<String>,
}

impl Plan {
    /// Calls the endpoint.
    pub(crate) async fn run(&self) -> Result<Subscriber, Stranger> {
        let options = self.options();
        let answer = match self.ask(&options).await {
            Ok(found) => return self.look_at(found, None).await,
            Err(answer) => answer,
        };
        let patience = SECOND_THOUGHT.min(self.call_timeout);
        let may_be_slow = patience > options.detect_timeout && matches!(answer, Err(CallError::Undetected { silent: true, .. }));
        let stranger = Stranger::of(&self.address, answer).await;
        if !may_be_slow || !stranger.is_unheard() {
            return Err(stranger);
        }
        say(format_args!(
            "{} has not answered yet; it is asked once more, with {} for each answer",
            self.address,
            format(patience)
        ));
        match self.ask(&EndpointOptions { detect_timeout: patience, ..options }).await {
            Ok(found) => {
                let took = found.took;
                self.look_at(found, Some(took)).await
            }
            Err(_) => Err(stranger),
        }
    }

    /// Finds out the dialect by an empty call. What is not answered with 0 is an error.
    async fn ask(&self, options: &EndpointOptions) -> Result<Found, Result<i32, CallError>> {
        let memory = Arc::new(EndpointMemory::default());
        let mut caller = EndpointCaller::new(options.clone(), Arc::clone(&memory));
        let answer = caller.consume(&[]).await;
        // Once more, in the dialect that is known now, for how long it takes.
        match (answer, memory.dialect()) {
            (Ok(0), Some(dialect)) => {
                let began = Instant::now();
                let again = caller.consume(&[]).await;
                let took = began.elapsed();
                if again == Ok(0) { Ok(Found { memory, caller, dialect, took }) } else { Err(again) }
            }
            (answer, _) => Err(answer),
        }
    }

    /// `slow`: how long an empty call takes, if that is too long for a broker's detection.
    async fn look_at(&self, found: Found, slow: Option<Duration>) -> Result<Subscriber, Stranger> {
        let Found { memory, caller, dialect, .. } = found;
        let second_connection = SecondConnection::try_beside(&self.address, dialect, slow.unwrap_or_default()).await;
        // Neither of those two connections is good for more if the server serves one at a time.
        drop(caller);
        let mut caller = EndpointCaller::new(self.options(), memory);
        let empty_calls = EmptyCalls::make(&mut caller).await.map_err(|error| Stranger::unsteady(&error))?;
        let batch = match self.batch {
            Some(count) => Some(Trial::make(&mut caller, messages::small(count)).await),
            None => None,
        };
        let large = match self.large {
            Some(bytes) => Some(Trial::make(&mut caller, messages::large(bytes)).await),
            None => None,
        };
        let idle = match self.idle {
            Some(wait) => Some(Idle::wait(caller, wait).await),
            None => None,
        };
        let (transport, protocol) = names(dialect);
        let found = Subscriber {
            address: self.address.clone(),
            transport,
            protocol,
            found_after_ms: slow.map(milliseconds),
            empty_calls,
            second_connection,
            batch,
            large,
            idle,
            follows: Vec::new(),
        };
        Ok(Subscriber { follows: follows::of(&found, self.call_timeout), ..found })
    }

    /// Those of a broker.
    fn options(&self) -> EndpointOptions {
        EndpointOptions { call_timeout: self.call_timeout, ..EndpointOptions::new(self.address.clone()) }
    }
}

/// An endpoint that has answered.
struct Found {
    memory: Arc<EndpointMemory>,
    caller: EndpointCaller,
    dialect: Dialect,
    /// By an empty call.
    took: Duration,
}

/// As the options of a subscription name them.
const fn names(dialect: Dialect) -> (&'static str, &'static str) {
    let transport = match dialect.transport {
        Transport::Buffered => "buffered",
        Transport::Framed => "framed",
    };
    let protocol = match dialect.protocol {
        Protocol::Binary => "binary",
        Protocol::Compact => "compact",
    };
    (transport, protocol)
}

/// Milliseconds with three digits behind the point: no clock here says more.
fn milliseconds(length: Duration) -> f64 {
    (length.as_secs_f64() * 1e6).round() / 1e3
}

fn since(began: Instant) -> f64 {
    milliseconds(began.elapsed())
}

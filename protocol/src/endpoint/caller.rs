//! Calls of `consumeMessages`, one at a time.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::connect::connect;
use super::connection::{Broken, Connection, IdleEnd};
use super::error::CallError;
use super::memory::{DIALECTS, EndpointMemory};
use super::options::EndpointOptions;
use super::reply::Answer;
use crate::pieces::Pieces;
use crate::stored::{StoredSlice, consume_call};
use crate::wire::{Dialect, Protocol, Transport, WireError};

/// A connection that was idle for so long and ends without a byte of a reply was closed for being idle, as far as anybody can tell.
const IDLE_CLOSE: Duration = Duration::from_millis(500);
/// A reset may be due to the size of calls that have at least so many bytes.
const LARGE_CALL: usize = 64 << 10;

/// Calls one endpoint over one connection, one call at a time. Between calls nothing runs: no task, no timer.
#[derive(Debug)]
pub struct EndpointCaller {
    options: EndpointOptions,
    memory: Arc<EndpointMemory>,
    idle: Option<Connection>,
    sequence: i32,
    connections: u64,
}

impl EndpointCaller {
    /// Connects with the first call. The memory is shared by all callers of one endpoint.
    #[must_use]
    pub fn new(options: EndpointOptions, memory: Arc<EndpointMemory>) -> Self {
        Self { options, memory, idle: None, sequence: 0, connections: 0 }
    }

    /// How many connections were made so far.
    #[must_use]
    pub const fn connections(&self) -> u64 {
        self.connections
    }

    /// Waits until the connection of the last call cannot be used again, because the endpoint closed it or sent what nobody asked for, and
    /// closes it: the next call makes another. `None` at once if there is none. Cancel-safe.
    pub async fn idle_ends(&mut self) -> Option<IdleEnd> {
        let end = self.idle.as_ref()?.ends().await;
        self.idle = None;
        Some(end)
    }

    /// Calls `consumeMessages` with the messages of `batch`, all of them of one partition; without any it asks whether the endpoint
    /// is there. Connects if there is no connection. A connection that was idle for 500 ms or more and ends before the first
    /// byte of a reply is replaced and the call sent again, once. Where such a connection had no answer in time, idle ones are replaced
    /// before they are used from then on.
    ///
    /// The time of a call: `connect_timeout` and `call_timeout`, both twice if the connection has to be replaced; where the dialect has
    /// to be found out, `connect_timeout` and `detect_timeout` for each that is tried before. What is returned is not checked against
    /// the number of messages.
    ///
    /// Not cancel-safe: a call that was dropped half-way leaves a connection that must be closed, and is.
    pub async fn consume(&mut self, batch: &[StoredSlice]) -> Result<i32, CallError> {
        let Some(connection) = self.usable() else { return self.call_anew(batch).await };
        let was_idle = connection.idle_for() >= IDLE_CLOSE;
        let dialect = connection.dialect;
        let called = self.call_over(connection, batch).await;
        if was_idle && matches!(called, Err(CallError::Timeout { .. })) {
            self.memory.left_idle();
        }
        match called? {
            Err(Broken::Ended { error, replied: false, .. }) if was_idle => {
                tracing::debug!(address = self.options.address, "an idle connection had ended and is replaced");
                self.call_anew(batch).await.map_err(|again| lost(again, error.as_ref()))
            }
            called => self.conclude(dialect, called),
        }
    }

    /// The connection of the last call, if it can be used again.
    fn usable(&mut self) -> Option<Connection> {
        let connection = self.idle.take()?;
        let left = connection.idle_for() >= IDLE_CLOSE && self.memory.leaves_idle();
        (!left && connection.is_quiet()).then_some(connection)
    }

    /// Calls over a connection that is made for it.
    async fn call_anew(&mut self, batch: &[StoredSlice]) -> Result<i32, CallError> {
        let connection = match self.known_dialect() {
            Some(dialect) => self.connect(dialect).await?,
            None => {
                let (connection, answer) = self.detect().await?;
                let dialect = connection.dialect;
                if batch.is_empty() {
                    self.idle = Some(connection);
                    return self.conclude(dialect, Ok(answer));
                }
                connection
            }
        };
        let dialect = connection.dialect;
        let called = self.call_over(connection, batch).await?;
        self.conclude(dialect, called)
    }

    /// The dialect that worked last, or the only one that the options leave.
    fn known_dialect(&self) -> Option<Dialect> {
        let mut left = DIALECTS.into_iter().filter(|dialect| self.options.allows(*dialect));
        let (first, second) = (left.next(), left.next());
        if second.is_none() { first } else { self.memory.dialect().filter(|dialect| self.options.allows(*dialect)) }
    }

    /// Finds out by empty calls, each over a connection of its own, which dialect is answered; an exception is an answer too.
    async fn detect(&mut self) -> Result<(Connection, Answer), CallError> {
        let (mut tried, mut reasons, mut silent) = (Vec::new(), Vec::new(), false);
        for dialect in self.memory.order() {
            if !self.options.allows(dialect) {
                continue;
            }
            let connected = self.connect(dialect).await;
            let mut connection = connected.inspect_err(|_| self.memory.went_away(&tried))?;
            let sequence = self.next_sequence();
            let call = self.encode(dialect, sequence, &[])?;
            let within = self.options.detect_timeout;
            let why = match timeout(within, connection.call(call, sequence)).await {
                Ok(Ok(answer)) => {
                    self.memory.works(dialect);
                    return Ok((connection, answer));
                }
                Ok(Err(Broken::Ended { error, .. })) => ended(error.as_ref()),
                Ok(Err(Broken::BadReply(reason))) => reason,
                Err(_) => {
                    silent = true;
                    format!("no answer within {within:?}")
                }
            };
            tried.push(dialect);
            reasons.push(format!("{}: {why}", Name(dialect)));
        }
        self.memory.stayed();
        Err(CallError::Undetected { address: self.options.address.clone(), tried: reasons.join("; "), silent })
    }

    async fn connect(&mut self, dialect: Dialect) -> Result<Connection, CallError> {
        let address = &self.options.address;
        let connected = connect(address, self.options.connect_timeout).await;
        let stream = connected.map_err(|reason| CallError::Connect { address: address.clone(), reason })?;
        self.connections = self.connections.saturating_add(1);
        Ok(Connection::new(stream, dialect))
    }

    /// One call over a connection, which is kept for the next one if it was answered. Otherwise, or when this is dropped half-way,
    /// it is closed: a late reply must not answer a later call.
    async fn call_over(
        &mut self,
        mut connection: Connection,
        batch: &[StoredSlice],
    ) -> Result<Result<Answer, Broken>, CallError> {
        let sequence = self.next_sequence();
        let call = self.encode(connection.dialect, sequence, batch)?;
        let within = self.options.call_timeout;
        let Ok(called) = timeout(within, connection.call(call, sequence)).await else {
            self.memory.doubt(connection.dialect);
            return Err(CallError::Timeout { address: self.options.address.clone(), after: within });
        };
        if called.is_ok() {
            self.memory.works(connection.dialect);
            self.idle = Some(connection);
        }
        Ok(called)
    }

    /// The bytes of a call; in the binary protocol those of the messages are shared, not copied.
    fn encode(&self, dialect: Dialect, sequence: i32, batch: &[StoredSlice]) -> Result<Pieces, CallError> {
        let pieces = consume_call(dialect, sequence, batch);
        let unsendable =
            |error: WireError| CallError::Unsendable { address: self.options.address.clone(), reason: error.to_string() };
        pieces.map(Pieces::from).map_err(unsendable)
    }

    fn next_sequence(&mut self) -> i32 {
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        self.sequence
    }

    /// What the broker is told. A call that was not answered casts doubt on the dialect.
    fn conclude(&self, dialect: Dialect, called: Result<Answer, Broken>) -> Result<i32, CallError> {
        if called.is_err() {
            self.memory.doubt(dialect);
        }
        let address = || self.options.address.clone();
        match called {
            Ok(Answer::Value(value)) => Ok(value),
            Ok(Answer::Exception(text)) => Err(CallError::Exception { address: address(), text }),
            Err(Broken::Ended { error: Some(_), sent, size, replied: false }) if size >= LARGE_CALL => {
                Err(CallError::Reset { address: address(), sent, size })
            }
            Err(Broken::Ended { error, .. }) => Err(CallError::Closed { address: address(), reason: ended(error.as_ref()) }),
            Err(Broken::BadReply(reason)) => Err(CallError::BadReply { address: address(), reason }),
        }
    }
}

/// A call was sent over the connection that had ended: that no other could be made does not undo it.
fn lost(again: CallError, error: Option<&io::Error>) -> CallError {
    match again {
        CallError::Connect { address, reason: connect } => CallError::Lost { address, reason: ended(error), connect },
        other => other,
    }
}

fn ended(error: Option<&io::Error>) -> String {
    error.map_or_else(|| "end of stream".to_owned(), io::Error::to_string)
}

struct Name(Dialect);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.0.transport, self.0.protocol) {
            (Transport::Buffered, Protocol::Binary) => "buffered binary",
            (Transport::Framed, Protocol::Binary) => "framed binary",
            (Transport::Buffered, Protocol::Compact) => "buffered compact",
            (Transport::Framed, Protocol::Compact) => "framed compact",
        })
    }
}

//! A subscriber's Thrift server: the generated processor on the stock library's transports and protocols, a thread a connection.
//! What it answers is scripted; every call is recorded.

mod answer;
mod connection;
mod record;
mod server;

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

pub use self::answer::{Answer, turns};
pub use self::record::Call;
use self::record::Record;
use self::server::{Server, Shared};
use crate::gateway::Dialect;
use crate::message::Message;
use crate::port::free_port;

/// A running consumer; it stops with its value.
pub struct Consumer {
    port: u16,
    shared: Arc<Shared>,
    server: Option<Server>,
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Consumer {
    /// One that consumes everything, buffered binary.
    #[must_use]
    pub fn start() -> Self {
        Self::speaking(Dialect::USUAL)
    }

    /// One that consumes everything in this dialect.
    #[must_use]
    pub fn speaking(dialect: Dialect) -> Self {
        let mut consumer = Self { port: free_port(), shared: Arc::new(Shared::new(dialect)), server: None };
        consumer.resume();
        consumer
    }

    /// One that answers as the script says; calls without messages are answered with 0 (unless it is frozen).
    #[must_use]
    pub fn answering(script: impl FnMut(&[Message]) -> Answer + Send + 'static) -> Self {
        let consumer = Self::start();
        consumer.answer_with(script);
        consumer
    }

    /// From now on answers as the script says.
    pub fn answer_with(&self, script: impl FnMut(&[Message]) -> Answer + Send + 'static) {
        self.shared.set_script(Box::new(script));
    }

    /// From now on consumes everything, and lets go of calls that hang.
    pub fn answer_all(&self) {
        self.answer_with(|_| Answer::Value(0));
        self.shared.release();
    }

    /// Answers nothing any more, not even calls without messages, like a process that was stopped; connections stay open and new ones
    /// are made.
    pub fn freeze(&self) {
        self.shared.freeze(true);
    }

    /// Goes on where it was frozen.
    pub fn thaw(&self) {
        self.shared.freeze(false);
    }

    /// `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Closes every connection and listens no more. What is recorded stays.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }

    /// Listens again on the same port.
    ///
    /// # Panics
    /// If it listens already, or the port is taken.
    pub fn resume(&mut self) {
        assert!(self.server.is_none(), "it is running");
        self.server = Some(Server::start(self.port, Arc::clone(&self.shared)));
    }

    /// Connections that are open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }

    /// How many connections were accepted since the start.
    #[must_use]
    pub fn connections_ever(&self) -> u64 {
        self.record().connections
    }

    /// Closes every connection and goes on listening, as servers do with idle ones.
    pub fn close_connections(&self) {
        self.shared.close_connections();
    }

    fn record(&self) -> std::sync::MutexGuard<'_, Record> {
        self.shared.record()
    }

    /// Calls with messages, in the order in which they came.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.record().calls.clone()
    }

    /// How many calls with messages there were.
    #[must_use]
    pub fn call_count(&self) -> usize {
        self.record().calls.len()
    }

    /// How many calls without messages there were.
    #[must_use]
    pub fn empty_calls(&self) -> usize {
        self.record().empty_calls
    }

    /// How many messages were accepted.
    #[must_use]
    pub fn count(&self) -> usize {
        self.record().accepted.len()
    }

    /// The messages that were accepted in answers that came in time.
    #[must_use]
    pub fn accepted(&self) -> Vec<Message> {
        self.record().accepted.clone()
    }

    /// The values of these, as text.
    ///
    /// # Panics
    /// If one is not UTF-8.
    #[must_use]
    pub fn values(&self) -> Vec<String> {
        self.record().accepted.iter().map(|m| m.text().to_owned()).collect()
    }

    /// Whether a message of this value was accepted.
    #[must_use]
    pub fn has(&self, value: &str) -> bool {
        self.record().accepted.iter().any(|m| m.value == value.as_bytes())
    }

    /// Forgets what was recorded.
    pub fn forget(&self) {
        *self.record() = Record::default();
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stop();
    }
}

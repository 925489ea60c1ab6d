//! The listener and what all connections share.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::answer::Answer;
use super::connection;
use super::record::Record;
use crate::gateway::Dialect;
use crate::message::Message;

pub(super) type Script = Box<dyn FnMut(&[Message]) -> Answer + Send>;

/// What the connections of a consumer have in common; outlives its server.
pub(super) struct Shared {
    pub(super) dialect: Dialect,
    script: Mutex<Script>,
    record: Mutex<Record>,
    streams: Mutex<HashMap<u64, TcpStream>>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

/// Who has to wait.
#[derive(Debug, Default)]
struct Gate {
    frozen: bool,
    /// Rises when calls that hang are let go.
    released: u64,
    /// Rises when a server stops.
    stopped: u64,
}

impl Shared {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            script: Mutex::new(Box::new(|_| Answer::Value(0))),
            record: Mutex::default(),
            streams: Mutex::default(),
            gate: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn set_script(&self, script: Script) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    pub(super) fn answer(&self, messages: &[Message]) -> Answer {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)(messages)
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn connections(&self) -> usize {
        self.streams().len()
    }

    pub(super) fn streams(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close_connections(&self) {
        for stream in self.streams().values() {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn freeze(&self, frozen: bool) {
        self.gate().frozen = frozen;
        self.changed.notify_all();
    }

    /// Lets go of calls that hang.
    pub(super) fn release(&self) {
        self.gate().released += 1;
        self.changed.notify_all();
    }

    /// Returns when it is not frozen, or its server stops.
    pub(super) fn wait_for_thaw(&self) {
        let gate = self.gate();
        let stopped = gate.stopped;
        let _gate = self.changed.wait_while(gate, |g| g.frozen && g.stopped == stopped);
    }

    /// Returns when calls that hang are let go, or the server stops, or `limit` is over.
    pub(super) fn hang(&self, limit: Option<Duration>) {
        let gate = self.gate();
        let (released, stopped) = (gate.released, gate.stopped);
        let waits = |g: &mut Gate| g.released == released && g.stopped == stopped;
        match limit {
            Some(limit) => drop(self.changed.wait_timeout_while(gate, limit, waits)),
            None => drop(self.changed.wait_while(gate, waits)),
        }
    }
}

/// A listener with its thread.
pub(super) struct Server {
    port: u16,
    shared: Arc<Shared>,
    stopping: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(super) fn start(port: u16, shared: Arc<Shared>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the consumer's port is free");
        let stopping = Arc::new(AtomicBool::new(false));
        let accepting = {
            let (shared, stopping) = (Arc::clone(&shared), Arc::clone(&stopping));
            std::thread::spawn(move || accept(&listener, &shared, &stopping))
        };
        Self { port, shared, stopping, accepting }
    }

    /// Closes everything; when it returns, nothing is answered any more.
    pub(super) fn stop(self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the accept.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        self.shared.close_connections();
        self.shared.gate().stopped += 1;
        self.shared.changed.notify_all();
        self.accepting.join().expect("the consumer's accept does not panic");
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, stopping: &Arc<AtomicBool>) {
    let mut connections = Vec::new();
    for number in 0.. {
        let accepted = listener.accept();
        if stopping.load(Ordering::SeqCst) {
            break;
        }
        match accepted {
            Ok((stream, _)) => {
                shared.record().connections += 1;
                let (shared, stopping) = (Arc::clone(shared), Arc::clone(stopping));
                connections.push(std::thread::spawn(move || connection::serve(number, stream, &shared, &stopping)));
            }
            // The next one may succeed; a connection that was reset before it was accepted is none.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    for connection in connections {
        connection.join().expect("a consumer's connection does not panic");
    }
}

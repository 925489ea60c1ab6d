//! The receiver of all sides: steps over what is pushed, checks it against the ledger, answers that it is taken.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::clock::Clock;
use super::dialect::Dialect;
use super::frames::Frames;
use super::latency::Latencies;
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::{Ledger, Stamp, Values};

/// What happens to a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Take,
    /// It is read, and not answered before the behaviour changes.
    Hold,
}

/// Serves on one or more ports of the loopback until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    acceptors: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    dialect: Arc<dyn Dialect>,
    ledger: Ledger,
    clock: Clock,
    behaviour: watch::Sender<Behaviour>,
    /// Messages that were taken, repetitions not counted.
    taken: watch::Sender<u64>,
    /// Pushes with messages that have arrived, answered or not.
    arrived: watch::Sender<u64>,
    /// When the last answer was written.
    answered_ns: AtomicU64,
    /// Of the first message of each push: from its stamp to its arrival.
    ages: Mutex<Latencies>,
}

impl Receiver {
    /// Listens on `ports` free ports.
    pub async fn listen(ports: usize, dialect: Arc<dyn Dialect>, ledger: Ledger, clock: Clock) -> Outcome<Self> {
        let shared = Arc::new(Shared {
            dialect,
            ledger,
            clock,
            behaviour: watch::Sender::new(Behaviour::Take),
            taken: watch::Sender::new(0),
            arrived: watch::Sender::new(0),
            answered_ns: AtomicU64::new(0),
            ages: Mutex::default(),
        });
        let mut receiver = Self { addresses: Vec::new(), shared, acceptors: Vec::new() };
        for _ in 0..ports {
            let listener = TcpListener::bind("127.0.0.1:0").await.doing(|| "opening the receiver's port".to_owned())?;
            receiver.addresses.push(listener.local_addr().doing(|| "asking for the receiver's port".to_owned())?);
            receiver.acceptors.push(tokio::spawn(accept(listener, Arc::clone(&receiver.shared))));
        }
        Ok(receiver)
    }

    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.behaviour.send_replace(behaviour);
    }

    /// Messages that were taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        *self.shared.taken.borrow()
    }

    /// Pushes with messages that have arrived so far.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        *self.shared.arrived.borrow()
    }

    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.shared.ledger.repeated()
    }

    /// When the last answer was written, by the driver's clock.
    #[must_use]
    pub fn answered_ns(&self) -> u64 {
        self.shared.answered_ns.load(Ordering::Acquire)
    }

    /// The ages that were noted since this was asked last.
    #[must_use]
    pub fn ages(&self) -> Latencies {
        std::mem::take(&mut self.shared.ages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until so many messages in all were taken and answered. An error if one was lost or out of order, or if nothing comes
    /// for `patience`.
    pub async fn wait_taken(&self, messages: u64, patience: Duration) -> Outcome<()> {
        self.wait(&self.shared.taken, messages, "messages", patience).await?;
        self.shared.ledger.check()
    }

    /// Waits until so many pushes in all have arrived.
    pub async fn wait_arrived(&self, pushes: u64, patience: Duration) -> Outcome<()> {
        self.wait(&self.shared.arrived, pushes, "pushes", patience).await
    }

    async fn wait(&self, count: &watch::Sender<u64>, wanted: u64, what: &str, patience: Duration) -> Outcome<()> {
        let mut counts = count.subscribe();
        loop {
            self.shared.ledger.check()?;
            let now = *counts.borrow_and_update();
            if now >= wanted {
                return Ok(());
            }
            if timeout(patience, counts.changed()).await.is_err() {
                return Err(Failure::Invalid(format!("{now} of {wanted} {what} came, and nothing more for {patience:?}")));
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        for acceptor in &self.acceptors {
            acceptor.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A side that is ended leaves its connections: what matters is what had arrived.
            let _ = serve(socket, &shared).await;
        });
    }
}

async fn serve(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (reader, mut writer) = socket.into_split();
    let mut frames = Frames::new(reader);
    let mut behaviour = shared.behaviour.subscribe();
    let mut answer = Vec::new();
    while frames.next().await? {
        let arrival = shared.clock.now_ns();
        if shared.holds_messages(frames.body()) {
            shared.arrived.send_modify(|pushes| *pushes += 1);
            tokio::select! {
                _ = behaviour.wait_for(|now| *now == Behaviour::Take) => {}
                () = frames.ended() => return Ok(()),
            }
        }
        let new = shared.take(frames.body(), arrival);
        answer.clear();
        if let Err(failure) = shared.dialect.answer_push(frames.body(), &mut answer) {
            shared.ledger.fault(failure.to_string());
        }
        writer.write_all(&answer).await?;
        shared.answered_ns.fetch_max(shared.clock.now_ns(), Ordering::AcqRel);
        if new > 0 {
            shared.taken.send_modify(|taken| *taken += new);
        }
    }
    Ok(())
}

impl Shared {
    fn holds_messages(&self, body: &[u8]) -> bool {
        let mut any = false;
        self.dialect.read_push(body, &mut |_, count| any |= count > 0).is_ok_and(|()| any)
    }

    /// Notes every message; returns how many are new.
    fn take(&self, body: &[u8], arrival: u64) -> u64 {
        let mut new = 0;
        let mut oldest = None;
        let read = self.dialect.read_push(body, &mut |messages, count| {
            for value in Values::new(messages, count) {
                match value.map(Stamp::read) {
                    Ok(Some(stamp)) => {
                        oldest.get_or_insert(stamp.sent_ns);
                        new += u64::from(self.ledger.note(stamp));
                    }
                    Ok(None) => self.ledger.fault("a value that nobody put".to_owned()),
                    Err(error) => self.ledger.fault(error.to_string()),
                }
            }
        });
        if let Err(failure) = read {
            self.ledger.fault(failure.to_string());
        }
        if let Some(sent) = oldest {
            self.ages.lock().unwrap_or_else(PoisonError::into_inner).note(arrival.saturating_sub(sent));
        }
        new
    }
}

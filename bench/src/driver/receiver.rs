//! The receiver of sides that push over connections of their own: steps over what is pushed, checks it, answers that it is taken.

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::clock::Clock;
use super::dialect::Dialect;
use super::frames::Frames;
use super::intake::{Ages, Intake};
use crate::failure::{Doing, Outcome};
use crate::messages::{Ledger, Values};

/// Serves on one or more ports of the loopback until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    addresses: Vec<SocketAddr>,
    intake: Arc<Intake>,
    acceptors: Vec<JoinHandle<()>>,
}

impl Receiver {
    /// Listens on `ports` free ports, with an intake of its own.
    pub async fn listen(ports: usize, dialect: Arc<dyn Dialect>, ledger: Ledger, clock: Clock) -> Outcome<Self> {
        Self::listen_for(Arc::new(Intake::new(ledger, clock, Ages::First)), ports, dialect).await
    }

    /// Listens on `ports` free ports for this intake.
    pub async fn listen_for(intake: Arc<Intake>, ports: usize, dialect: Arc<dyn Dialect>) -> Outcome<Self> {
        let mut receiver = Self { addresses: Vec::new(), intake, acceptors: Vec::new() };
        for _ in 0..ports {
            let listener = TcpListener::bind("127.0.0.1:0").await.doing(|| "opening the receiver's port".to_owned())?;
            receiver.addresses.push(listener.local_addr().doing(|| "asking for the receiver's port".to_owned())?);
            receiver.acceptors.push(tokio::spawn(accept(listener, Arc::clone(&receiver.intake), Arc::clone(&dialect))));
        }
        Ok(receiver)
    }

    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Deref for Receiver {
    type Target = Intake;

    fn deref(&self) -> &Intake {
        &self.intake
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        for acceptor in &self.acceptors {
            acceptor.abort();
        }
    }
}

async fn accept(listener: TcpListener, intake: Arc<Intake>, dialect: Arc<dyn Dialect>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (intake, dialect) = (Arc::clone(&intake), Arc::clone(&dialect));
        connections.spawn(async move {
            // A side that is ended leaves its connections: what matters is what had arrived.
            let _ = serve(socket, &intake, &*dialect).await;
        });
    }
}

async fn serve(socket: TcpStream, intake: &Intake, dialect: &dyn Dialect) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (reader, mut writer) = socket.into_split();
    let mut frames = Frames::new(reader);
    let mut answer = Vec::new();
    while frames.next().await? {
        let arrival = intake.now_ns();
        if holds_messages(dialect, frames.body()) {
            tokio::select! {
                () = intake.welcome() => {}
                () = frames.ended() => return Ok(()),
            }
        }
        let new = take(intake, dialect, frames.body(), arrival);
        answer.clear();
        if let Err(failure) = dialect.answer_push(frames.body(), &mut answer) {
            intake.fault(failure.to_string());
        }
        writer.write_all(&answer).await?;
        intake.acknowledged(new);
    }
    Ok(())
}

fn holds_messages(dialect: &dyn Dialect, body: &[u8]) -> bool {
    let mut any = false;
    dialect.read_push(body, &mut |_, count| any |= count > 0).is_ok_and(|()| any)
}

/// Notes every message; returns how many are new.
fn take(intake: &Intake, dialect: &dyn Dialect, body: &[u8], arrival: u64) -> u64 {
    let mut new = 0;
    let read = dialect.read_push(body, &mut |messages, count| {
        let values = Values::new(messages, count).filter_map(|value| match value {
            Ok(value) => Some(value),
            Err(error) => {
                intake.fault(error.to_string());
                None
            }
        });
        new += intake.take(values, arrival);
    });
    if let Err(failure) = read {
        intake.fault(failure.to_string());
    }
    new
}

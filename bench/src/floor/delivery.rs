//! Pushing: one task, one connection, one call in flight a partition.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Put, vectored};

/// Bytes of a call, unless one put is larger.
const MAX_CALL: usize = 1 << 20;

/// What is safe and was not pushed yet.
#[derive(Debug, Default)]
pub(super) struct Partition {
    safe: Mutex<VecDeque<Put>>,
    wake: Notify,
}

impl Partition {
    pub(super) fn push(&self, put: Put) {
        self.safe.lock().unwrap_or_else(PoisonError::into_inner).push_back(put);
        self.wake.notify_one();
    }

    /// The next puts, at least one, up to [`MAX_CALL`] bytes.
    async fn take(&self) -> Vec<Put> {
        loop {
            {
                let mut safe = self.safe.lock().unwrap_or_else(PoisonError::into_inner);
                let mut bytes = 0;
                let fits = |put: &&Put| {
                    bytes += put.frame.len();
                    bytes <= MAX_CALL
                };
                let count = safe.iter().take_while(fits).count().max(1).min(safe.len());
                if count > 0 {
                    return safe.drain(..count).collect();
                }
            }
            self.wake.notified().await;
        }
    }
}

pub(super) async fn deliver(partition: Arc<Partition>, receiver: SocketAddr) {
    if let Err(error) = push_all(&partition, receiver).await {
        eprintln!("floor: pushing to {receiver}: {error}");
    }
}

async fn push_all(partition: &Partition, receiver: SocketAddr) -> io::Result<()> {
    let mut socket = TcpStream::connect(receiver).await?;
    socket.set_nodelay(true)?;
    let mut answer = [0; 8];
    loop {
        let puts = partition.take().await;
        let bytes: usize = puts.iter().map(|put| put.frame.len()).sum();
        let length = u32::try_from(bytes).map_err(io::Error::other)?.to_be_bytes();
        let mut pieces = vec![IoSlice::new(&length)];
        pieces.extend(puts.iter().map(|put| IoSlice::new(&put.frame)));
        vectored::send_all(&mut socket, &mut pieces).await?;
        socket.read_exact(&mut answer).await?;
    }
}

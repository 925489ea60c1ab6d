//! One connection to an endpoint, and one call on it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::reply::{Answer, ReplyReader};
use crate::pieces::Pieces;
use crate::wire::Dialect;

/// Room for a reply of the usual size, in bytes.
const REPLY_BYTES: usize = 512;

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    pub(super) dialect: Dialect,
    received: BytesMut,
    /// When the last call on it ended.
    used: Instant,
}

/// How a connection without a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleEnd {
    /// The endpoint closed it, or it broke.
    Closed,
    /// The endpoint sent what nobody had asked for.
    Spoke,
}

/// How a call ended without an answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection broke; `error` is `None` if the peer closed it in order.
    Ended {
        error: Option<io::Error>,
        sent: usize,
        size: usize,
        replied: bool,
    },
    BadReply(String),
}

impl Connection {
    pub(super) fn new(stream: TcpStream, dialect: Dialect) -> Self {
        Self { stream, dialect, received: BytesMut::new(), used: Instant::now() }
    }

    pub(super) fn idle_for(&self) -> Duration {
        self.used.elapsed()
    }

    /// May it be used again? Not if the peer has closed it or sent what nobody asked for: then it can only be closed, since a byte of that
    /// is gone. Needs no system call as long as nothing came.
    pub(super) fn is_quiet(&self) -> bool {
        self.received.is_empty()
            && matches!(self.stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until it is not quiet any more. Cancel-safe: what came stays where it is.
    pub(super) async fn ends(&self) -> IdleEnd {
        if !self.received.is_empty() {
            return IdleEnd::Spoke;
        }
        match self.stream.peek(&mut [0]).await {
            Ok(0) | Err(_) => IdleEnd::Closed,
            Ok(_) => IdleEnd::Spoke,
        }
    }

    /// Sends a call and waits for its reply. Not cancel-safe: afterwards the connection can only be closed.
    pub(super) async fn call(&mut self, mut call: Pieces, sequence: i32) -> Result<Answer, Broken> {
        let size = call.len();
        while !call.is_empty() {
            let written = poll_fn(|cx| call.poll_write(Pin::new(&mut self.stream), cx)).await;
            let sent = size - call.len();
            written.map_err(|error| Broken::Ended { error: Some(error), sent, size, replied: false })?;
        }
        let mut reader = ReplyReader::new(self.dialect, sequence);
        loop {
            self.received.reserve(REPLY_BYTES);
            let read = self.stream.read_buf(&mut self.received).await;
            let replied = !self.received.is_empty();
            let ended = |error| Broken::Ended { error, sent: size, size, replied };
            match read {
                Err(error) => return Err(ended(Some(error))),
                Ok(0) => return Err(ended(None)),
                Ok(_) => {}
            }
            if let Some((answer, end)) = reader.advance(&self.received).map_err(Broken::BadReply)? {
                // What stands behind the answer stays, so that the connection is not quiet any more.
                let _ = self.received.split_to(end);
                self.used = Instant::now();
                return Ok(answer);
            }
        }
    }
}

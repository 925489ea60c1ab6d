//! A producer's connection to a side.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::dialect::Dialect;
use super::frames::Frames;
use super::producer::Load;
use crate::failure::{Doing, Failure, Outcome};
use crate::messages::{PutTemplate, Stamp};
use crate::sides::queue_name;

/// Where a put goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub queue: u16,
    /// Of the queue.
    pub partition: u16,
}

/// A producer's connection: puts go out in order, and are answered in order.
pub trait Link: Debug + Send {
    /// Sends a put whose messages are numbered from `first`, without waiting for its answer.
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>>;

    /// Waits until the oldest put is answered: acknowledged as the class of durability says. How many puts were answered together.
    ///
    /// Cancel safe: what was answered is not forgotten when the future is dropped.
    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>>;
}

/// A connection that speaks in frames which are encoded once and stamped anew.
#[derive(Debug)]
pub struct FrameLink {
    writer: OwnedWriteHalf,
    frames: Frames<OwnedReadHalf>,
    dialect: Arc<dyn Dialect>,
    /// One a queue.
    templates: Vec<PutTemplate>,
}

impl FrameLink {
    pub async fn connect(to: SocketAddr, dialect: Arc<dyn Dialect>, load: &Load) -> Outcome<Self> {
        let socket = TcpStream::connect(to).await.doing(|| format!("connecting to {to}"))?;
        socket.set_nodelay(true).doing(|| "setting up a connection".to_owned())?;
        let (reader, writer) = socket.into_split();
        let templates = (0..load.queues).map(|queue| dialect.put(&queue_name(queue), load.shape)).collect();
        Ok(Self { writer, frames: Frames::new(reader), templates, dialect })
    }

    async fn send_put(&mut self, place: Place, first: Stamp) -> Outcome<()> {
        let Some(template) = self.templates.get_mut(usize::from(place.queue)) else {
            return Err(Failure::Side(format!("no queue {}", place.queue)));
        };
        self.writer.write_all(template.stamped(place.partition, first)).await.doing(|| "sending a put".to_owned())
    }

    async fn next_answers(&mut self) -> Outcome<usize> {
        let mut answers = 0;
        loop {
            // What comes first may be waited for; whatever else is here already is only read.
            if !self.frames.next().await.doing(|| "reading the answer to a put".to_owned())? {
                return Err(Failure::Side("the connection was closed in the middle of a put".to_owned()));
            }
            self.dialect.check_answer(self.frames.body())?;
            answers += 1;
            if !self.frames.has_next() {
                return Ok(answers);
            }
        }
    }
}

impl Link for FrameLink {
    fn send(&mut self, place: Place, first: Stamp) -> BoxFuture<'_, Outcome<()>> {
        Box::pin(self.send_put(place, first))
    }

    fn answered(&mut self) -> BoxFuture<'_, Outcome<usize>> {
        Box::pin(self.next_answers())
    }
}

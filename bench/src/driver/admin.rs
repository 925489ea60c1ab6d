//! The calls that set HQueue up.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hqueue_protocol::generated::{TQueueSpec, TSubscriberSpec};
use hqueue_protocol::rpc::{AddSubscriber, AddSubscriberArgs, CreateQueue, CreateQueueArgs, Method};
use hqueue_protocol::wire::header::{self, MessageHeader};
use hqueue_protocol::wire::{MessageType, Protocol};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::frames::Frames;
use crate::failure::{Doing, Failure, Outcome};

/// A connection to a broker, one call at a time.
#[derive(Debug)]
pub struct Admin {
    writer: OwnedWriteHalf,
    frames: Frames<OwnedReadHalf>,
}

impl Admin {
    pub async fn connect(to: SocketAddr) -> Outcome<Self> {
        let socket = TcpStream::connect(to).await.doing(|| format!("connecting to {to}"))?;
        socket.set_nodelay(true).doing(|| "setting up a connection".to_owned())?;
        let (reader, writer) = socket.into_split();
        Ok(Self { writer, frames: Frames::new(reader) })
    }

    /// Makes a queue that keeps its messages for a day.
    pub async fn create_queue(&mut self, name: &str, partitions: u16) -> Outcome<()> {
        let spec = TQueueSpec {
            name: Some(name.as_bytes().to_vec()),
            partitions: Some(i32::from(partitions)),
            ttl_seconds: Some(86_400),
            configuration: Some(BTreeMap::new()),
            ..TQueueSpec::default()
        };
        self.call::<CreateQueue>(&CreateQueueArgs { spec }).await.map(drop)
    }

    /// Adds a subscriber of these partitions (none: of all) with fixed endpoints that speak framed binary. It begins at the oldest message.
    pub async fn subscribe(&mut self, queue: &str, name: &str, partitions: Vec<i16>, endpoints: &[SocketAddr]) -> Outcome<()> {
        let options = [("transport", "framed"), ("protocol", "binary"), ("call-timeout", "10m")];
        let spec = TSubscriberSpec {
            name: Some(name.as_bytes().to_vec()),
            addresses: Some(endpoints.iter().map(ToString::to_string).collect()),
            topics: Some(Vec::new()),
            partitions: Some(partitions),
            start_position: Some("earliest".to_owned()),
            options: Some(options.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        };
        self.call::<AddSubscriber>(&AddSubscriberArgs { queue_name: queue.as_bytes().to_vec(), spec }).await
    }

    async fn call<M: Method>(&mut self, args: &M::Args) -> Outcome<M::Success> {
        let mut call = vec![0; 4];
        let header = MessageHeader { method: M::NAME.as_bytes(), message_type: MessageType::Call, sequence: 1 };
        header::write(&mut call, Protocol::Binary, &header);
        call.extend_from_slice(&M::encode_args(Protocol::Binary, args));
        let length = u32::try_from(call.len() - 4).unwrap_or(u32::MAX);
        if let Some(prefix) = call.first_chunk_mut() {
            *prefix = length.to_be_bytes();
        }
        self.writer.write_all(&call).await.doing(|| format!("calling {}", M::NAME))?;
        if !self.frames.next().await.doing(|| format!("reading the answer of {}", M::NAME))? {
            return Err(Failure::Side(format!("{}: the connection was closed", M::NAME)));
        }
        let bad = |reason: String| Failure::Side(format!("{}: {reason}", M::NAME));
        let (header, end) = header::read(Protocol::Binary, self.frames.body()).map_err(|error| bad(error.to_string()))?;
        let body = self.frames.body().get(end..).unwrap_or_default();
        if header.message_type != MessageType::Reply {
            return Err(bad(format!("an exception: {}", String::from_utf8_lossy(body))));
        }
        let result = M::decode_result(Protocol::Binary, body).map_err(|error| bad(error.to_string()))?;
        result.map_err(|error| bad(error.message.unwrap_or_default()))
    }
}

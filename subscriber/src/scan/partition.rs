//! Reads one partition.

use std::collections::VecDeque;

use bytes::Bytes;
use hqueue_protocol::client::{PendingCall, RpcClient};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::rpc::{
    MessageScannerClose, MessageScannerCloseArgs, MessageScannerGetList, MessageScannerGetListArgs, MessageScannerOpen,
    MessageScannerOpenArgs, Method,
};
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encoding, Kind, Protocol};

use super::Scan;
use crate::error::{Error, ErrorCode};
use crate::message::Message;

/// Messages asked for at once, unless the caller wants fewer. The broker gives 8 MiB at most.
const BATCH: usize = 1000;

/// Returns the messages of a partition in order, up to the newest. Later messages may follow: after the end it can be asked again.
///
/// The broker closes a scanner that was not used for 60 s, and forgets it when it is restarted; then it is opened anew behind the
/// last message, once for each request.
#[derive(Debug)]
pub struct PartitionScanner {
    client: RpcClient,
    queue: String,
    partition: i16,
    scan: Scan,
    /// The broker's number for it, while it is open.
    open: Option<i32>,
    /// Came and was not returned yet.
    buffer: VecDeque<Message>,
    /// The request for what comes behind `buffer`, on its way while the caller works.
    ahead: Option<PendingCall>,
    /// The last message that came.
    last: Option<MessageId>,
}

impl PartitionScanner {
    pub(crate) fn new(client: RpcClient, queue: &str, partition: i16, scan: Scan) -> Self {
        let queue = queue.to_owned();
        Self { client, queue, partition, scan, open: None, buffer: VecDeque::new(), ahead: None, last: None }
    }

    /// The next message; `None` at the end.
    ///
    /// Cancel-safe, as is everything here: what a dropped future had asked for is asked for again.
    pub async fn next(&mut self) -> Result<Option<Message>, Error> {
        if self.buffer.is_empty() {
            self.fill(BATCH).await?;
        }
        Ok(self.buffer.pop_front())
    }

    /// The next messages, `max` at most; empty at the end, or if `max` is 0.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Message>, Error> {
        if self.buffer.is_empty() && max > 0 {
            self.fill(max.min(BATCH)).await?;
        }
        Ok(self.buffer.drain(..max.min(self.buffer.len())).collect())
    }

    /// Releases it at the broker, which would else do so 60 s later.
    pub async fn close(mut self) {
        let Some(id) = self.open.take() else { return };
        if let Err(error) = self.client.call::<MessageScannerClose>(&MessageScannerCloseArgs { id }).await {
            tracing::debug!(queue = self.queue, partition = self.partition, %error, "a scanner could not be closed");
        }
    }

    async fn fill(&mut self, count: usize) -> Result<(), Error> {
        let messages = match self.fetch(count).await {
            Err(error) if self.open.is_some() && is_gone(&error) => {
                self.open = None;
                self.fetch(count).await?
            }
            other => other?,
        };
        // Whoever reads a second whole batch will read a third.
        let goes_on = self.last.is_some() && count == BATCH && !messages.is_empty();
        self.last = messages.last().map(|m| m.id).or(self.last);
        self.buffer.extend(messages);
        if goes_on {
            self.read_ahead().await;
        }
        Ok(())
    }

    async fn fetch(&mut self, count: usize) -> Result<Vec<Message>, Error> {
        let call = match self.ahead.take() {
            Some(call) => call,
            None => self.request(count).await?,
        };
        // Of a request whose reply was not seen nobody knows how far it has moved the broker's scanner.
        let open = self.open.take();
        let body = match call.reply().await {
            Ok(body) => body,
            Err(error) => {
                self.open = open;
                return Err(error.into());
            }
        };
        let messages = read_messages(&body);
        self.open = open;
        messages
    }

    async fn request(&mut self, count: usize) -> Result<PendingCall, Error> {
        let id = match self.open {
            Some(id) => id,
            None => {
                let start = self.last.map_or(self.scan.start, |last| Some(last.successor()));
                let args = MessageScannerOpenArgs {
                    queue_name: self.queue.clone().into_bytes(),
                    partition: self.partition,
                    scan: self.scan.on_the_wire(start),
                };
                *self.open.insert(self.client.call::<MessageScannerOpen>(&args).await?)
            }
        };
        let args = MessageScannerGetListArgs { id, nb_messages: i32::try_from(count).unwrap_or(i32::MAX) };
        let args = MessageScannerGetList::encode_args(Protocol::Binary, &args);
        Ok(self.client.start(MessageScannerGetList::NAME, args.into()).await?)
    }

    /// An error here is met again when the messages are needed.
    async fn read_ahead(&mut self) {
        if self.open.is_some() {
            self.ahead = self.request(BATCH).await.ok();
        }
    }
}

/// The broker has no such scanner any more, or it cannot be known how far it has come.
fn is_gone(error: &Error) -> bool {
    match error {
        Error::Refused { code, .. } => *code == ErrorCode::NotFound,
        Error::Unknown(_) | Error::NotSent(_) => true,
        _ => false,
    }
}

/// Reads the result of `messageScannerGetList` without copying values.
fn read_messages(body: &Bytes) -> Result<Vec<Message>, Error> {
    let bad = |reason: String| Error::bad_reply(MessageScannerGetList::NAME, reason);
    let mut at = 0;
    match Binary::field(body, &mut at, 0) {
        Ok(Some(field)) if (field.id, field.kind) == (0, Kind::List) => {
            Message::read_list(body, &mut at).map_err(|e| bad(e.to_string()))
        }
        _ => match MessageScannerGetList::decode_result(Protocol::Binary, body).map_err(|e| bad(e.to_string()))? {
            Err(refusal) => Err(hqueue_protocol::client::ClientError::from(refusal).into()),
            Ok(_) => Err(bad("the result does not come first".to_owned())),
        },
    }
}

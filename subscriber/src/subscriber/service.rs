//! Answers `consumeMessages`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hqueue_protocol::rpc::{ConsumeMessages, Method};
use hqueue_protocol::server::{Call, Reply, ReplyFuture, Service};
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encoding, Kind, Protocol, skip};
use tokio_util::task::TaskTracker;

use crate::listener::{Failure, Listeners};
use crate::message::Message;

/// Nothing is consumed, the call comes again.
const FAILED: i32 = -1;

/// The subscriber's side of the calls that a broker makes.
#[derive(Debug)]
pub(super) struct SubscriberService {
    shared: Arc<Shared>,
    /// Calls run to their end in tasks of their own: a listener is not dropped half-way because its caller went away.
    calls: TaskTracker,
}

#[derive(Debug)]
struct Shared {
    /// For the log.
    name: String,
    listeners: Listeners,
    /// Held while messages of a partition are consumed. As many as there are partitions.
    partitions: Mutex<HashMap<i16, Arc<tokio::sync::Mutex<()>>>>,
}

impl SubscriberService {
    pub(super) fn new(name: String, listeners: Listeners, calls: TaskTracker) -> Self {
        Self { shared: Arc::new(Shared { name, listeners, partitions: Mutex::default() }), calls }
    }
}

impl Service for SubscriberService {
    fn overlaps(&self, _: &[u8]) -> bool {
        false
    }

    fn call(&self, call: Call) -> ReplyFuture {
        if call.method != ConsumeMessages::NAME.as_bytes() {
            return Box::pin(std::future::ready(Reply::UnknownMethod));
        }
        let messages = match read_messages(&call) {
            Ok(messages) => messages,
            Err(reason) => return Box::pin(std::future::ready(Reply::BadArguments(reason))),
        };
        let shared = Arc::clone(&self.shared);
        let consumed = self.calls.spawn(async move { shared.consume(&messages).await });
        Box::pin(async move {
            // It catches the panics of listeners, and is never aborted.
            let result = consumed.await.unwrap_or(FAILED);
            Reply::Result(vec![ConsumeMessages::encode_result(call.protocol, &Ok(result)).into()])
        })
    }
}

/// The messages of a call. None, if the list is absent.
fn read_messages(call: &Call) -> Result<Vec<Message>, String> {
    if call.protocol == Protocol::Compact {
        let args = ConsumeMessages::decode_args(call.protocol, &call.args).map_err(|error| error.to_string())?;
        return Ok(args.messages.into_iter().map(Message::from).collect());
    }
    let (mut messages, mut at) = (Vec::new(), 0);
    let bad = |error: hqueue_protocol::wire::WireError| error.to_string();
    while let Some(field) = Binary::field(&call.args, &mut at, 0).map_err(bad)? {
        match (field.id, field.kind) {
            (1, Kind::List) => messages = Message::read_list(&call.args, &mut at).map_err(bad)?,
            (_, kind) => skip::<Binary>(&call.args, &mut at, kind, 1).map_err(bad)?,
        }
    }
    Ok(messages)
}

impl Shared {
    async fn consume(&self, messages: &[Message]) -> i32 {
        let Some(first) = messages.first() else { return 0 };
        // A call that the broker has given up may still be running when its messages come again.
        let partition = Arc::clone(self.lock().entry(first.partition).or_default());
        let _in_order = partition.lock().await;
        match self.listeners.consume(messages).await {
            Ok(()) => 0,
            Err(Failure { consumed, reason }) => {
                let id = messages.get(consumed).map(|m| m.id.to_string()).unwrap_or_default();
                tracing::warn!(subscriber = self.name, partition = first.partition, id, reason, "a message was not consumed");
                if consumed == 0 { FAILED } else { i32::try_from(consumed).unwrap_or(FAILED) }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i16, Arc<tokio::sync::Mutex<()>>>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

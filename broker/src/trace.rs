//! Messages on their way, for those who trace them: events with the `traceparent` header of W3C Trace Context that a producer has added.
//!
//! Off unless the log asks for it (`HQUEUE_LOG=hqueue_broker::trace=debug`): headers are not looked at otherwise.

use hqueue_protocol::generated::TMessage;
use hqueue_protocol::stored::{PutBatch, StoredMessage, StoredSlice};
use hqueue_storage::store::IdRuns;
use thrift::protocol::{TBinaryInputProtocol, TSerializable};

const HEADER: &str = "traceparent";

fn is_off() -> bool {
    !tracing::enabled!(tracing::Level::DEBUG)
}

/// The traces that the messages of a put belong to, each with the message's place in it. Takes no memory unless somebody traces.
#[derive(Debug, Default)]
pub struct Parents(Vec<(usize, String)>);

impl Parents {
    #[must_use]
    pub fn of(batch: &PutBatch) -> Self {
        if is_off() {
            return Self::default();
        }
        let messages = batch.messages().flatten().enumerate();
        Self(messages.filter_map(|(place, message)| Some((place, traceparent(&message)?))).collect())
    }

    /// The put is durable, and about to be acknowledged.
    pub fn put(&self, queue: &str, partition: i16, ids: &IdRuns) {
        let mut parents = self.0.iter().peekable();
        if parents.peek().is_none() {
            return;
        }
        for (place, id) in ids.iter().enumerate() {
            if let Some((_, parent)) = parents.next_if(|(of, _)| *of == place) {
                let span = tracing::debug_span!("put", traceparent = parent, queue);
                let _in = span.enter();
                tracing::debug!(partition, %id, "put");
            }
        }
    }
}

/// A batch was sent to an endpoint, or is about to be.
pub fn pushed(queue: &str, subscriber: &str, endpoint: &str, slices: &[StoredSlice]) {
    if is_off() {
        return;
    }
    for message in slices.iter().flat_map(StoredSlice::messages).flatten() {
        if let Some(parent) = traceparent(&message) {
            let span = tracing::debug_span!("push", traceparent = parent, queue, subscriber);
            let _in = span.enter();
            tracing::debug!(partition = message.partition, id = %message.id, endpoint, "pushed");
        }
    }
}

fn traceparent(message: &StoredMessage<'_>) -> Option<String> {
    let decoded = TMessage::read_from_in_protocol(&mut TBinaryInputProtocol::new(message.raw, true)).ok()?;
    String::from_utf8(decoded.headers?.remove(HEADER)?).ok()
}

//! Puts: from the arguments' bytes into the store's next commit.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hqueue_protocol::generated::{HQueueError, TMessageID, TPutResult};
use hqueue_protocol::rpc::{self, Method};
use hqueue_protocol::server::{Call, Reply, ReplyFuture};
use hqueue_protocol::stored::{PutError, PutRequest, PutShape, queue_of_put, read_put};
use hqueue_protocol::wire::Protocol;
use hqueue_storage::store::{Append, StoreError};

use super::service::{Gateway, bad_arguments};
use crate::catalog::Queue;
use crate::refusal::Refusal;

/// The result struct of a void method that succeeded: just its end.
const VOID_RESULT: Bytes = Bytes::from_static(&[0]);

/// A put that the store has taken.
struct Taken {
    queue: Arc<Queue>,
    partition: i16,
    messages: u64,
    bytes: u64,
    /// `None`: there was nothing to put.
    append: Option<Append>,
}

/// Steps over the arguments into the next commit before it returns; the reply comes when that is durable.
pub(super) fn put(gateway: &Gateway, call: &Call, shape: PutShape) -> ReplyFuture {
    let protocol = call.protocol;
    let for_ids = &*call.method == rpc::PutMessagesForIds::NAME.as_bytes();
    let request = match read_put(protocol, &call.args, shape, gateway.options.max_message_bytes) {
        Ok(request) => request,
        Err(error) if error.is_malformed() => return bad_arguments(error.to_string()),
        Err(error) => {
            if let Some(queue) = queue_of_put(protocol, &call.args).and_then(|name| gateway.catalog.queue(name).ok()) {
                count_refused(&queue);
            }
            return refused(protocol, Refusal::from(error));
        }
    };
    match take(gateway, request, for_ids) {
        Ok(taken) => Box::pin(async move { finish(protocol, taken, for_ids).await }),
        Err(refusal) => refused(protocol, refusal),
    }
}

fn take(gateway: &Gateway, request: PutRequest<'_>, any_if_negative: bool) -> Result<Taken, Refusal> {
    let queue = gateway.catalog.queue(request.queue)?;
    queue.check_enabled().inspect_err(|_| count_refused(&queue))?;
    let partition = match request.partition {
        Some(partition) if !(any_if_negative && partition < 0) => {
            queue.check_partition(partition).inspect_err(|_| count_refused(&queue))?;
            partition
        }
        _ => fastrand::i16(0..queue.partitions()),
    };
    let (messages, bytes) = (request.batch.count() as u64, request.batch.byte_len() as u64);
    let append = if messages == 0 {
        None
    } else {
        Some(queue.store.append(partition, request.batch).inspect_err(|_| count_refused(&queue))?)
    };
    Ok(Taken { queue, partition, messages, bytes, append })
}

fn count_refused(queue: &Queue) {
    queue.puts.refused.fetch_add(1, Ordering::Relaxed);
}

async fn finish(protocol: Protocol, taken: Taken, for_ids: bool) -> Reply {
    let Taken { queue, partition, messages, bytes, append } = taken;
    let (ids, done) = match append {
        Some(append) => (append.ids, append.done.await.unwrap_or(Err(StoreError::Closed))),
        None => (hqueue_storage::store::IdRuns::default(), Ok(())),
    };
    if let Err(error) = done {
        count_refused(&queue);
        return refusal_reply(protocol, Refusal::from(error));
    }
    queue.puts.messages.fetch_add(messages, Ordering::Relaxed);
    queue.puts.bytes.fetch_add(bytes, Ordering::Relaxed);
    if !for_ids {
        return Reply::Result(vec![VOID_RESULT]);
    }
    let ids = ids.iter().map(|id| TMessageID { timestamp: Some(id.timestamp), sequence_i_d: Some(id.sequence) }).collect();
    let result = Ok(TPutResult { partition_i_d: Some(partition), ids: Some(ids) });
    Reply::Result(vec![rpc::PutMessagesForIds::encode_result(protocol, &result).into()])
}

fn refused(protocol: Protocol, refusal: Refusal) -> ReplyFuture {
    Box::pin(std::future::ready(refusal_reply(protocol, refusal)))
}

/// All puts declare the same error in the same place.
fn refusal_reply(protocol: Protocol, refusal: Refusal) -> Reply {
    Reply::Result(vec![rpc::PutMessage::encode_result(protocol, &Err(HQueueError::from(refusal))).into()])
}

impl From<PutError> for Refusal {
    fn from(error: PutError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

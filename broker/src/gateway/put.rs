//! Puts: from the arguments' bytes into the store's next commit, here or at the broker that owns the partition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hqueue_protocol::generated::{HQueueError, TErrorCode, TMessageID, TPutResult};
use hqueue_protocol::rpc::{self, Method};
use hqueue_protocol::server::{Call, Reply, ReplyFuture};
use hqueue_protocol::stored::{PutError, PutRequest, PutShape, queue_of_put, read_put};
use hqueue_protocol::wire::Protocol;
use hqueue_storage::store::{Append, IdRuns, StoreError};

use super::forward::forward_put;
use super::service::{Gateway, bad_arguments};
use crate::catalog::{Queue, Route, of_peer, was_not_sent};
use crate::cluster::Stay;
use crate::refusal::Refusal;
use crate::trace::Parents;

/// The result struct of a void method that succeeded: just its end.
const VOID_RESULT: Bytes = Bytes::from_static(&[0]);

/// So often a put waits for a partition that is about to be served, and finds that it has gone on: then it is refused.
const MAX_WAITS: u8 = 3;

/// Where a put goes.
enum Place {
    /// The store has taken it.
    Here(Taken),
    /// To another broker; without a partition: any will do.
    There { queue: Arc<Queue>, address: String, partition: Option<i16> },
    /// Nowhere yet: a broker is about to claim the partition.
    Soon { queue: Arc<Queue>, partition: i16 },
    /// The store has to reserve ids first.
    NoIds { queue: Arc<Queue>, partition: i16, messages: usize },
}

/// A put that the store has taken.
struct Taken {
    queue: Arc<Queue>,
    partition: i16,
    stay: Stay,
    messages: u64,
    bytes: u64,
    parents: Parents,
    /// `None`: there was nothing to put.
    append: Option<Append>,
}

/// Steps over the arguments into the next commit before it returns; the reply comes when that is durable.
pub(super) fn put(gateway: &Gateway, call: &Call, method: &Bytes, shape: PutShape) -> ReplyFuture {
    let protocol = call.protocol;
    let for_ids = **method == *rpc::PutMessagesForIds::NAME.as_bytes();
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
    let name = request.queue.to_vec();
    match take(gateway, request, for_ids) {
        Ok(Place::Here(taken)) => Box::pin(async move { finish(protocol, taken, for_ids).await }),
        Ok(Place::There { queue, address, partition }) => {
            let (gateway, call, method) = (gateway.clone(), call.clone(), method.clone());
            Box::pin(async move { put_there(&gateway, &call, &method, shape, &queue, address, partition).await })
        }
        Ok(Place::Soon { queue, partition }) => {
            let (gateway, call, method) = (gateway.clone(), call.clone(), method.clone());
            Box::pin(async move {
                let is_served = match gateway.own {
                    true => gateway.catalog.until_held(&queue, partition).await,
                    false => gateway.catalog.until_served(&queue, partition).await,
                };
                if is_served && gateway.waits < MAX_WAITS {
                    return put(&Gateway { waits: gateway.waits + 1, ..gateway }, &call, &method, shape).await;
                }
                count_refused(&queue);
                let reason = match gateway.catalog.route(&queue, partition) {
                    Route::Offline(reason) => reason,
                    Route::Here | Route::At(_) => not_ours(&queue, partition).message,
                };
                refusal_reply(protocol, Refusal::new(TErrorCode::OFFLINE, reason))
            })
        }
        Ok(Place::NoIds { queue, partition, messages }) => {
            let (gateway, call, method) = (gateway.clone(), call.clone(), method.clone());
            let mut turn = queue.puts.wait();
            Box::pin(async move {
                turn.turn().await;
                if let Some(ready) = queue.store.ready(partition, messages)
                    && let Err(error) = ready.await
                {
                    count_refused(&queue);
                    return refusal_reply(protocol, Refusal::from(error));
                }
                // Those behind it wait until it is appended.
                let again = put_in_turn(&gateway, &call, &method, shape);
                drop(turn);
                again.await
            })
        }
        // It may have been made a moment ago, at another broker.
        Err(refusal) if refusal.code == TErrorCode::NOT_FOUND && gateway.catalog.cluster.is_some() && !gateway.own => {
            let (gateway, call, method) = (gateway.clone(), call.clone(), method.clone());
            Box::pin(async move {
                match gateway.catalog.find(&name).await {
                    Ok(_) => put(&gateway.for_own_part(false), &call, &method, shape).await,
                    Err(refusal) => refusal_reply(protocol, refusal),
                }
            })
        }
        Err(refusal) => refused(protocol, refusal),
    }
}

/// The same for one that has waited for ids.
fn put_in_turn(gateway: &Gateway, call: &Call, method: &Bytes, shape: PutShape) -> ReplyFuture {
    put(&Gateway { in_turn: true, ..gateway.clone() }, call, method, shape)
}

fn take(gateway: &Gateway, request: PutRequest<'_>, any_if_negative: bool) -> Result<Place, Refusal> {
    let queue = gateway.catalog.queue(request.queue)?;
    queue.check_enabled().inspect_err(|_| count_refused(&queue))?;
    if queue.letters.is_some() {
        count_refused(&queue);
        return Err(Refusal::invalid(format!("queue {} takes dead letters only, nothing is put there", queue.name)));
    }
    let wanted = request.partition.filter(|partition| !(any_if_negative && *partition < 0));
    if let Some(partition) = wanted {
        queue.check_partition(partition).inspect_err(|_| count_refused(&queue))?;
    }
    let partition = wanted.map_or_else(|| any_partition(gateway, &queue), Ok).inspect_err(|_| count_refused(&queue))?;
    let Some(stay) = queue.ownership.enter(partition) else {
        return match gateway.catalog.route(&queue, partition) {
            Route::At(address) if !gateway.own => Ok(Place::There { queue, address, partition: wanted }),
            Route::Offline(_) if gateway.catalog.is_awaited(&queue, partition) => Ok(Place::Soon { queue, partition }),
            Route::Offline(reason) => {
                count_refused(&queue);
                Err(Refusal::new(TErrorCode::OFFLINE, reason))
            }
            Route::At(_) | Route::Here => Err(not_ours(&queue, partition)),
        };
    };
    let (messages, bytes) = (request.batch.count() as u64, request.batch.byte_len() as u64);
    let parents = Parents::of(&request.batch);
    let count = request.batch.count();
    let append = if count == 0 {
        None
    } else {
        // One that comes while others wait does not overtake them.
        if (queue.puts.are_waiting() && !gateway.in_turn) || queue.store.ready(partition, count).is_some() {
            return Ok(Place::NoIds { queue, partition, messages: count });
        }
        match queue.store.append(partition, request.batch) {
            Ok(append) => Some(append),
            Err(StoreError::NotHeld { .. }) if gateway.catalog.is_shared() => return Ok(Place::Soon { queue, partition }),
            Err(error) => {
                count_refused(&queue);
                return Err(error.into());
            }
        }
    };
    Ok(Place::Here(Taken { queue, partition, stay, messages, bytes, parents, append }))
}

/// A random partition, of those that somebody serves.
fn any_partition(gateway: &Gateway, queue: &Queue) -> Result<i16, Refusal> {
    let is_served = |p: i16| match gateway.catalog.route(queue, p) {
        Route::Here => Ok(()),
        Route::At(_) if !gateway.own => Ok(()),
        Route::At(_) => Err(format!("partition {p} of queue {} is not held by this broker", queue.name)),
        Route::Offline(reason) => Err(reason),
    };
    let first = fastrand::i16(0..queue.partitions());
    let Err(reason) = is_served(first) else { return Ok(first) };
    let served: Vec<i16> = (0..queue.partitions()).filter(|p| is_served(*p).is_ok()).collect();
    let soon = || (0..queue.partitions()).find(|p| gateway.catalog.is_awaited(queue, *p));
    match fastrand::choice(served).or_else(soon) {
        Some(partition) => Ok(partition),
        None => Err(Refusal::new(TErrorCode::OFFLINE, format!("{reason}, and no other is there"))),
    }
}

/// Another broker's put: tried elsewhere if it did not get there and may go anywhere.
async fn put_there(
    gateway: &Gateway,
    call: &Call,
    method: &Bytes,
    shape: PutShape,
    queue: &Arc<Queue>,
    address: String,
    partition: Option<i16>,
) -> Reply {
    let (any, mut moved) = (partition.is_none(), false);
    let mut tried = BTreeSet::new();
    let mut next = Some(address);
    let mut failure = None;
    while let Some(address) = next {
        let peer = match gateway.catalog.peer(&address) {
            Ok(peer) => peer,
            Err(refusal) => return refusal_reply(call.protocol, refusal),
        };
        match forward_put(&peer, method, call.protocol, call.args.clone()).await {
            Ok(reply) => return reply,
            Err(error) if any && was_not_sent(&error) => {
                tracing::debug!(address, "put goes elsewhere: {error}");
                failure = Some(of_peer(&address, error));
                tried.insert(address);
                next = elsewhere(gateway, queue, &tried);
            }
            // Its partition goes to another broker in a moment: once is enough, a broker that is there is found then.
            Err(error) if !moved && was_not_sent(&error) && gateway.catalog.is_shared() => {
                moved = true;
                let partition = partition.unwrap_or_default();
                next = gateway.catalog.until_elsewhere(queue, partition, &address).await;
                if next.is_none() && queue.ownership.held(partition).is_some() {
                    return Box::pin(async { put(gateway, call, method, shape).await }).await;
                }
                failure = Some(of_peer(&address, error));
            }
            Err(error) => {
                count_refused(queue);
                return refusal_reply(call.protocol, of_peer(&address, error));
            }
        }
    }
    if partition.is_some() {
        count_refused(queue);
        return refusal_reply(call.protocol, failure.unwrap_or_else(|| not_ours(queue, 0)));
    }
    if !queue.held_partitions().is_empty() {
        return Box::pin(async { put(&gateway.for_own_part(true), call, method, shape).await }).await;
    }
    count_refused(queue);
    refusal_reply(call.protocol, failure.unwrap_or_else(|| not_ours(queue, 0)))
}

/// The address of a broker that has a partition and was not tried; `None` also when we have one ourselves.
fn elsewhere(gateway: &Gateway, queue: &Queue, tried: &BTreeSet<String>) -> Option<String> {
    if !queue.held_partitions().is_empty() {
        return None;
    }
    (0..queue.partitions()).find_map(|p| match gateway.catalog.route(queue, p) {
        Route::At(address) if !tried.contains(&address) => Some(address),
        _ => None,
    })
}

fn not_ours(queue: &Queue, partition: i16) -> Refusal {
    let message = format!("partition {partition} of queue {} is offline: the broker that was asked does not hold it", queue.name);
    Refusal::new(TErrorCode::OFFLINE, message)
}

fn count_refused(queue: &Queue) {
    queue.puts.refused.fetch_add(1, Ordering::Relaxed);
}

async fn finish(protocol: Protocol, taken: Taken, for_ids: bool) -> Reply {
    let Taken { queue, partition, stay, messages, bytes, parents, append } = taken;
    let (ids, done) = match append {
        Some(append) => (append.ids, append.done.await.unwrap_or(Err(StoreError::Closed))),
        None => (IdRuns::default(), Ok(())),
    };
    if let Err(error) = done {
        count_refused(&queue);
        return refusal_reply(protocol, Refusal::from(error));
    }
    if !stay.still() {
        count_refused(&queue);
        let message = format!(
            "partition {partition} of queue {} went offline during the put: it is stored, but not acknowledged, and may be delivered",
            queue.name
        );
        return refusal_reply(protocol, Refusal::new(TErrorCode::OFFLINE, message));
    }
    queue.puts.messages.fetch_add(messages, Ordering::Relaxed);
    queue.puts.bytes.fetch_add(bytes, Ordering::Relaxed);
    parents.put(queue.name.as_str(), partition, &ids);
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

//! From a method's name to who answers it.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use hqueue_protocol::generated::HQueueError;
use hqueue_protocol::rpc::{self, Method};
use hqueue_protocol::server::{Call, Reply, ReplyFuture, Service};
use hqueue_protocol::stored::{self, PutShape};
use hqueue_protocol::wire::{Protocol, WireError};

use super::put;
use super::scanners::Scanners;
use crate::catalog::{Catalog, QueueState};
use crate::refusal::Refusal;
use crate::subscription::TaskScope;

/// Who this broker is and what it takes.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// The broker's name.
    pub name: String,
    /// `host:port` at which clients reach it.
    pub advertised: String,
    /// The largest value that a put may have, in bytes.
    pub max_message_bytes: usize,
}

/// Answers the calls of clients. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(super) catalog: Arc<Catalog>,
    pub(super) scanners: Arc<Scanners>,
    pub(super) options: Arc<GatewayOptions>,
}

impl Gateway {
    #[must_use]
    pub fn new(catalog: Arc<Catalog>, scope: TaskScope, options: GatewayOptions) -> Self {
        Self { catalog, scanners: Arc::new(Scanners::new(scope)), options: Arc::new(options) }
    }

    async fn scanner_get(&self, protocol: Protocol, args: rpc::MessageScannerGetArgs) -> Reply {
        match self.scanners.next(args.id, 1).await {
            Ok(slices) => messages_reply(stored::scanner_get_result(protocol, slices.first())),
            Err(refusal) => refused::<rpc::MessageScannerGet>(protocol, refusal),
        }
    }

    async fn scanner_get_list(&self, protocol: Protocol, args: rpc::MessageScannerGetListArgs) -> Reply {
        match self.scanners.next(args.id, args.nb_messages).await {
            Ok(slices) => messages_reply(stored::scanner_list_result(protocol, &slices)),
            Err(refusal) => refused::<rpc::MessageScannerGetList>(protocol, refusal),
        }
    }
}

fn messages_reply(pieces: Result<Vec<Bytes>, WireError>) -> Reply {
    pieces.map_or_else(|error| Reply::Failed(format!("stored messages cannot be read: {error}")), Reply::Result)
}

fn refused<M: Method>(protocol: Protocol, refusal: Refusal) -> Reply {
    Reply::Result(vec![M::encode_result(protocol, &Err(HQueueError::from(refusal))).into()])
}

/// Reads the arguments, has them answered, writes the result.
fn answer<M: Method, F>(call: &Call, run: impl FnOnce(M::Args) -> F) -> ReplyFuture
where
    F: Future<Output = Result<M::Success, Refusal>> + Send + 'static,
    M::Success: Send,
{
    let protocol = call.protocol;
    match M::decode_args(protocol, &call.args) {
        Ok(args) => {
            let result = run(args);
            Box::pin(async move {
                let result = result.await.map_err(HQueueError::from);
                Reply::Result(vec![M::encode_result(protocol, &result).into()])
            })
        }
        Err(error) => bad_arguments(error.to_string()),
    }
}

pub(super) fn bad_arguments(reason: String) -> ReplyFuture {
    Box::pin(std::future::ready(Reply::BadArguments(reason)))
}

impl Service for Gateway {
    fn overlaps(&self, method: &[u8]) -> bool {
        PutShape::of_method(method).is_some()
    }

    fn call(&self, call: Call) -> ReplyFuture {
        if let Some(shape) = PutShape::of_method(&call.method) {
            return put::put(self, &call, shape);
        }
        let method = String::from_utf8_lossy(&call.method).into_owned();
        let gateway = self.clone();
        match method.as_str() {
            rpc::MessageScannerGet::NAME => match rpc::MessageScannerGet::decode_args(call.protocol, &call.args) {
                Ok(args) => Box::pin(async move { gateway.scanner_get(call.protocol, args).await }),
                Err(error) => bad_arguments(error.to_string()),
            },
            rpc::MessageScannerGetList::NAME => match rpc::MessageScannerGetList::decode_args(call.protocol, &call.args) {
                Ok(args) => Box::pin(async move { gateway.scanner_get_list(call.protocol, args).await }),
                Err(error) => bad_arguments(error.to_string()),
            },
            other => gateway.call_plain(other, &call),
        }
    }
}

impl Gateway {
    /// The methods whose results hold no messages.
    fn call_plain(self, method: &str, call: &Call) -> ReplyFuture {
        match method {
            rpc::MessageScannerOpen::NAME => answer::<rpc::MessageScannerOpen, _>(call, |a| async move {
                let queue = self.catalog.queue(&a.queue_name)?;
                self.scanners.open(&queue, a.partition, a.scan)
            }),
            rpc::MessageScannerClose::NAME => {
                answer::<rpc::MessageScannerClose, _>(call, |a| async move { self.scanners.close(a.id) })
            }
            rpc::GetQueueLocations::NAME => {
                answer::<rpc::GetQueueLocations, _>(call, |a| async move { self.locations(a.queue_name).await })
            }
            rpc::Subscribe::NAME => {
                answer::<rpc::Subscribe, _>(call, |a| async move { self.subscribe(a.queue_name, a.registration).await })
            }
            rpc::Renew::NAME => {
                answer::<rpc::Renew, _>(call, |a| async move { self.catalog.registrations.renew(a.registration_id) })
            }
            rpc::Unsubscribe::NAME => {
                answer::<rpc::Unsubscribe, _>(call, |a| async move { self.catalog.unsubscribe(a.registration_id).await })
            }
            _ => self.call_admin(method, call),
        }
    }

    fn call_admin(self, method: &str, call: &Call) -> ReplyFuture {
        match method {
            rpc::CreateQueue::NAME => answer::<rpc::CreateQueue, _>(call, |a| async move { self.create_queue(a.spec).await }),
            rpc::ListQueues::NAME => answer::<rpc::ListQueues, _>(call, |_| async move { self.list_queues().await }),
            rpc::DescribeQueue::NAME => {
                answer::<rpc::DescribeQueue, _>(call, |a| async move { self.describe_queue(a.queue_name).await })
            }
            rpc::DisableQueue::NAME => {
                answer::<rpc::DisableQueue, _>(call, |a| async move { self.set_state(a.queue_name, QueueState::Disabled).await })
            }
            rpc::EnableQueue::NAME => {
                answer::<rpc::EnableQueue, _>(call, |a| async move { self.set_state(a.queue_name, QueueState::Enabled).await })
            }
            rpc::DropQueue::NAME => {
                answer::<rpc::DropQueue, _>(call, |a| async move { self.catalog.drop_queue(&a.queue_name).await })
            }
            rpc::TruncateQueue::NAME => {
                answer::<rpc::TruncateQueue, _>(call, |a| async move { self.catalog.truncate(&a.queue_name).await })
            }
            rpc::AddSubscriber::NAME => {
                answer::<rpc::AddSubscriber, _>(call, |a| async move { self.add_subscriber(a.queue_name, a.spec).await })
            }
            rpc::DeleteSubscriber::NAME => {
                answer::<rpc::DeleteSubscriber, _>(
                    call,
                    |a| async move { self.delete_subscriber(a.queue_name, a.subscriber).await },
                )
            }
            rpc::ListSubscribers::NAME => {
                answer::<rpc::ListSubscribers, _>(call, |a| async move { self.list_subscribers(a.queue_name).await })
            }
            rpc::QueueStatus::NAME => {
                answer::<rpc::QueueStatus, _>(call, |a| async move { self.queue_status(a.queue_name).await })
            }
            rpc::ClusterStatus::NAME => answer::<rpc::ClusterStatus, _>(call, |_| async move { self.cluster_status().await }),
            _ => Box::pin(std::future::ready(Reply::UnknownMethod)),
        }
    }
}

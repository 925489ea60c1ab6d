//! From a method's name to who answers it.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use hqueue_protocol::generated::{HQueueError, TErrorCode, TScanReport};
use hqueue_protocol::rpc::{self, Method};
use hqueue_protocol::server::{Call, Reply, ReplyFuture, Service};
use hqueue_protocol::stored::{self, PutShape};
use hqueue_protocol::wire::{Protocol, WireError};

use super::forward::{forward, plain_name};
use super::put;
use super::scanners::{RemoteScanner, Scanners};
use crate::catalog::{Catalog, QueueState, Route, of_peer};
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
    /// Another broker asks for our own part: nobody else is asked.
    pub(super) own: bool,
    /// Of a put that has waited: those behind it wait for it.
    pub(super) in_turn: bool,
    /// How often a put has waited for its partition.
    pub(super) waits: u8,
}

impl Gateway {
    #[must_use]
    pub fn new(catalog: Arc<Catalog>, scope: TaskScope, options: GatewayOptions) -> Self {
        Self {
            catalog,
            scanners: Arc::new(Scanners::new(scope)),
            options: Arc::new(options),
            own: false,
            in_turn: false,
            waits: 0,
        }
    }

    pub(super) fn for_own_part(&self, own: bool) -> Self {
        Self { own, ..self.clone() }
    }

    async fn scanner_get(&self, protocol: Protocol, args: rpc::MessageScannerGetArgs) -> Reply {
        match self.scanners.remote(args.id) {
            Err(refusal) => return refused::<rpc::MessageScannerGet>(protocol, refusal),
            Ok(Some(remote)) => {
                let args = rpc::MessageScannerGet::encode_args(protocol, &rpc::MessageScannerGetArgs { id: remote.id });
                return self.at_owner::<rpc::MessageScannerGet>(protocol, &remote, args).await;
            }
            Ok(None) => {}
        }
        match self.scanners.next(args.id, 1).await {
            Ok(slices) => messages_reply(stored::scanner_get_result(protocol, slices.first())),
            Err(refusal) => refused::<rpc::MessageScannerGet>(protocol, refusal),
        }
    }

    async fn scanner_get_list(&self, protocol: Protocol, args: rpc::MessageScannerGetListArgs) -> Reply {
        match self.scanners.remote(args.id) {
            Err(refusal) => return refused::<rpc::MessageScannerGetList>(protocol, refusal),
            Ok(Some(remote)) => {
                let args = rpc::MessageScannerGetListArgs { id: remote.id, nb_messages: args.nb_messages };
                let args = rpc::MessageScannerGetList::encode_args(protocol, &args);
                return self.at_owner::<rpc::MessageScannerGetList>(protocol, &remote, args).await;
            }
            Ok(None) => {}
        }
        match self.scanners.next(args.id, args.nb_messages).await {
            Ok(slices) => messages_reply(stored::scanner_list_result(protocol, &slices)),
            Err(refusal) => refused::<rpc::MessageScannerGetList>(protocol, refusal),
        }
    }
}

impl Gateway {
    async fn at_owner<M: Method>(&self, protocol: Protocol, remote: &RemoteScanner, args: Vec<u8>) -> Reply {
        match forward::<M>(&remote.peer, protocol, args.into()).await {
            Ok(reply) => reply,
            Err(error) => refused::<M>(protocol, of_peer(&remote.address, error)),
        }
    }

    async fn scanner_open(&self, args: rpc::MessageScannerOpenArgs) -> Result<i32, Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        queue.check_partition(args.partition)?;
        if self.catalog.is_here(&queue, args.partition) {
            if self.catalog.is_shared() && queue.ownership.held(args.partition).is_none() {
                // In a moment it is read.
                self.catalog.until_held(&queue, args.partition).await;
            }
            return self.scanners.open(&queue, args.partition, args.scan);
        }
        match self.catalog.route(&queue, args.partition) {
            Route::At(address) if !self.own => {
                let peer = self.catalog.peer(&address)?;
                let opened = peer.call_owner::<rpc::MessageScannerOpen>(&args).await;
                let id = opened.map_err(|error| of_peer(&address, error))?;
                self.scanners.open_remote(RemoteScanner { peer, address, id })
            }
            Route::Offline(reason) => Err(Refusal::new(TErrorCode::OFFLINE, reason)),
            Route::Here | Route::At(_) => {
                let message = format!("partition {} of queue {} is not at this broker", args.partition, queue.name);
                Err(Refusal::new(TErrorCode::OFFLINE, message))
            }
        }
    }

    async fn scanner_close(&self, id: i32) -> Result<(), Refusal> {
        if let Some(remote) = self.scanners.close(id)? {
            let args = rpc::MessageScannerCloseArgs { id: remote.id };
            // It closes by itself if this does not reach it.
            let _ = remote.peer.call_owner::<rpc::MessageScannerClose>(&args).await;
        }
        Ok(())
    }
}

impl Gateway {
    async fn scanner_report(&self, id: i32) -> Result<TScanReport, Refusal> {
        match self.scanners.remote(id)? {
            None => self.scanners.report(id).await,
            Some(RemoteScanner { peer, address, id }) => {
                let report = peer.call_owner::<rpc::MessageScannerReport>(&rpc::MessageScannerReportArgs { id }).await;
                report.map_err(|error| of_peer(&address, error))
            }
        }
    }
}

fn is<M: Method>(method: &[u8]) -> bool {
    *method == *M::NAME.as_bytes()
}

pub(super) fn messages_reply(pieces: Result<Vec<Bytes>, WireError>) -> Reply {
    pieces.map_or_else(|error| Reply::Failed(format!("stored messages cannot be read: {error}")), Reply::Result)
}

pub(super) fn refused<M: Method>(protocol: Protocol, refusal: Refusal) -> Reply {
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
        let (method, _) = plain_name(&Bytes::copy_from_slice(method));
        // A fetch may wait long: what is pipelined behind it begins beside it.
        PutShape::of_method(&method).is_some() || is::<rpc::Fetch>(&method) || is::<rpc::Commit>(&method)
    }

    fn waits(&self, method: &[u8]) -> bool {
        is::<rpc::Fetch>(&plain_name(&Bytes::copy_from_slice(method)).0)
    }

    fn call(&self, call: Call) -> ReplyFuture {
        let (method, own) = plain_name(&call.method);
        if let Some(shape) = PutShape::of_method(&method) {
            return if own {
                put::put(&self.for_own_part(true), &call, &method, shape)
            } else {
                put::put(self, &call, &method, shape)
            };
        }
        let method = String::from_utf8_lossy(&method).into_owned();
        let gateway = self.for_own_part(own);
        match method.as_str() {
            rpc::MessageScannerGet::NAME => match rpc::MessageScannerGet::decode_args(call.protocol, &call.args) {
                Ok(args) => Box::pin(async move { gateway.scanner_get(call.protocol, args).await }),
                Err(error) => bad_arguments(error.to_string()),
            },
            rpc::MessageScannerGetList::NAME => match rpc::MessageScannerGetList::decode_args(call.protocol, &call.args) {
                Ok(args) => Box::pin(async move { gateway.scanner_get_list(call.protocol, args).await }),
                Err(error) => bad_arguments(error.to_string()),
            },
            rpc::Fetch::NAME => match rpc::Fetch::decode_args(call.protocol, &call.args) {
                Ok(args) => Box::pin(async move { gateway.fetch(call.protocol, args, call.hurry).await }),
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
            rpc::MessageScannerOpen::NAME => {
                answer::<rpc::MessageScannerOpen, _>(call, |a| async move { self.scanner_open(a).await })
            }
            rpc::MessageScannerClose::NAME => {
                answer::<rpc::MessageScannerClose, _>(call, |a| async move { self.scanner_close(a.id).await })
            }
            rpc::MessageScannerReport::NAME => {
                answer::<rpc::MessageScannerReport, _>(call, |a| async move { self.scanner_report(a.id).await })
            }
            rpc::GetQueueLocations::NAME => {
                answer::<rpc::GetQueueLocations, _>(call, |a| async move { self.locations(a.queue_name).await })
            }
            rpc::GetDataLocations::NAME => {
                answer::<rpc::GetDataLocations, _>(call, |a| async move { self.data_locations(a.queue_name).await })
            }
            rpc::Subscribe::NAME => {
                answer::<rpc::Subscribe, _>(call, |a| async move { self.subscribe(a.queue_name, a.registration).await })
            }
            rpc::Commit::NAME => answer::<rpc::Commit, _>(call, |a| async move { self.commit(a).await }),
            rpc::Renew::NAME => answer::<rpc::Renew, _>(call, |a| async move { self.renew(a.registration_id).await }),
            rpc::Unsubscribe::NAME => {
                answer::<rpc::Unsubscribe, _>(call, |a| async move { self.unsubscribe(a.registration_id).await })
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
            rpc::DropQueue::NAME => answer::<rpc::DropQueue, _>(call, |a| async move { self.drop_queue(a.queue_name).await }),
            rpc::TruncateQueue::NAME => {
                answer::<rpc::TruncateQueue, _>(call, |a| async move { self.truncate_queue(a.queue_name).await })
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
            rpc::SetSubscriber::NAME => answer::<rpc::SetSubscriber, _>(call, |a| async move { self.set_subscriber(a).await }),
            rpc::PauseSubscriber::NAME => {
                answer::<rpc::PauseSubscriber, _>(
                    call,
                    |a| async move { self.set_paused(a.queue_name, a.subscriber, true).await },
                )
            }
            rpc::ResumeSubscriber::NAME => {
                answer::<rpc::ResumeSubscriber, _>(
                    call,
                    |a| async move { self.set_paused(a.queue_name, a.subscriber, false).await },
                )
            }
            rpc::SeekSubscriber::NAME => answer::<rpc::SeekSubscriber, _>(call, |a| async move { self.seek(a).await }),
            rpc::RedriveDeadLetters::NAME => answer::<rpc::RedriveDeadLetters, _>(call, |a| async move { self.redrive(a).await }),
            rpc::DropDeadLetters::NAME => answer::<rpc::DropDeadLetters, _>(call, |a| async move { self.drop_letters(a).await }),
            rpc::ExplainMessage::NAME => answer::<rpc::ExplainMessage, _>(call, |a| async move { self.explain(a).await }),
            rpc::AddDeadLetter::NAME if self.own => {
                answer::<rpc::AddDeadLetter, _>(call, |a| async move { self.add_letter(a).await })
            }
            rpc::Redeliver::NAME if self.own => answer::<rpc::Redeliver, _>(call, |a| async move { self.redeliver(a).await }),
            rpc::FindDeadLetters::NAME if self.own => {
                answer::<rpc::FindDeadLetters, _>(call, |a| async move { self.find_letters(a).await })
            }
            rpc::ListSubscribers::NAME => {
                answer::<rpc::ListSubscribers, _>(call, |a| async move { self.list_subscribers(a.queue_name).await })
            }
            rpc::QueueStatus::NAME => {
                answer::<rpc::QueueStatus, _>(call, |a| async move { self.queue_status(a.queue_name).await })
            }
            rpc::ClusterStatus::NAME => answer::<rpc::ClusterStatus, _>(call, |_| async move { self.cluster_status().await }),
            rpc::MovePartition::NAME => answer::<rpc::MovePartition, _>(call, |a| async move { self.move_partition(a).await }),
            rpc::SwitchBalancer::NAME => {
                answer::<rpc::SwitchBalancer, _>(call, |a| async move { self.catalog.switch_balancer(a.on).await })
            }
            rpc::IsBalancerOn::NAME => {
                answer::<rpc::IsBalancerOn, _>(call, |_| async move { self.catalog.is_balancer_on().await })
            }
            _ => Box::pin(std::future::ready(Reply::UnknownMethod)),
        }
    }
}

//! Announces an endpoint to a broker and keeps the announcement alive.

use std::time::Duration;

use hqueue_protocol::client::{ClientError, RpcClient};
use hqueue_protocol::generated::{TErrorCode, TRegistered};
use hqueue_protocol::rpc::{Renew, RenewArgs, Subscribe, SubscribeArgs, Unsubscribe, UnsubscribeArgs};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::subscription::Subscription;
use crate::error::Error;

/// A registration is renewed so often; the broker keeps it for 10 s without.
const RENEWAL: Duration = Duration::from_secs(3);
/// For the broker's answer to `subscribe` and `renew`.
const ANSWER: Duration = Duration::from_secs(5);
/// The broker answers `unsubscribe` when the calls in flight are done, after 10 s at most.
const LEAVE: Duration = Duration::from_secs(12);

/// One endpoint of a subscription.
#[derive(Debug)]
pub(super) struct Registration {
    client: RpcClient,
    queue: String,
    subscription: Subscription,
    endpoint: Endpoint,
}

impl Registration {
    pub(super) fn new(client: RpcClient, queue: String, subscription: Subscription, endpoint: Endpoint) -> Self {
        Self { client: client.with_call_timeout(ANSWER), queue, subscription, endpoint }
    }

    /// Announces the endpoint; returns the registration's id.
    async fn subscribe(&self) -> Result<i64, ClientError> {
        let address = self.endpoint.address(&self.client, &self.subscription.name).await?;
        let registration = self.subscription.registration(address.clone());
        let args = SubscribeArgs { queue_name: self.queue.clone().into_bytes(), registration };
        let TRegistered { registration_i_d: id, .. } = self.client.call::<Subscribe>(&args).await?;
        tracing::info!(queue = self.queue, subscriber = self.subscription.name, address, "registered");
        Ok(id.unwrap_or_default())
    }

    /// Of several brokers each is asked before one that could not help is an answer.
    async fn subscribe_somewhere(&self) -> Result<i64, Error> {
        let mut tried = 1;
        loop {
            let error = match self.subscribe().await {
                Ok(id) => return Ok(id),
                Err(error) => Error::from(error),
            };
            if !error.may_be_done_elsewhere() || tried >= self.client.addresses() {
                return Err(error);
            }
            tried += 1;
            tracing::debug!(queue = self.queue, subscriber = self.subscription.name, %error, "tried with another broker");
            self.client.leave_broker().await;
        }
    }

    /// Announces the endpoint and says how that went; keeps it announced until `leave`, then takes it back.
    pub(super) async fn run(self, ready: oneshot::Sender<Result<(), Error>>, leave: CancellationToken) {
        let subscribed = self.subscribe_somewhere().await;
        let id = subscribed.as_ref().ok().copied();
        // Nobody may wait any more: then `leave` is said.
        let _ = ready.send(subscribed.map(drop));
        if let Some(id) = id {
            self.keep(id, leave).await;
        }
    }

    /// Renews the registration until `stop`, and announces the endpoint anew when it has ended. Goes on trying while the broker is
    /// away. Then ends the registration: when this returns, the broker makes no more calls, unless it could not be reached.
    async fn keep(self, mut id: i64, stop: CancellationToken) {
        let mut trouble: Option<String> = None;
        loop {
            let renewal = async {
                tokio::time::sleep(RENEWAL).await;
                self.client.call::<Renew>(&RenewArgs { registration_id: id }).await
            };
            let Some(renewed) = stop.run_until_cancelled(renewal).await else { break };
            let renewed = match renewed {
                Err(ClientError::Refused { code: TErrorCode::NOT_FOUND, .. }) => self.subscribe().await.map(|new| id = new),
                other => other,
            };
            // Said once, and again when it changes.
            let now = renewed.err().map(|error| error.to_string());
            let name = &self.subscription.name;
            match (&now, &trouble) {
                (Some(reason), _) if now != trouble => {
                    tracing::warn!(
                        queue = self.queue,
                        subscriber = name,
                        reason,
                        "the registration cannot be renewed, trying on"
                    );
                }
                (None, Some(_)) => tracing::info!(queue = self.queue, subscriber = name, "the broker is back"),
                _ => {}
            }
            trouble = now;
        }
        let leave = UnsubscribeArgs { registration_id: id };
        match self.client.with_call_timeout(LEAVE).call::<Unsubscribe>(&leave).await {
            Ok(()) => tracing::info!(queue = self.queue, subscriber = self.subscription.name, "unregistered"),
            Err(error) => {
                tracing::warn!(queue = self.queue, subscriber = self.subscription.name, %error, "could not unregister; the broker forgets the registration by itself");
            }
        }
    }
}

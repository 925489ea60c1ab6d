//! Announces an endpoint and keeps the announcement alive.

use std::net::SocketAddr;
use std::time::Duration;

use hqueue_protocol::client::{ClientError, RpcClient};
use hqueue_protocol::generated::{TErrorCode, TRegistered};
use hqueue_protocol::rpc::{Renew, RenewArgs, Subscribe, SubscribeArgs, Unsubscribe, UnsubscribeArgs};
use tokio_util::sync::CancellationToken;

use super::subscription::Subscription;

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

/// Where the broker finds us.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// Where we listen.
    pub(super) bound: SocketAddr,
    /// Said by the user, and not found out.
    pub(super) advertised: Option<String>,
}

impl Registration {
    pub(super) fn new(client: RpcClient, queue: String, subscription: Subscription, endpoint: Endpoint) -> Self {
        Self { client: client.with_call_timeout(ANSWER), queue, subscription, endpoint }
    }

    /// Announces the endpoint; returns the registration's id.
    pub(super) async fn subscribe(&self) -> Result<i64, ClientError> {
        let address = self.address().await?;
        if let Some(ip) = address.parse::<SocketAddr>().ok().map(|a| a.ip()).filter(std::net::IpAddr::is_unspecified) {
            tracing::warn!(subscriber = self.subscription.name, %ip, "this address cannot be reached by a broker: advertise another");
        }
        let registration = self.subscription.registration(address.clone());
        let args = SubscribeArgs { queue_name: self.queue.clone().into_bytes(), registration };
        let TRegistered { registration_i_d: id, .. } = self.client.call::<Subscribe>(&args).await?;
        tracing::info!(queue = self.queue, subscriber = self.subscription.name, address, "registered");
        Ok(id.unwrap_or_default())
    }

    /// What is advertised, or the address by which we reach the broker, unless we listen on a certain one.
    async fn address(&self) -> Result<String, ClientError> {
        let Endpoint { bound, advertised } = &self.endpoint;
        match advertised {
            Some(advertised) => Ok(advertised.clone()),
            None if bound.ip().is_unspecified() => {
                let ip = self.client.local_address().await?.ip();
                Ok(SocketAddr::new(ip, bound.port()).to_string())
            }
            None => Ok(bound.to_string()),
        }
    }

    /// Renews the registration until `stop`, and announces the endpoint anew when it has ended. Goes on trying while the broker is
    /// away. Then ends the registration: when this returns, the broker makes no more calls, unless it could not be reached.
    pub(super) async fn keep(self, mut id: i64, stop: CancellationToken) {
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

//! Administration: `HQueueAdminService`, and what of the gateway is no put and no scan.

use std::sync::Arc;

use hqueue_protocol::generated::{
    TBrokerStatus, TClusterStatus, TQueueDescription, TQueueSpec, TQueueStatus, TRegistered, TRegistration, TSubscriberSpec,
    TSubscriptionStatus,
};

use super::service::Gateway;
use crate::catalog::{self, LIFETIME, NewSubscriber, Queue, QueueState};
use crate::refusal::Refusal;

impl Gateway {
    pub(super) async fn create_queue(&self, spec: TQueueSpec) -> Result<Vec<String>, Refusal> {
        let queue = self.catalog.create(&spec).await?;
        Ok(queue.record().0.notices())
    }

    pub(super) async fn list_queues(&self) -> Result<Vec<TQueueDescription>, Refusal> {
        Ok(self.catalog.queues().iter().map(description).collect())
    }

    pub(super) async fn describe_queue(&self, name: Vec<u8>) -> Result<TQueueDescription, Refusal> {
        Ok(description(&self.catalog.queue(&name)?))
    }

    pub(super) async fn set_state(&self, name: Vec<u8>, state: QueueState) -> Result<(), Refusal> {
        self.catalog.set_state(&name, state).await
    }

    pub(super) async fn add_subscriber(&self, name: Vec<u8>, spec: TSubscriberSpec) -> Result<(), Refusal> {
        let queue = self.catalog.queue(&name)?;
        let new = NewSubscriber::from_spec(&spec, &queue)?;
        self.catalog.add_subscriber(&queue, new).await.map(|_| ())
    }

    pub(super) async fn delete_subscriber(&self, name: Vec<u8>, subscriber: Vec<u8>) -> Result<(), Refusal> {
        let queue = self.catalog.queue(&name)?;
        self.catalog.delete_subscriber(&queue, &subscriber).await
    }

    pub(super) async fn list_subscribers(&self, name: Vec<u8>) -> Result<Vec<TSubscriptionStatus>, Refusal> {
        let queue = self.catalog.queue(&name)?;
        let mut found = Vec::new();
        for subscription in queue.subscriptions() {
            found.push(catalog::subscription_status(&queue, &subscription).await?);
        }
        Ok(found)
    }

    pub(super) async fn queue_status(&self, name: Vec<u8>) -> Result<TQueueStatus, Refusal> {
        let queue = self.catalog.queue(&name)?;
        catalog::queue_status(&queue, &self.options.name).await
    }

    pub(super) async fn cluster_status(&self) -> Result<TClusterStatus, Refusal> {
        let mut queues = Vec::new();
        for queue in self.catalog.queues() {
            queues.push(catalog::queue_summary(&queue).await?);
        }
        let broker = TBrokerStatus {
            name: Some(self.options.name.clone()),
            address: Some(self.options.advertised.clone()),
            state: Some("online".to_owned()),
        };
        Ok(TClusterStatus { brokers: Some(vec![broker]), queues: Some(queues) })
    }

    /// The owner of each partition; here it is this broker.
    pub(super) async fn locations(&self, name: Vec<u8>) -> Result<Vec<Vec<u8>>, Refusal> {
        let queue = self.catalog.queue(&name)?;
        Ok((0..queue.partitions()).map(|_| self.options.advertised.clone().into_bytes()).collect())
    }

    pub(super) async fn subscribe(&self, name: Vec<u8>, wanted: TRegistration) -> Result<TRegistered, Refusal> {
        let queue = self.catalog.queue(&name)?;
        let id = self.catalog.subscribe(&queue, &wanted).await?;
        let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        Ok(TRegistered { registration_i_d: Some(id), lifetime_ms: Some(lifetime) })
    }
}

fn description(queue: &Arc<Queue>) -> TQueueDescription {
    let (record, _) = queue.record();
    TQueueDescription {
        name: Some(queue.name.as_str().as_bytes().to_vec()),
        partitions: Some(record.partitions.into()),
        ttl_seconds: Some(record.ttl_seconds),
        state: Some(record.state.name().to_owned()),
        notices: Some(record.notices()),
        created_ms: Some(record.created),
        configuration: Some(record.configuration),
    }
}

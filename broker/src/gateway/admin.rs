//! Administration: `HQueueAdminService`, and what of the gateway is no put and no scan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hqueue_hbase::store::TableFacts;
use hqueue_protocol::generated::{
    TBrokerStatus, TClusterStatus, TQueueDescription, TQueueSpec, TQueueStatus, TRegistered, TRegistration, TSubscriberSpec,
    TSubscriptionStatus,
};
use hqueue_protocol::rpc::MovePartitionArgs;
use hqueue_storage::store::StoreError;

use super::service::Gateway;
use crate::catalog::{self, LIFETIME, NewSubscriber, Queue, QueueState, Route};
use crate::cluster::{Cluster, hex};
use crate::refusal::Refusal;

/// How long a description waits for what HBase has.
const STORED_PATIENCE: Duration = Duration::from_secs(5);

impl Gateway {
    pub(super) async fn create_queue(&self, spec: TQueueSpec) -> Result<Vec<String>, Refusal> {
        let queue = self.catalog.create(&spec).await?;
        Ok(queue.record().0.notices(self.catalog.hbase.is_some()))
    }

    pub(super) async fn list_queues(&self) -> Result<Vec<TQueueDescription>, Refusal> {
        let queues = self.catalog.queues();
        Ok(queues.iter().filter(|queue| queue.letters.is_none()).map(|queue| self.description(queue)).collect())
    }

    pub(super) async fn describe_queue(&self, name: Vec<u8>) -> Result<TQueueDescription, Refusal> {
        let queue = self.catalog.find(&name).await?;
        let mut description = self.description(&queue);
        if let Some(hbase) = &self.catalog.hbase {
            // The rest is known although HBase is away.
            let facts = tokio::time::timeout(STORED_PATIENCE, hbase.facts(queue.name.as_str())).await;
            let unknown = |reason: String| [("hbase.unknown".to_owned(), reason)].into();
            description.stored = Some(match facts {
                Ok(Ok(facts)) => stored(&facts),
                Ok(Err(error)) => unknown(error.to_string()),
                Err(_) => unknown(format!("HBase does not answer within {STORED_PATIENCE:?}")),
            });
        }
        Ok(description)
    }

    fn description(&self, queue: &Arc<Queue>) -> TQueueDescription {
        description(queue, self.catalog.hbase.is_some())
    }

    pub(super) async fn move_partition(&self, args: MovePartitionArgs) -> Result<(), Refusal> {
        let queue = self.catalog.find(&args.queue_name).await?;
        self.catalog.move_partition(&queue, args.partition, &args.broker).await
    }

    pub(super) async fn set_state(&self, name: Vec<u8>, state: QueueState) -> Result<(), Refusal> {
        let queue = self.catalog.find(&name).await?;
        check_not_letters(&queue)?;
        self.catalog.set_state(&queue, state).await
    }

    pub(super) async fn drop_queue(&self, name: Vec<u8>) -> Result<(), Refusal> {
        let queue = self.catalog.find(&name).await?;
        check_not_letters(&queue)?;
        self.catalog.drop_queue(&queue).await
    }

    pub(super) async fn truncate_queue(&self, name: Vec<u8>) -> Result<(), Refusal> {
        let queue = self.catalog.find(&name).await?;
        if self.own { self.catalog.truncate(&queue).await } else { self.catalog.truncate_everywhere(&queue).await }
    }

    pub(super) async fn add_subscriber(&self, name: Vec<u8>, spec: TSubscriberSpec) -> Result<(), Refusal> {
        let queue = self.catalog.find(&name).await?;
        let new = NewSubscriber::from_spec(&spec, &queue)?;
        if self.own { self.catalog.own_checkpoints(&queue, &new).await } else { self.catalog.add_subscriber(&queue, new).await }
    }

    pub(super) async fn delete_subscriber(&self, name: Vec<u8>, subscriber: Vec<u8>) -> Result<(), Refusal> {
        let queue = self.catalog.find(&name).await?;
        let subscriber = String::from_utf8_lossy(&subscriber).into_owned();
        if !self.own {
            return self.catalog.delete_subscriber(&queue, &subscriber).await;
        }
        if self.catalog.delete_own_part(&queue, &subscriber).await? {
            Ok(())
        } else {
            Err(Refusal::no_subscriber(queue.name.as_str(), &subscriber))
        }
    }

    pub(super) async fn list_subscribers(&self, name: Vec<u8>) -> Result<Vec<TSubscriptionStatus>, Refusal> {
        Ok(self.queue_status(name).await?.subscriptions.unwrap_or_default())
    }

    pub(super) async fn queue_status(&self, name: Vec<u8>) -> Result<TQueueStatus, Refusal> {
        let queue = self.catalog.find(&name).await?;
        let mut status = catalog::queue_status(&self.catalog, &queue, &self.options.name).await?;
        if !self.own {
            for (broker, theirs) in self.catalog.statuses_elsewhere(&queue).await {
                match theirs {
                    Ok(theirs) => catalog::merge_statuses(&mut status, theirs),
                    Err(refusal) => tracing::warn!(broker, "no status from it: {refusal}"),
                }
            }
        }
        Ok(status)
    }

    pub(super) async fn cluster_status(&self) -> Result<TClusterStatus, Refusal> {
        let mut queues = Vec::new();
        for queue in self.catalog.queues() {
            queues.push(catalog::queue_summary(&self.catalog, &queue).await?);
        }
        let mut status = TClusterStatus { brokers: Some(Vec::new()), queues: Some(queues), trouble: None };
        let ours = TBrokerStatus {
            name: Some(self.options.name.clone()),
            address: Some(self.options.advertised.clone()),
            state: Some("online".to_owned()),
            session: None,
            partitions: None,
            balancer: None,
        };
        match &self.catalog.cluster {
            None => status.brokers = Some(vec![ours]),
            Some(cluster) => {
                status.brokers = Some(self.brokers(cluster, ours));
                if self.catalog.lease.session().is_none() {
                    let text = "this broker is cut off from ZooKeeper: what it says of others is old, and it takes no puts";
                    status.trouble = Some(text.to_owned());
                }
                if !self.own {
                    for (broker, theirs) in self.catalog.summaries_elsewhere().await {
                        match theirs {
                            Ok(theirs) => {
                                let queues = status.queues.get_or_insert_default();
                                catalog::merge_summaries(queues, theirs.queues.unwrap_or_default());
                                let theirs =
                                    theirs.brokers.unwrap_or_default().into_iter().find(|b| b.name.as_ref() == Some(&broker));
                                let known = status.brokers.iter_mut().flatten().find(|b| b.name.as_ref() == Some(&broker));
                                if let (Some(known), Some(theirs)) = (known, theirs) {
                                    known.balancer = theirs.balancer;
                                }
                            }
                            Err(refusal) => status.trouble = Some(refusal.message),
                        }
                    }
                }
            }
        }
        Ok(status)
    }

    /// The brokers that are there, and those that have partitions and are away.
    fn brokers(&self, cluster: &Cluster, ours: TBrokerStatus) -> Vec<TBrokerStatus> {
        let mut counts = BTreeMap::<String, usize>::new();
        for assignment in self.catalog.queues().iter().filter_map(|queue| queue.assignment()) {
            assignment.counts().into_iter().for_each(|(broker, n)| *counts.entry(broker).or_default() += n);
        }
        let there = cluster.members.brokers();
        let mut all: BTreeMap<String, TBrokerStatus> = BTreeMap::new();
        for (name, info) in &*there {
            let known = TBrokerStatus {
                name: Some(name.clone()),
                address: Some(info.address.clone()),
                session: info.session.map(hex),
                ..ours.clone()
            };
            all.insert(name.clone(), known);
        }
        for name in counts.keys().filter(|name| !there.contains_key(*name)) {
            let away = TBrokerStatus {
                name: Some(name.clone()),
                address: Some(String::new()),
                state: Some("offline".to_owned()),
                ..ours.clone()
            };
            all.insert(name.clone(), away);
        }
        for (name, broker) in &mut all {
            broker.partitions = Some(i32::try_from(counts.get(name).copied().unwrap_or_default()).unwrap_or(i32::MAX));
        }
        if let Some(this) = all.get_mut(&self.options.name) {
            this.balancer = Some(cluster.balancer.is_elected());
        }
        all.into_values().collect()
    }

    /// Who serves each partition; an empty text where nobody does.
    pub(super) async fn locations(&self, name: Vec<u8>) -> Result<Vec<Vec<u8>>, Refusal> {
        let queue = self.catalog.find(&name).await?;
        let location = |p| match self.catalog.route(&queue, p) {
            Route::Here => self.options.advertised.clone(),
            Route::At(address) => address,
            Route::Offline(_) => String::new(),
        };
        Ok((0..queue.partitions()).map(|p| location(p).into_bytes()).collect())
    }

    /// Who has the messages of each partition.
    pub(super) async fn data_locations(&self, name: Vec<u8>) -> Result<Vec<Vec<u8>>, Refusal> {
        let Some(hbase) = &self.catalog.hbase else { return self.locations(name).await };
        let queue = self.catalog.find(&name).await?;
        let asked = hbase.region_servers(queue.name.as_str(), queue.partitions());
        let servers = tokio::time::timeout(STORED_PATIENCE, asked).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {STORED_PATIENCE:?}");
            Err(StoreError::Remote { what: "asking HBase for regions", reason, retryable: true })
        })?;
        Ok(servers.into_iter().map(String::into_bytes).collect())
    }

    pub(super) async fn subscribe(&self, name: Vec<u8>, wanted: TRegistration) -> Result<TRegistered, Refusal> {
        let queue = self.catalog.find(&name).await?;
        let id = self.catalog.subscribe(&queue, &wanted).await?;
        let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        Ok(TRegistered { registration_i_d: Some(id), lifetime_ms: Some(lifetime) })
    }

    pub(super) async fn renew(&self, id: i64) -> Result<(), Refusal> {
        match self.catalog.registrations.renew(id) {
            Err(refusal) if !self.own => self.catalog.renew_elsewhere(id).await.map_err(|()| refusal),
            other => other,
        }
    }

    pub(super) async fn unsubscribe(&self, id: i64) -> Result<(), Refusal> {
        if !self.own {
            return self.catalog.unsubscribe(id).await;
        }
        if self.catalog.unsubscribe_here(id).await {
            Ok(())
        } else {
            Err(Refusal::not_found(format!("registration {id} has no endpoint here")))
        }
    }
}

/// A dead-letter queue comes and goes with its queue.
fn check_not_letters(queue: &Queue) -> Result<(), Refusal> {
    match queue.letters {
        Some(_) => Err(Refusal::invalid(format!("queue {} belongs to the queue whose dead letters it keeps", queue.name))),
        None => Ok(()),
    }
}

/// What HBase has of a queue, for people and programs.
fn stored(facts: &TableFacts) -> BTreeMap<String, String> {
    let servers: BTreeSet<String> =
        facts.regions.iter().map(|region| format!("{}:{}", region.host, region.port.unwrap_or_default())).collect();
    let ttl = facts.ttl_seconds.map_or_else(|| "forever".to_owned(), |seconds| seconds.to_string());
    let ours = [
        ("hbase.table", facts.table.clone()),
        ("hbase.state", if facts.is_enabled { "enabled" } else { "disabled" }.to_owned()),
        ("hbase.regions", facts.regions.len().to_string()),
        ("hbase.region_servers", servers.into_iter().collect::<Vec<_>>().join(",")),
        ("hbase.ttl_seconds", ttl),
        ("hbase.compression", facts.compression.clone()),
    ];
    let attributes = facts.attributes.iter().map(|(name, value)| (format!("hbase.attribute.{name}"), value.clone()));
    ours.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(attributes).collect()
}

fn description(queue: &Arc<Queue>, in_hbase: bool) -> TQueueDescription {
    let (record, _) = queue.record();
    TQueueDescription {
        name: Some(queue.name.as_str().as_bytes().to_vec()),
        partitions: Some(record.partitions.into()),
        ttl_seconds: Some(record.ttl_seconds),
        state: Some(record.state.name().to_owned()),
        notices: Some(record.notices(in_hbase)),
        created_ms: Some(record.created),
        configuration: Some(record.configuration),
        max_bytes: record.retention.max_bytes,
        when_full: record.retention.when_full.map(|policy| policy.name().to_owned()),
        keep_unread: record.retention.max_bytes.map(|_| record.retention.keep_unread),
        stored: None,
    }
}

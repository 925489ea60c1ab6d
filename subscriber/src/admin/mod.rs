//! Administration: queues, subscribers, status.

mod description;
mod status;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use hqueue_protocol::client::RpcClient;
use hqueue_protocol::generated::{TQueueSpec, TSubscriberSpec};
use hqueue_protocol::position::Position;
use hqueue_protocol::rpc;

pub use self::description::QueueDescription;
pub use self::status::{BrokerStatus, ClusterStatus, PartitionStatus, QueueStatus, QueueSummary, SubscriptionStatus};
use crate::error::Error;
use crate::subscriber::position_text;

/// Making and dropping takes time with many partitions.
const PATIENCE: Duration = Duration::from_secs(60);

/// A queue to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSpec {
    pub name: String,
    /// 1 to 32,767.
    pub partitions: i32,
    /// How long a message is kept, in whole seconds, 1 or more.
    pub ttl_seconds: i64,
    /// The original's keys.
    pub configuration: BTreeMap<String, String>,
}

/// A subscriber to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriberSpec {
    pub name: String,
    /// `host:port` of fixed endpoints, called until the subscriber is deleted. Empty: it waits for one that registers.
    pub addresses: Vec<String>,
    /// Only messages of these topics. Empty: all.
    pub topics: Vec<Bytes>,
    /// Only these partitions. Empty: all.
    pub partitions: Vec<i16>,
    /// Where it begins. `None`: at the newest message.
    pub start: Option<Position>,
    /// Options as on the command line, without the dashes: `call-timeout` is `5s`.
    pub options: BTreeMap<String, String>,
}

/// Administers the queues of a broker.
#[derive(Clone, Debug)]
pub struct Admin {
    client: RpcClient,
}

impl Admin {
    pub(crate) fn new(client: RpcClient) -> Self {
        Self { client: client.with_call_timeout(PATIENCE) }
    }

    /// Makes a queue; returns when every partition has an owner. Says which parts of the configuration have no effect here.
    pub async fn create_queue(&self, spec: &QueueSpec) -> Result<Vec<String>, Error> {
        let spec = TQueueSpec {
            name: Some(spec.name.clone().into_bytes()),
            partitions: Some(spec.partitions),
            ttl_seconds: Some(spec.ttl_seconds),
            configuration: Some(spec.configuration.clone()),
        };
        Ok(self.client.call::<rpc::CreateQueue>(&rpc::CreateQueueArgs { spec }).await?)
    }

    /// All queues.
    pub async fn list_queues(&self) -> Result<Vec<QueueDescription>, Error> {
        let queues = self.client.call::<rpc::ListQueues>(&rpc::ListQueuesArgs {}).await?;
        Ok(queues.into_iter().map(QueueDescription::from).collect())
    }

    /// One queue.
    pub async fn describe_queue(&self, queue: &str) -> Result<QueueDescription, Error> {
        Ok(self.client.call::<rpc::DescribeQueue>(&rpc::DescribeQueueArgs { queue_name: queue.into() }).await?.into())
    }

    /// Refuses puts and holds pushes; scans go on.
    pub async fn disable_queue(&self, queue: &str) -> Result<(), Error> {
        Ok(self.client.call::<rpc::DisableQueue>(&rpc::DisableQueueArgs { queue_name: queue.into() }).await?)
    }

    /// Ends what [`disable_queue`](Self::disable_queue) began.
    pub async fn enable_queue(&self, queue: &str) -> Result<(), Error> {
        Ok(self.client.call::<rpc::EnableQueue>(&rpc::EnableQueueArgs { queue_name: queue.into() }).await?)
    }

    /// Removes a disabled queue with its messages and subscribers.
    pub async fn drop_queue(&self, queue: &str) -> Result<(), Error> {
        Ok(self.client.call::<rpc::DropQueue>(&rpc::DropQueueArgs { queue_name: queue.into() }).await?)
    }

    /// Removes all messages; subscribers stay, ids go on rising.
    pub async fn truncate_queue(&self, queue: &str) -> Result<(), Error> {
        Ok(self.client.call::<rpc::TruncateQueue>(&rpc::TruncateQueueArgs { queue_name: queue.into() }).await?)
    }

    /// Adds a subscriber.
    pub async fn add_subscriber(&self, queue: &str, spec: &SubscriberSpec) -> Result<(), Error> {
        let spec = TSubscriberSpec {
            name: Some(spec.name.clone().into_bytes()),
            addresses: Some(spec.addresses.clone()),
            topics: Some(spec.topics.iter().map(|t| t.to_vec()).collect()),
            partitions: Some(spec.partitions.clone()),
            start_position: spec.start.map(position_text),
            options: Some(spec.options.clone()),
        };
        let args = rpc::AddSubscriberArgs { queue_name: queue.into(), spec };
        Ok(self.client.call::<rpc::AddSubscriber>(&args).await?)
    }

    /// Removes a subscriber with its checkpoints.
    pub async fn delete_subscriber(&self, queue: &str, subscriber: &str) -> Result<(), Error> {
        let args = rpc::DeleteSubscriberArgs { queue_name: queue.into(), subscriber: subscriber.into() };
        Ok(self.client.call::<rpc::DeleteSubscriber>(&args).await?)
    }

    /// The subscribers of a queue.
    pub async fn list_subscribers(&self, queue: &str) -> Result<Vec<SubscriptionStatus>, Error> {
        let args = rpc::ListSubscribersArgs { queue_name: queue.into() };
        let subscribers = self.client.call::<rpc::ListSubscribers>(&args).await?;
        subscribers.into_iter().map(SubscriptionStatus::read).collect()
    }

    /// A queue's partitions and subscriptions at this moment.
    pub async fn queue_status(&self, queue: &str) -> Result<QueueStatus, Error> {
        QueueStatus::read(self.client.call::<rpc::QueueStatus>(&rpc::QueueStatusArgs { queue_name: queue.into() }).await?)
    }

    /// All brokers and queues.
    pub async fn cluster_status(&self) -> Result<ClusterStatus, Error> {
        Ok(self.client.call::<rpc::ClusterStatus>(&rpc::ClusterStatusArgs {}).await?.into())
    }

    /// `host:port` of the owner of each partition, in the order of the partitions.
    pub async fn locations(&self, queue: &str) -> Result<Vec<String>, Error> {
        let args = rpc::GetQueueLocationsArgs { queue_name: queue.into() };
        let owners = self.client.call::<rpc::GetQueueLocations>(&args).await?;
        Ok(owners.into_iter().map(|owner| String::from_utf8_lossy(&owner).into_owned()).collect())
    }
}

/// A name as a broker sends it.
fn text(name: Option<Vec<u8>>) -> String {
    name.map(|n| String::from_utf8_lossy(&n).into_owned()).unwrap_or_default()
}

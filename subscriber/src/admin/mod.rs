//! Administration: queues, subscribers, status.

mod description;
mod explanation;
mod status;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use hqueue_protocol::client::RpcClient;
use hqueue_protocol::generated::{TDeadLetterID, TMessageID, TQueueSpec, TSubscriberSpec};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::position::Position;
use hqueue_protocol::rpc;

pub use self::description::QueueDescription;
pub use self::explanation::{CallDetails, Explanation, MessageStanding};
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
    /// Bytes of messages that the queue may have over all partitions, 1 or more. `None`: as many as fit on the disk.
    pub max_bytes: Option<i64>,
    /// What happens then.
    pub when_full: WhenFull,
    /// With `DropOldest`: what a subscription has not consumed is not dropped before its time; puts are refused instead.
    pub keep_unread: bool,
}

/// What a put does for which a queue has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused, until messages expire or are truncated.
    #[default]
    Reject,
    /// The oldest messages go to make room.
    DropOldest,
}

impl WhenFull {
    /// As on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::DropOldest => "drop_oldest",
        }
    }
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
            max_bytes: spec.max_bytes,
            // Where there is no limit, only what is not the default is told, so that it is refused.
            when_full: (spec.max_bytes.is_some() || spec.when_full != WhenFull::default())
                .then(|| spec.when_full.name().to_owned()),
            keep_unread: spec.keep_unread.then_some(true),
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

    /// `host:port` of who has the messages of each partition: the region server, where they are in HBase, else the owner.
    pub async fn data_locations(&self, queue: &str) -> Result<Vec<String>, Error> {
        let args = rpc::GetDataLocationsArgs { queue_name: queue.into() };
        let hosts = self.client.call::<rpc::GetDataLocations>(&args).await?;
        Ok(hosts.into_iter().map(|host| String::from_utf8_lossy(&host).into_owned()).collect())
    }

    /// Gives a partition to a broker (its name, or `host:port`), where messages are in HBase. Returns when that one owns it.
    pub async fn move_partition(&self, queue: &str, partition: i16, broker: &str) -> Result<(), Error> {
        let args = rpc::MovePartitionArgs { queue_name: queue.into(), partition, broker: broker.to_owned() };
        Ok(self.client.call::<rpc::MovePartition>(&args).await?)
    }

    /// Off, the balancer gives away new queues and what gone brokers had, and moves nothing else.
    pub async fn switch_balancer(&self, on: bool) -> Result<(), Error> {
        Ok(self.client.call::<rpc::SwitchBalancer>(&rpc::SwitchBalancerArgs { on }).await?)
    }

    /// Whether the balancer is on.
    pub async fn is_balancer_on(&self) -> Result<bool, Error> {
        Ok(self.client.call::<rpc::IsBalancerOn>(&rpc::IsBalancerOnArgs {}).await?)
    }

    /// Changes options of a subscriber while it is served: names and values as on the command line, without the dashes. Those that are not
    /// named keep their values; all are checked before anything is changed.
    pub async fn set_subscriber(&self, queue: &str, subscriber: &str, options: &BTreeMap<String, String>) -> Result<(), Error> {
        let args = rpc::SetSubscriberArgs { queue_name: queue.into(), subscriber: subscriber.into(), options: options.clone() };
        Ok(self.client.call::<rpc::SetSubscriber>(&args).await?)
    }

    /// No more calls until the subscriber is resumed; those under way end.
    pub async fn pause_subscriber(&self, queue: &str, subscriber: &str) -> Result<(), Error> {
        let args = rpc::PauseSubscriberArgs { queue_name: queue.into(), subscriber: subscriber.into() };
        Ok(self.client.call::<rpc::PauseSubscriber>(&args).await?)
    }

    /// Ends a pause, and has a message that blocks tried again from 0 attempts.
    pub async fn resume_subscriber(&self, queue: &str, subscriber: &str) -> Result<(), Error> {
        let args = rpc::ResumeSubscriberArgs { queue_name: queue.into(), subscriber: subscriber.into() };
        Ok(self.client.call::<rpc::ResumeSubscriber>(&args).await?)
    }

    /// Moves a subscriber, forward or back: its next message is the first at or behind the position. No partitions: all.
    pub async fn seek_subscriber(
        &self,
        queue: &str,
        subscriber: &str,
        position: Position,
        partitions: &[i16],
    ) -> Result<(), Error> {
        let args = rpc::SeekSubscriberArgs {
            queue_name: queue.into(),
            subscriber: subscriber.into(),
            position: position_text(position),
            partitions: partitions.to_vec(),
        };
        Ok(self.client.call::<rpc::SeekSubscriber>(&args).await?)
    }

    /// What became of one message: for each subscriber, or for the one that is named.
    pub async fn explain_message(
        &self,
        queue: &str,
        partition: i16,
        id: MessageId,
        subscriber: Option<&str>,
    ) -> Result<Explanation, Error> {
        let id = TMessageID { timestamp: Some(id.timestamp), sequence_i_d: Some(id.sequence) };
        let subscriber = subscriber.unwrap_or_default().into();
        let args = rpc::ExplainMessageArgs { queue_name: queue.into(), partition, id, subscriber };
        Explanation::read(self.client.call::<rpc::ExplainMessage>(&args).await?)
    }

    /// Pushes dead letters to their subscriber again and removes those that it accepts. No ids: all. Returns after some seconds at the
    /// latest: to be repeated while there are more.
    pub async fn redrive_dead_letters(&self, queue: &str, subscriber: &str, ids: &[(i16, MessageId)]) -> Result<Redriven, Error> {
        let args = rpc::RedriveDeadLettersArgs { queue_name: queue.into(), subscriber: subscriber.into(), ids: letter_ids(ids) };
        let done = self.client.call::<rpc::RedriveDeadLetters>(&args).await?;
        Ok(Redriven {
            accepted: u32::try_from(done.accepted.unwrap_or_default()).unwrap_or_default(),
            more: done.more.unwrap_or_default(),
            error: done.error,
        })
    }

    /// Removes dead letters; returns how many. No ids: all of the subscriber.
    pub async fn drop_dead_letters(&self, queue: &str, subscriber: &str, ids: &[(i16, MessageId)]) -> Result<u32, Error> {
        let args = rpc::DropDeadLettersArgs { queue_name: queue.into(), subscriber: subscriber.into(), ids: letter_ids(ids) };
        let dropped = self.client.call::<rpc::DropDeadLetters>(&args).await?;
        Ok(u32::try_from(dropped).unwrap_or_default())
    }
}

/// A name as a broker sends it.
fn text(name: Option<Vec<u8>>) -> String {
    name.map(|n| String::from_utf8_lossy(&n).into_owned()).unwrap_or_default()
}

/// What came of a redrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redriven {
    /// Accepted by the subscriber, and no dead letters any more.
    pub accepted: u32,
    /// There are more: call again.
    pub more: bool,
    /// Why it stopped before the end; what was not accepted is still there.
    pub error: Option<String>,
}

fn letter_ids(ids: &[(i16, MessageId)]) -> Vec<TDeadLetterID> {
    let id = |id: &MessageId| TMessageID { timestamp: Some(id.timestamp), sequence_i_d: Some(id.sequence) };
    ids.iter().map(|(partition, at)| TDeadLetterID { partition: Some(*partition), id: Some(id(at)) }).collect()
}

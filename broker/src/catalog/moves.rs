//! Moving partitions by hand, and the balancer's switch.

use std::time::Duration;

use hqueue_coordination::{CoordinationError, Observed};
use hqueue_protocol::generated::TErrorCode;

use super::catalog::Catalog;
use super::queue::Queue;
use super::waiting::slow;
use crate::cluster::{Assignment, Cluster, OwnerRecord, SWITCHED_OFF};
use crate::paths;
use crate::refusal::Refusal;

/// How long a move may take: what is under way in the partition ends first.
const MOVE_PATIENCE: Duration = Duration::from_secs(20);
/// Tries against a balancer that writes the same node.
const TRIES: usize = 5;

impl Catalog {
    /// The cluster, if its partitions can move.
    fn moving(&self, what: &str) -> Result<&Cluster, Refusal> {
        match &self.cluster {
            Some(cluster) if self.hbase.is_some() => Ok(cluster),
            Some(_) => Err(Refusal::new(
                TErrorCode::WRONG_STATE,
                format!("{what}: messages are in the log of the broker that has the partition, and cannot leave it"),
            )),
            None => Err(Refusal::new(TErrorCode::WRONG_STATE, format!("{what}: this broker is the only one"))),
        }
    }

    /// Gives a partition to a broker. Returns when that one owns it.
    pub async fn move_partition(&self, queue: &Queue, partition: i16, broker: &str) -> Result<(), Refusal> {
        let cluster = self.moving("partitions of this cluster do not move")?;
        queue.check_partition(partition)?;
        let there = cluster.members.brokers();
        let name = there.iter().find(|(name, info)| *name == broker || info.address == broker).map(|(name, _)| name.clone());
        let Some(name) = name else {
            let known: Vec<&str> = there.keys().map(String::as_str).collect();
            return Err(Refusal::not_found(format!("there is no broker {broker:?}; those that are there: {}", known.join(", "))));
        };
        self.assign(queue, partition, &name).await?;
        let mut owner = self.coordinator.watch_node(&paths::owner(queue.name.as_str(), partition));
        let is_his = owner.wait_for(|seen| match seen {
            Observed::Seen(Some(node)) => {
                serde_json::from_slice::<OwnerRecord>(&node.payload).is_ok_and(|record| record.broker == name && record.epoch > 0)
            }
            _ => false,
        });
        if tokio::time::timeout(MOVE_PATIENCE, is_his).await.is_err() {
            return Err(slow(&format!(
                "partition {partition} of queue {} is given to broker {name}, which does not own it yet",
                queue.name
            )));
        }
        tracing::info!(queue = %queue.name, partition, broker = name, "moved by command");
        Ok(())
    }

    async fn assign(&self, queue: &Queue, partition: i16, broker: &str) -> Result<(), Refusal> {
        let path = paths::assignment(queue.name.as_str());
        for _ in 0..TRIES {
            let node = self.coordinator.get(&path).await?;
            let node = node.ok_or_else(|| slow(&format!("queue {} is not assigned to brokers yet", queue.name)))?;
            let assignment = Assignment::from_payload(&node.payload, queue.partitions())
                .map_err(|reason| Refusal::new(TErrorCode::FAILED, format!("its node {path} cannot be read: {reason}")))?;
            if assignment.broker_of(partition).is_some_and(|has| **has == *broker) {
                return Ok(());
            }
            let moved = assignment.moved(partition, broker, queue.partitions());
            match self.coordinator.set(&path, &moved.to_payload(), Some(node.version)).await {
                Ok(_) => return Ok(()),
                Err(CoordinationError::BadVersion { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::new(
            TErrorCode::BUSY,
            format!("the assignment of queue {} is being changed all the time: try again", queue.name),
        ))
    }

    /// Switches the balancer on or off. Off, it gives away new queues and what gone brokers had, and moves nothing else.
    pub async fn switch_balancer(&self, on: bool) -> Result<(), Refusal> {
        self.moving("the balancer of this cluster cannot be switched")?;
        let payload = if on { &b""[..] } else { SWITCHED_OFF };
        self.coordinator.set(paths::BALANCER, payload, None).await?;
        tracing::info!(on, "the balancer was switched by command");
        Ok(())
    }

    /// Whether the balancer is on.
    pub async fn is_balancer_on(&self) -> Result<bool, Refusal> {
        self.moving("the balancer of this cluster cannot be switched")?;
        let node = self.coordinator.get(paths::BALANCER).await?;
        Ok(node.is_none_or(|node| node.payload != SWITCHED_OFF))
    }
}

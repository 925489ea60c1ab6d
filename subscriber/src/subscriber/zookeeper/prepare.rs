//! What a broker does before a subscriber can register itself: it knows the queue, and makes the subscription if the name is new.

use std::time::{SystemTime, UNIX_EPOCH};

use hqueue_protocol::position::Position;
use hqueue_protocol::rpc::{DescribeQueue, DescribeQueueArgs};

use super::{ANSWER, SubscriberZooKeeper, nodes, payload};
use crate::admin::{Admin, SubscriberSpec};
use crate::cluster::paths;
use crate::error::{Error, ErrorCode};

impl SubscriberZooKeeper {
    /// Sees that there is a subscription. Returns the partitions that are wanted.
    pub(super) async fn prepare(&self) -> Result<Vec<i16>, Error> {
        let admin = Admin::new(self.client.clone());
        // Finds out, too, that a broker hangs: an administrator would wait longer.
        let args = DescribeQueueArgs { queue_name: self.queue.clone().into_bytes() };
        let described = self.client.with_call_timeout(ANSWER).call::<DescribeQueue>(&args).await?;
        let count = described.partitions.unwrap_or_default();
        let wanted = &self.subscription.partitions;
        if let Some(p) = wanted.keys().find(|p| !(0..count).contains(&i32::from(**p))) {
            let message = format!("queue {} has no partition {p}: it has {count}", self.queue);
            return Err(Error::Refused { code: ErrorCode::Invalid, message });
        }
        let partitions: Vec<i16> = match wanted.is_empty() {
            true => (0..i16::try_from(count).unwrap_or(i16::MAX)).collect(),
            false => wanted.keys().copied().collect(),
        };
        let start = self.begin_places(&partitions).await?;
        let spec = SubscriberSpec {
            name: self.subscription.name.clone(),
            topics: self.subscription.topics.clone(),
            partitions: wanted.keys().copied().collect(),
            start: Some(start),
            ..SubscriberSpec::default()
        };
        match admin.add_subscriber(&self.queue, &spec).await {
            Err(error) if error.code() != Some(ErrorCode::Exists) => Err(error),
            _ => Ok(partitions),
        }
    }

    /// Where a partition begins whose checkpoint is missing. After the start that is at the newest message: it was there before, and somebody
    /// has deleted it.
    pub(super) fn first_checkpoint(&self, partition: i16) -> Vec<u8> {
        let start = if self.began { Position::Latest } else { self.start_of(partition) };
        payload::checkpoint(start, now_ms())
    }

    fn start_of(&self, partition: i16) -> Position {
        let own = self.subscription.partitions.get(&partition).copied().flatten();
        own.unwrap_or(self.subscription.start)
    }

    /// A broker takes one start for all partitions. Where they differ, and the name is new, we write those checkpoints that we can tell; what
    /// is left begins at the newest message. Returns the start that the broker is to use.
    async fn begin_places(&self, partitions: &[i16]) -> Result<Position, Error> {
        let starts = || partitions.iter().map(|p| self.start_of(*p));
        let first = starts().next().unwrap_or(self.subscription.start);
        if starts().all(|start| start == first) {
            return Ok(first);
        }
        let name = &self.subscription.name;
        if self.coordinator().get(&paths::options(&self.queue, name)).await?.is_none() {
            let now = now_ms();
            for &p in partitions {
                let checkpoint = payload::checkpoint(self.start_of(p), now);
                if !checkpoint.is_empty() {
                    let (partition, base) = (paths::partition(&self.queue, p), paths::subscriber(&self.queue, p, name));
                    nodes::make_place(&**self.coordinator(), &partition, &base, &checkpoint).await?;
                }
            }
        }
        Ok(Position::Latest)
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

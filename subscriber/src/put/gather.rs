//! Messages that wait to be sent, gathered into batches by partition.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::args::PutArgs;
use super::outcome::{Outcome, PendingPut};
use super::{NewMessage, PlacedBatch};
use crate::error::Error;

/// A batch that fills, or is on its way.
#[derive(Debug)]
pub(super) struct Batch {
    partition: i16,
    pub(super) args: PutArgs,
    pub(super) outcome: Settler,
    /// What its messages hold of the producer's bound.
    pub(super) held_bytes: usize,
}

/// Settles an outcome. If nothing is said before it is dropped: as closed, or as unknown if the batch has left.
#[derive(Debug, Default)]
pub(super) struct Settler {
    outcome: Arc<Outcome>,
    sent: bool,
}

impl Settler {
    /// From now on the broker may have it.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    pub(super) fn settle(&self, result: Result<PlacedBatch, Error>) {
        self.outcome.settle(result);
    }
}

impl Drop for Settler {
    fn drop(&mut self) {
        let unknown = || Error::Unknown("the producer ended before the reply came; the messages may have been put".to_owned());
        self.settle(Err(if self.sent { unknown() } else { Error::Closed }));
    }
}

/// Batches in the order in which they began. The last of a partition takes further messages until it is full.
#[derive(Debug)]
pub(super) struct Gathering {
    queue: String,
    max_messages: u32,
    max_bytes: usize,
    waiting: VecDeque<Batch>,
    /// How many batches have left; the number of the first that waits.
    left: u64,
    /// The number of the last batch of each partition that has one waiting.
    last: HashMap<i16, u64>,
}

impl Gathering {
    pub(super) fn new(queue: String, max_messages: u32, max_bytes: usize) -> Self {
        Self { queue, max_messages, max_bytes, waiting: VecDeque::new(), left: 0, last: HashMap::new() }
    }

    /// Adds a message that holds `bytes` of the producer's bound.
    pub(super) fn push(&mut self, partition: i16, message: &NewMessage, bytes: usize) -> Result<PendingPut, Error> {
        let length = PutArgs::message_len(message);
        let (max_messages, max_bytes) = (self.max_messages, self.max_bytes);
        let has_room = |batch: &Batch| {
            batch.args.count() < max_messages && batch.args.byte_len() + length <= max_bytes && length <= batch.args.room()
        };
        let place = self.last.get(&partition).and_then(|number| usize::try_from(number - self.left).ok());
        if let Some(batch) = place.and_then(|place| self.waiting.get_mut(place)).filter(|batch| has_room(batch)) {
            return batch.push(message, bytes);
        }
        let args = PutArgs::new(&self.queue, partition);
        let mut batch = Batch { partition, args, outcome: Settler::default(), held_bytes: 0 };
        let pending = batch.push(message, bytes)?;
        self.last.insert(partition, self.left + self.waiting.len() as u64);
        self.waiting.push_back(batch);
        Ok(pending)
    }

    /// Takes the batch that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Batch> {
        let batch = self.waiting.pop_front()?;
        if self.last.get(&batch.partition) == Some(&self.left) {
            self.last.remove(&batch.partition);
        }
        self.left += 1;
        Some(batch)
    }
}

impl Batch {
    fn push(&mut self, message: &NewMessage, bytes: usize) -> Result<PendingPut, Error> {
        self.args.push(message)?;
        self.held_bytes += bytes;
        Ok(PendingPut::new(Arc::clone(&self.outcome.outcome), self.args.count() as usize - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value_bytes: usize) -> NewMessage {
        NewMessage::new("t", vec![b'x'; value_bytes])
    }

    /// Partition and number of messages of the batches that wait.
    fn drain(gathering: &mut Gathering) -> Vec<(i16, u32)> {
        std::iter::from_fn(|| gathering.pop()).map(|b| (b.partition, b.args.count())).collect()
    }

    #[test]
    fn messages_of_a_partition_share_a_batch_until_it_is_full() {
        let mut gathering = Gathering::new("q".to_owned(), 3, 1 << 20);
        for partition in [0, 1, 0, 0, 0, 1] {
            let _ = gathering.push(partition, &message(1), 1).unwrap();
        }
        assert_eq!(drain(&mut gathering), [(0, 3), (1, 2), (0, 1)]);
        assert!(gathering.pop().is_none());
    }

    #[test]
    fn a_batch_that_has_left_takes_no_more() {
        let mut gathering = Gathering::new("q".to_owned(), 10, 1 << 20);
        let _ = gathering.push(0, &message(1), 1).unwrap();
        let _ = gathering.push(1, &message(1), 1).unwrap();
        assert_eq!(gathering.pop().map(|b| (b.partition, b.args.count())), Some((0, 1)));
        for partition in [0, 1] {
            let _ = gathering.push(partition, &message(1), 1).unwrap();
        }
        assert_eq!(drain(&mut gathering), [(1, 2), (0, 1)]);
    }

    #[test]
    fn batches_are_bounded_in_bytes_but_hold_one_message_of_any_size() {
        let mut gathering = Gathering::new("q".to_owned(), 1000, 1000);
        for bytes in [400, 400, 400, 5000, 1] {
            let _ = gathering.push(0, &message(bytes), bytes).unwrap();
        }
        assert_eq!(drain(&mut gathering), [(0, 2), (0, 1), (0, 1), (0, 1)]);
        assert!(gathering.push(0, &message(17 << 20), 1).is_err());
        assert!(gathering.pop().is_none(), "what was refused leaves nothing behind");
    }

    #[tokio::test]
    async fn what_is_dropped_is_settled_as_closed() {
        let mut gathering = Gathering::new("q".to_owned(), 10, 1000);
        let pending = gathering.push(0, &message(1), 1).unwrap();
        assert!(!pending.is_settled());
        drop(gathering);
        assert_eq!(pending.placed().await, Err(Error::Closed));
        let mut gathering = Gathering::new("q".to_owned(), 10, 1000);
        let pending = gathering.push(0, &message(1), 1).unwrap();
        let mut batch = gathering.pop().unwrap();
        batch.outcome.sent();
        drop(batch);
        assert!(pending.placed().await.unwrap_err().may_have_been_carried_out());
    }
}

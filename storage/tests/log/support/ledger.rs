//! What was put, what was acknowledged, and whether a store still keeps its word about it.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_storage::clock::Clock;
use hqueue_storage::conformance::{ManualClock, Message, Queue, batch, try_scan};
use hqueue_storage::store::{Append, Cursor, MissingReason, StoreError};

use super::Lab;

/// One put of several messages.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) ids: Vec<MessageId>,
    pub(crate) values: Vec<String>,
    pub(crate) state: PutState,
    /// By the clock of the store.
    pub(crate) at_ms: i64,
}

impl Put {
    /// Is it one of the put's messages, as it was put?
    pub(crate) fn has(&self, message: &Message) -> bool {
        self.ids.iter().zip(&self.values).any(|(id, value)| *id == message.id && value.as_bytes() == message.value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutState {
    /// Must be there.
    Acknowledged,
    /// May be there.
    Unknown,
    /// Seen after a recovery: must be there from then on.
    Found,
    /// Not seen after a recovery, or removed by a command: must never be seen again.
    Gone,
}

/// The puts of a queue, by partition, in the order of their ids.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) puts: Vec<Vec<Put>>,
    made: u64,
    clock: Arc<ManualClock>,
}

/// A put on its way.
#[derive(Debug)]
pub(crate) struct Waiting {
    partition: i16,
    nth: usize,
    append: Append,
}

impl Ledger {
    pub(crate) fn new(lab: &Lab) -> Self {
        Self { puts: vec![Vec::new(); lab.spec.partitions as usize], made: 0, clock: Arc::clone(&lab.clock) }
    }

    /// Appends `messages` messages whose values tell them from all others, each with `filler` bytes more.
    pub(crate) fn append(
        &mut self,
        queue: &Queue,
        partition: i16,
        messages: usize,
        filler: usize,
    ) -> Result<Waiting, StoreError> {
        let values: Vec<String> =
            (0..messages).map(|n| format!("{partition}/{}/{n}/{}", self.made, "x".repeat(filler))).collect();
        self.made += 1;
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        let at_ms = self.clock.now_ms();
        let append = queue.store.append(partition, batch("t", &texts))?;
        let puts = &mut self.puts[partition as usize];
        let ids: Vec<MessageId> = append.ids.iter().collect();
        let before = puts.iter().filter(|put| put.state != PutState::Gone).filter_map(|put| put.ids.last()).max();
        assert!(before < ids.first(), "partition {partition}: id {:?} was given after {before:?}", ids.first());
        puts.push(Put { ids, values, state: PutState::Unknown, at_ms });
        Ok(Waiting { partition, nth: puts.len() - 1, append })
    }

    /// Waits for the answer and notes it.
    pub(crate) async fn settle(&mut self, waiting: Waiting) -> Result<(), StoreError> {
        let answer = waiting.append.done.await.unwrap_or(Err(StoreError::Closed));
        if answer.is_ok() {
            self.puts[waiting.partition as usize][waiting.nth].state = PutState::Acknowledged;
        }
        answer
    }

    /// A put that is waited for.
    pub(crate) async fn put(&mut self, queue: &Queue, partition: i16, messages: usize, filler: usize) -> Result<(), StoreError> {
        let waiting = self.append(queue, partition, messages, filler)?;
        self.settle(waiting).await
    }

    /// What was put before the clock's time less `ttl_ms` is older than the TTL. Every put must have been answered before the clock went on.
    pub(crate) fn expire(&mut self, ttl_ms: i64) {
        let now_ms = self.clock.now_ms();
        let expired = |put: &&mut Put| now_ms - put.at_ms > ttl_ms;
        self.puts.iter_mut().flatten().filter(expired).for_each(|put| put.state = PutState::Gone);
    }

    /// Everything put so far was removed by a command.
    pub(crate) fn all_gone(&mut self) {
        self.puts.iter_mut().flatten().for_each(|put| put.state = PutState::Gone);
    }

    /// Compares with what the store holds after a recovery: everything acknowledged is there, batches are whole, nothing is there
    /// that was never put or is gone, numbers have no gap.
    pub(crate) async fn check(&mut self, queue: &Queue) -> Result<(), String> {
        for partition in 0..self.puts.len() as i16 {
            let all = try_scan(&*queue.store, partition, Cursor::at(MessageId::MIN), 100_000).await;
            let found = all.map_err(|error| format!("partition {partition} cannot be read: {error}"))?;
            if let Some(missing) = found.missing.iter().find(|m| m.why == MissingReason::Damaged) {
                return Err(format!("partition {partition}: {} messages are reported as damaged", missing.messages));
            }
            check_partition(&mut self.puts[partition as usize], &found.messages)
                .map_err(|what| format!("partition {partition}: {what}"))?;
        }
        Ok(())
    }
}

fn check_partition(puts: &mut [Put], found: &[Message]) -> Result<(), String> {
    let mut rest = found;
    for at in 0..puts.len() {
        let Put { ids, values, state, .. } = &puts[at];
        if *state == PutState::Gone {
            continue;
        }
        let here = rest.iter().take_while(|message| message.id <= ids[ids.len() - 1]).count();
        let (these, others) = rest.split_at(here);
        if these.is_empty() {
            if *state != PutState::Unknown {
                return Err(format!("{} was acknowledged and is lost", ids[0]));
            }
            puts[at].state = PutState::Gone;
            continue;
        }
        if !these.iter().map(|message| (&message.id, &message.value[..])).eq(ids.iter().zip(values.iter().map(String::as_bytes)))
        {
            let (first, messages) = (ids[0], ids.len());
            return Err(stranger(puts, these).unwrap_or(format!("of {messages} messages from {first} on {here} are there")));
        }
        if *state == PutState::Unknown {
            puts[at].state = PutState::Found;
        }
        rest = others;
    }
    stranger(puts, rest).map_or(Ok(()), Err)
}

/// Names the first message that should not be there.
fn stranger(puts: &[Put], found: &[Message]) -> Option<String> {
    let of = |message: &Message| puts.iter().find(|put| put.values.iter().any(|value| value.as_bytes() == message.value));
    found.iter().find_map(|message| match of(message) {
        None => Some(format!("{} is there and was never put", message.id)),
        Some(put) if put.state == PutState::Gone => Some(format!("{} was gone and is back", message.id)),
        Some(put) if !put.ids.contains(&message.id) => Some(format!("{} has the value of {}", message.id, put.ids[0])),
        Some(_) => None,
    })
}

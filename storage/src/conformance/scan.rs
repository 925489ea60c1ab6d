//! Reading a partition to its end, with every promise about blocks checked on the way.

use std::collections::BTreeMap;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PREFIX_LEN, TopicTable};

use crate::store::{Block, Cursor, Missing, MissingReason, QueueStore, ReadBatch, StoreError};

/// One message, taken out of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub number: u64,
    pub topic: Vec<u8>,
    pub value: Vec<u8>,
    /// The fields from the topic on, as they are stored.
    pub fields: Vec<u8>,
    pub arrival_ms: i64,
}

/// What a reader got.
#[derive(Debug, Default)]
pub struct Scanned {
    pub messages: Vec<Message>,
    pub missing: Vec<Missing>,
    pub next: Option<Cursor>,
}

impl Scanned {
    /// Ids in the order in which they were read.
    pub fn ids(&self) -> Vec<MessageId> {
        self.messages.iter().map(|message| message.id).collect()
    }

    /// Values as text.
    pub fn texts(&self) -> Vec<String> {
        self.messages.iter().map(|message| String::from_utf8_lossy(&message.value).into_owned()).collect()
    }

    /// How many messages were reported as missing for this reason.
    pub fn missing_because(&self, why: MissingReason) -> u64 {
        self.missing.iter().filter(|missing| missing.why == why).map(|missing| missing.messages).sum()
    }

    fn take(&mut self, from: MessageId, batch: &ReadBatch) {
        self.missing.extend(&batch.missing);
        for block in &batch.blocks {
            for message in open_block(block).into_iter().filter(|message| message.id >= from) {
                if let Some(before) = self.messages.last() {
                    assert!(before.id < message.id, "{} was read before {}", before.id, message.id);
                    assert!(before.number < message.number, "number {} before {}", before.number, message.number);
                }
                self.messages.push(message);
            }
        }
    }

    /// Between the first and the last message read, a gap in the numbers is no larger than what was reported as missing.
    fn check_gaps(&self) {
        let (Some(first), Some(last)) = (self.messages.first(), self.messages.last()) else { return };
        let gaps = last.number - first.number + 1 - self.messages.len() as u64;
        let reported: u64 = self.missing.iter().map(|missing| missing.messages).sum();
        assert!(gaps <= reported, "{gaps} numbers are missing between the messages, {reported} were reported");
    }
}

/// Reads a partition from `from` to its end in reads of `max_bytes`.
///
/// # Panics
/// If a read fails, or anything that was read breaks a promise of the seam.
pub async fn scan(store: &dyn QueueStore, partition: i16, from: Cursor, max_bytes: usize) -> Scanned {
    try_scan(store, partition, from, max_bytes).await.unwrap()
}

/// The same where a read may fail.
///
/// # Errors
/// What the first read that fails answers.
pub async fn try_scan(store: &dyn QueueStore, partition: i16, from: Cursor, max_bytes: usize) -> Result<Scanned, StoreError> {
    let mut found = Scanned::default();
    let mut cursor = from;
    loop {
        let batch = store.read(partition, cursor, max_bytes).await?;
        check_batch(&batch, partition, cursor.from, max_bytes);
        found.take(from.from, &batch);
        // A read that stands still would go on for ever.
        let moved = batch.next.from > cursor.from || batch.next.hint != cursor.hint;
        assert!(batch.at_end || moved, "a read at {} found no end and moved nowhere", cursor.from);
        cursor = batch.next;
        if batch.at_end {
            break;
        }
    }
    found.check_gaps();
    found.next = Some(cursor);
    Ok(found)
}

fn check_batch(batch: &ReadBatch, partition: i16, from: MessageId, max_bytes: usize) {
    let mut sum = 0;
    for (n, block) in batch.blocks.iter().enumerate() {
        assert_eq!(block.partition, partition);
        assert!(block.last >= from, "a block that ends at {} for a read from {from}", block.last);
        assert!(n == 0 || block.first > from, "only the first block may begin below {from}");
        sum += block.byte_len();
        assert!(n == 0 || sum <= max_bytes, "{sum} bytes in {} blocks, asked for {max_bytes}", n + 1);
    }
    assert!(batch.next.from >= from, "a read from {from} goes on at {}", batch.next.from);
    if let Some(last) = batch.blocks.last() {
        assert!(batch.next.from > last.last, "goes on at {} behind {}", batch.next.from, last.last);
    }
}

/// The messages of a block; its header must say what they are.
pub(super) fn open_block(block: &Block) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut topics: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for part in &block.parts {
        let before = messages.len();
        for message in part.messages() {
            let message = message.unwrap();
            assert_eq!(message.partition, block.partition, "the partition inside message {}", message.id);
            *topics.entry(message.topic.to_vec()).or_default() += 1;
            messages.push(Message {
                id: message.id,
                number: block.number + messages.len() as u64,
                topic: message.topic.to_vec(),
                value: message.value.to_vec(),
                fields: message.raw[PREFIX_LEN..].to_vec(),
                arrival_ms: block.arrival_ms,
            });
        }
        assert_eq!(messages.len() - before, part.count as usize, "the count of a part");
        assert_eq!(messages.get(before).map(|m: &Message| m.id), Some(part.first));
        assert_eq!(messages.last().map(|m| m.id), Some(part.last));
    }
    assert_eq!(messages.len(), block.count as usize, "the count of a block");
    assert_eq!(messages.first().map(|m| m.id), Some(block.first));
    assert_eq!(messages.last().map(|m| m.id), Some(block.last));
    if let TopicTable::Few(noted) = &block.topics {
        let noted: BTreeMap<Vec<u8>, u32> = noted.iter().map(|(topic, count)| (topic.to_vec(), *count)).collect();
        assert_eq!(noted, topics, "the topics that a block notes");
    }
    messages
}

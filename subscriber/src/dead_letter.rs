//! Messages that a subscriber could not consume.

use bytes::Bytes;
use hqueue_protocol::id::MessageId;

use crate::error::{Error, ErrorCode};
use crate::message::Message;
use crate::queue::Queue;
use crate::scan::{PartitionScanner, Scan};

/// What the broker has put before the names of its own headers.
const PREFIX: &str = "hq-";

/// A dead letter: the message as it was, and its story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Partition, id, topic, value and headers as in the queue where it could not be consumed.
    pub message: Message,
    /// How often it was tried.
    pub attempts: u32,
    /// The last reason.
    pub last_error: String,
    /// When it became a dead letter, in milliseconds since 1970 UTC.
    pub since_ms: i64,
}

impl DeadLetter {
    /// From a message of a dead-letter queue; `None` if it is no dead letter.
    #[must_use]
    pub fn from_message(message: &Message) -> Option<Self> {
        let header = |name: &str| message.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let text = |name: &str| header(name).and_then(|value| String::from_utf8(value.to_vec()).ok());
        let original = Message {
            partition: text("hq-partition")?.parse().ok()?,
            id: text("hq-id")?.parse().ok()?,
            topic: header("hq-topic").unwrap_or_else(Bytes::new),
            value: message.value.clone(),
            headers: message.headers.iter().filter(|(name, _)| !name.starts_with(PREFIX)).cloned().collect(),
        };
        Some(Self {
            message: original,
            attempts: text("hq-attempts").and_then(|n| n.parse().ok()).unwrap_or_default(),
            last_error: header("hq-error").map(|e| String::from_utf8_lossy(&e).into_owned()).unwrap_or_default(),
            since_ms: message.id.timestamp,
        })
    }
}

/// Reads the dead letters of one subscriber, oldest first.
#[derive(Debug)]
pub struct DeadLetters {
    scanner: Option<PartitionScanner>,
}

impl DeadLetters {
    pub(crate) async fn open(queue: &Queue, letters: &Queue, subscriber: &str) -> Result<Self, Error> {
        let scan = Scan { topics: vec![Bytes::copy_from_slice(subscriber.as_bytes())], ..Scan::default() };
        let scanner = match letters.partitions().await {
            Ok(_) => Some(letters.partition_scanner(0, scan)),
            // None has ever been made, if the queue itself is there.
            Err(Error::Refused { code: ErrorCode::NotFound, .. }) => {
                queue.partitions().await?;
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self { scanner })
    }

    /// The next ones, at most so many; empty at the end.
    pub async fn next_batch(&mut self, most: usize) -> Result<Vec<DeadLetter>, Error> {
        let Some(scanner) = &mut self.scanner else { return Ok(Vec::new()) };
        loop {
            let messages = scanner.next_batch(most).await?;
            if messages.is_empty() {
                return Ok(Vec::new());
            }
            let letters: Vec<_> = messages.iter().filter_map(DeadLetter::from_message).collect();
            if !letters.is_empty() {
                return Ok(letters);
            }
        }
    }
}

/// Where a dead letter was: what redrive and drop name it by.
impl From<&DeadLetter> for (i16, MessageId) {
    fn from(letter: &DeadLetter) -> Self {
        (letter.message.partition, letter.message.id)
    }
}

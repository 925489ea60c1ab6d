//! What became of a message.

use bytes::Bytes;
use hqueue_protocol::generated::{TCallDetails, TExplanation, TMessageID, TMessageStanding};
use hqueue_protocol::id::MessageId;

use super::text;
use crate::error::Error;

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub queue: String,
    pub partition: i16,
    pub id: MessageId,
    /// `stored`; `never`: there is none and was none; `expired`, `truncated`, `dropped`, `damaged`; `gone`: one of these, or never. Later
    /// versions may have more.
    pub state: String,
    /// The same in a sentence.
    pub text: String,
    /// `None`: the message is not there.
    pub topic: Option<Bytes>,
    /// In the order of their names.
    pub subscriptions: Vec<MessageStanding>,
}

/// Where a message stands with one subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageStanding {
    pub subscriber: String,
    /// `delivered`, `in_flight`, `waiting`, `filtered`, `dead_lettered`, `redriven`, `letter_gone`, `passed_over`, `below_checkpoint`,
    /// `before_start`, `not_read`, `expired`, `truncated`, `dropped`, `damaged`; `idl/hqueue.thrift` says what they mean. Later versions may
    /// have more.
    pub state: String,
    /// Why it waits; `None`: it does not.
    pub reason: Option<String>,
    /// All of it in a sentence.
    pub text: String,
    /// When it came to be so, RFC 3339.
    pub time: Option<String>,
    /// `host:port`.
    pub endpoint: Option<String>,
    /// How often it was tried, with the call that is under way.
    pub attempts: Option<i32>,
    pub last_error: Option<String>,
    /// The oldest message that it waits behind.
    pub behind: Option<MessageId>,
    /// So many that the subscription wants lie before it, or fewer.
    pub ahead: Option<i64>,
    /// It is tried again at the latest after so many milliseconds.
    pub wait_ms: Option<i64>,
    /// Its dead letter in the dead-letter queue.
    pub letter: Option<MessageId>,
    /// The last calls that carried it, oldest first, as far as the broker has them in memory.
    pub calls: Vec<CallDetails>,
}

/// A call that carried a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallDetails {
    /// When it ended, RFC 3339.
    pub time: String,
    /// `host:port`.
    pub endpoint: String,
    /// Which attempt it was; if it did not count, those before it.
    pub attempt: i32,
    /// What came of it for the message.
    pub result: String,
}

impl Explanation {
    pub(super) fn read(read: TExplanation) -> Result<Self, Error> {
        let standings = read.subscriptions.unwrap_or_default().into_iter().map(MessageStanding::read);
        Ok(Self {
            queue: text(read.queue_name),
            partition: read.partition.unwrap_or_default(),
            id: read.id.and_then(id).ok_or_else(|| Error::bad_reply("an explanation", "it names no message"))?,
            state: read.state.unwrap_or_default(),
            text: read.text.unwrap_or_default(),
            topic: read.topic.map(Bytes::from),
            subscriptions: standings.collect(),
        })
    }
}

impl MessageStanding {
    fn read(read: TMessageStanding) -> Self {
        Self {
            subscriber: text(read.subscriber),
            state: read.state.unwrap_or_default(),
            reason: read.reason,
            text: read.text.unwrap_or_default(),
            time: read.time,
            endpoint: read.endpoint,
            attempts: read.attempts,
            last_error: read.last_error,
            behind: read.behind.and_then(id),
            ahead: read.ahead,
            wait_ms: read.wait_ms,
            letter: read.letter_i_d.and_then(id),
            calls: read.calls.unwrap_or_default().into_iter().map(CallDetails::from).collect(),
        }
    }
}

impl From<TCallDetails> for CallDetails {
    fn from(read: TCallDetails) -> Self {
        Self {
            time: read.time.unwrap_or_default(),
            endpoint: read.endpoint.unwrap_or_default(),
            attempt: read.attempt.unwrap_or_default(),
            result: read.result.unwrap_or_default(),
        }
    }
}

fn id(read: TMessageID) -> Option<MessageId> {
    Some(MessageId::new(read.timestamp?, read.sequence_i_d?))
}

//! Messages as tests see them: everything that must be there is there.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hqueue_protocol::generated::{TMessage, TMessageID};

/// A message id; its order is that of the messages of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    pub timestamp: i64,
    pub sequence: i16,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.timestamp, self.sequence)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no id");
        let (timestamp, sequence) = text.split_once(':').ok_or_else(bad)?;
        Ok(Self { timestamp: timestamp.parse().map_err(|_| bad())?, sequence: sequence.parse().map_err(|_| bad())? })
    }
}

impl From<Id> for TMessageID {
    fn from(id: Id) -> Self {
        Self::new(id.timestamp, id.sequence)
    }
}

impl From<&TMessageID> for Id {
    /// # Panics
    /// If a part is missing.
    fn from(id: &TMessageID) -> Self {
        Self { timestamp: id.timestamp.expect("an id has a timestamp"), sequence: id.sequence_i_d.expect("an id has a sequence") }
    }
}

/// A message that a broker handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: Id,
    pub partition: i16,
    pub topic: Vec<u8>,
    pub value: Vec<u8>,
    pub headers: BTreeMap<String, Vec<u8>>,
}

impl Message {
    /// The value as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.value).expect("the value is text")
    }
}

impl From<TMessage> for Message {
    /// # Panics
    /// If a broker has left something out.
    fn from(message: TMessage) -> Self {
        Self {
            id: Id::from(message.id.as_ref().expect("a message has an id")),
            partition: message.partition_i_d.expect("a message has a partition"),
            topic: message.topic.expect("a message has a topic"),
            value: message.value.expect("a message has a value"),
            headers: message.headers.unwrap_or_default(),
        }
    }
}

/// A message to be put.
#[must_use]
pub fn to_put(topic: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> TMessage {
    TMessage::new(None, None, topic.into(), value.into(), None)
}

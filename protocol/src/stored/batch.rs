//! The messages of one put on their way into the log.

use bytes::Bytes;

use super::message::{self, BLANK_PREFIX, PREFIX_LEN, StoredMessage};
use super::slice::StoredSlice;
use super::topics::TopicTable;
use crate::id::MessageId;
use crate::wire::WireError;

/// Headers of a message: name and value.
pub type Headers<'a> = &'a [(&'a str, &'a [u8])];

/// The messages of one put in stored form, ids and partition still blank.
///
/// What is added here is not checked: [`read_put`](super::read_put) has checked what came from a client.
#[derive(Debug, Default)]
pub struct PutBatch {
    bytes: Vec<u8>,
    /// How many bytes each message has.
    lengths: Vec<usize>,
    topics: TopicTable,
}

impl PutBatch {
    /// Room for `bytes` bytes in `messages` messages before memory is taken again.
    #[must_use]
    pub fn with_capacity(messages: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), lengths: Vec::with_capacity(messages), topics: TopicTable::default() }
    }

    /// Adds a message from its parts.
    pub fn push(&mut self, topic: &[u8], value: &[u8], headers: Headers<'_>) {
        self.push_with(topic, value, headers, &[]);
    }

    /// The same, with encoded fields that we do not know behind them.
    pub fn push_with(&mut self, topic: &[u8], value: &[u8], headers: Headers<'_>, more: &[u8]) {
        let begin = self.begin_message();
        message::write_fields(&mut self.bytes, topic, value, headers, more);
        self.end_message(begin);
        self.topics.add(topic, 1);
    }

    /// Adds a message whose fields from 3 on, and the end, stand encoded in `fields`.
    pub fn push_fields(&mut self, topic: &[u8], fields: &[u8]) {
        let begin = self.begin_message();
        self.bytes.extend_from_slice(fields);
        self.end_message(begin);
        self.topics.add(topic, 1);
    }

    /// Messages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// A view of each message; ids and partition are still blank.
    pub fn messages(&self) -> impl Iterator<Item = Result<StoredMessage<'_>, WireError>> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map(move |length| {
            let (message, behind) = rest.split_at_checked(*length).ok_or(WireError::Truncated)?;
            rest = behind;
            message::read(message)
        })
    }

    /// Bytes in stored form.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    #[must_use]
    pub fn topics(&self) -> &TopicTable {
        &self.topics
    }

    /// Fills in the partition and the ids that `next_id` gives, one for each message in order. `None` if there is no message.
    pub fn seal(mut self, partition: i16, mut next_id: impl FnMut() -> MessageId) -> Option<StoredSlice> {
        let mut first = None;
        let mut last = MessageId::MIN;
        let mut rest = self.bytes.as_mut_slice();
        for length in &self.lengths {
            let id = next_id();
            first.get_or_insert(id);
            last = id;
            let (message, behind) = rest.split_at_mut_checked(*length)?;
            message::fill_prefix(message.first_chunk_mut::<PREFIX_LEN>()?, id, partition);
            rest = behind;
        }
        let count = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        first.map(|first| StoredSlice { bytes: Bytes::from(self.bytes), count, first, last })
    }

    /// Begins a message: its fields go to the end of what this returns, then [`end_message`](Self::end_message) is due.
    #[inline]
    pub(super) fn begin_message(&mut self) -> usize {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&BLANK_PREFIX);
        begin
    }

    /// Ends the message that began at `begin`. Its topic is to be noted too.
    #[inline]
    pub(super) fn end_message(&mut self, begin: usize) {
        self.lengths.push(self.bytes.len() - begin);
    }

    pub(super) fn fields_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn note_topic(&mut self, topic: &[u8], count: u32) {
        if count > 0 {
            self.topics.add(topic, count);
        }
    }

    /// Gives back memory that was taken for what did not come: the bytes may live long.
    pub(super) fn trim(&mut self) {
        if self.bytes.capacity() / 2 > self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
    }
}

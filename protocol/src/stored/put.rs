//! From the arguments of a put to stored messages, stepping over the encoded bytes.
//!
//! ```text
//! putMessage           1: queue  2: message
//! putMessages          1: queue  2: list of messages
//! putMessageWithPid    1: queue  2: partition  3: message
//! putMessagesWithPid   1: queue  2: partition  3: list of messages      putMessagesForIds likewise
//! ```
//!
//! In the binary protocol a message is taken over with one copy, unless its fields stand in an unusual order; from the compact
//! protocol its fields are written anew. The id and the partition that a client has set are left out.

use super::batch::PutBatch;
use super::message::FIELD_DEPTH;
use super::put_error::PutError;
use crate::limits::{MAX_STORED_MESSAGE_BYTES, MAX_STORED_PUT_BYTES, MAX_TOPIC_BYTES};
use crate::stored::PREFIX_LEN;
use crate::wire::binary::Binary;
use crate::wire::compact::Compact;
use crate::wire::{Encode, Encoding, Field, Kind, Protocol, WireError, copy_field, skip};

/// What the arguments of a put method are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutShape {
    /// `putMessage`.
    Message,
    /// `putMessages`.
    List,
    /// `putMessageWithPid`.
    PartitionAndMessage,
    /// `putMessagesWithPid` and `putMessagesForIds`.
    PartitionAndList,
}

impl PutShape {
    /// By the method's name; `None` if it is no put.
    #[must_use]
    pub fn of_method(method: &[u8]) -> Option<Self> {
        match method {
            b"putMessage" => Some(Self::Message),
            b"putMessages" => Some(Self::List),
            b"putMessageWithPid" => Some(Self::PartitionAndMessage),
            b"putMessagesWithPid" | b"putMessagesForIds" => Some(Self::PartitionAndList),
            _ => None,
        }
    }

    const fn has_partition(self) -> bool {
        matches!(self, Self::PartitionAndMessage | Self::PartitionAndList)
    }

    /// Name, id and kind of the argument that has the messages.
    const fn messages(self) -> (&'static str, i16, Kind) {
        match self {
            Self::Message => ("tMessage", 2, Kind::Struct),
            Self::List => ("tMessages", 2, Kind::List),
            Self::PartitionAndMessage => ("tMessage", 3, Kind::Struct),
            Self::PartitionAndList => ("tMessages", 3, Kind::List),
        }
    }
}

/// A put that is within all limits that do not depend on the queue.
#[derive(Debug)]
pub struct PutRequest<'a> {
    /// As it came: to be made a [`QueueName`](crate::names::QueueName).
    pub queue: &'a [u8],
    /// As it came, perhaps negative. From the argument; of `putMessage` from the message, if that names one.
    pub partition: Option<i16>,
    /// Empty if the client has sent an empty list.
    pub batch: PutBatch,
}

/// Reads the arguments' struct of a put, which is complete in `args`. A value may have `max_message_bytes` bytes.
///
/// Takes memory for what is there, not for what a count announces, and nothing per message.
pub fn read_put(protocol: Protocol, args: &[u8], shape: PutShape, max_message_bytes: usize) -> Result<PutRequest<'_>, PutError> {
    match protocol {
        Protocol::Binary => Reader::<Binary>::new(args, max_message_bytes).request(shape),
        Protocol::Compact => Reader::<Compact>::new(args, max_message_bytes).request(shape),
    }
}

/// The queue that a put names in its first argument, also if the put is refused for something else.
#[must_use]
pub fn queue_of_put(protocol: Protocol, args: &[u8]) -> Option<&[u8]> {
    match protocol {
        Protocol::Binary => Reader::<Binary>::new(args, 0).queue(),
        Protocol::Compact => Reader::<Compact>::new(args, 0).queue(),
    }
}

/// A protocol from which messages are taken.
trait Source: Encoding {
    /// Fields can be copied as they are.
    const IS_STORED_FORM: bool;
}

impl Source for Binary {
    const IS_STORED_FORM: bool = true;
}

impl Source for Compact {
    const IS_STORED_FORM: bool = false;
}

struct Reader<'a, E> {
    args: &'a [u8],
    at: usize,
    max_message_bytes: usize,
    batch: PutBatch,
    /// The topic of the last messages, and how many of them have it: noted once it changes.
    topic_run: (&'a [u8], u32),
    protocol: std::marker::PhantomData<E>,
}

impl<'a, E: Source> Reader<'a, E> {
    fn new(args: &'a [u8], max_message_bytes: usize) -> Self {
        let protocol = std::marker::PhantomData;
        Self { args, at: 0, max_message_bytes, batch: PutBatch::default(), topic_run: (&[], 0), protocol }
    }

    fn queue(mut self) -> Option<&'a [u8]> {
        let field = E::field(self.args, &mut self.at, 0).ok()??;
        if (field.id, field.kind) == (1, Kind::String) { E::string(self.args, &mut self.at).ok() } else { None }
    }

    fn request(mut self, shape: PutShape) -> Result<PutRequest<'a>, PutError> {
        let (mut queue, mut partition, mut own_partition, mut has_messages) = (None, None, None, false);
        let (name, messages_id, messages_kind) = shape.messages();
        let mut last = 0;
        while let Some(field) = E::field(self.args, &mut self.at, last)? {
            last = field.id;
            match (field.id, field.kind) {
                (1, Kind::String) => queue = Some(E::string(self.args, &mut self.at)?),
                (2, Kind::I16) if shape.has_partition() => partition = Some(E::i16(self.args, &mut self.at)?),
                (id, kind) if (id, kind) == (messages_id, messages_kind) => {
                    if has_messages {
                        return Err(PutError::ArgumentTwice { name });
                    }
                    has_messages = true;
                    own_partition = self.messages(kind)?;
                }
                (id, _) if (1..=messages_id).contains(&id) => return Err(PutError::ArgumentKind { field: id }),
                _ if field.inline.is_some() => {}
                (_, kind) => skip::<E>(self.args, &mut self.at, kind, 1)?,
            }
        }
        let missing = |name| PutError::ArgumentMissing { name };
        let queue = queue.ok_or(missing("queueName"))?;
        if shape.has_partition() && partition.is_none() {
            return Err(missing("partitionID"));
        }
        if !has_messages {
            return Err(missing(name));
        }
        self.batch.note_topic(self.topic_run.0, self.topic_run.1);
        self.batch.trim();
        Ok(PutRequest { queue, partition: partition.or(own_partition), batch: self.batch })
    }

    /// One message or a list. Returns the partition that a single one names.
    fn messages(&mut self, kind: Kind) -> Result<Option<i16>, PutError> {
        if kind == Kind::Struct {
            self.reserve(1);
            return self.message();
        }
        let (element, count) = E::list(self.args, &mut self.at)?;
        if count > 0 && element != Kind::Struct {
            return Err(PutError::NotMessages);
        }
        self.reserve(count as usize);
        for _ in 0..count {
            self.message()?;
        }
        Ok(None)
    }

    /// Makes room for what is there at most.
    fn reserve(&mut self, count: usize) {
        // What a message of two short fields gains: the prefix, and in the binary protocol longer heads.
        let growth = if E::IS_STORED_FORM { PREFIX_LEN } else { PREFIX_LEN + 10 };
        let there = self.args.len().saturating_sub(self.at);
        let count = count.min(there / E::MIN_MESSAGE_BYTES);
        self.batch = PutBatch::with_capacity(count, (there + count * growth).min(MAX_STORED_PUT_BYTES));
    }

    /// Steps over a message and appends it to the batch. Returns the partition that it names.
    #[inline]
    fn message(&mut self) -> Result<Option<i16>, PutError> {
        let args = self.args;
        let begin = self.batch.begin_message();
        let (mut topic, mut has_value, mut partition) = (None, false, None);
        let (mut last, mut last_kept) = (0, 0);
        // Fields that follow one another and are kept are copied together.
        let mut kept_from = self.at;
        loop {
            let field_at = self.at;
            let Some(field) = E::field(args, &mut self.at, last)? else { break };
            last = field.id;
            match (field.id, field.kind) {
                (1, Kind::Struct) | (2, Kind::I16) => {
                    if field.id == 2 {
                        partition = Some(E::i16(args, &mut self.at)?);
                    } else {
                        skip::<E>(args, &mut self.at, field.kind, FIELD_DEPTH)?;
                    }
                    self.copy(kept_from, field_at);
                    kept_from = self.at;
                    continue;
                }
                (3, Kind::String) => topic = Some(self.topic(last_kept)?),
                (4, Kind::String) => {
                    self.value(last_kept)?;
                    has_value = true;
                }
                (5, Kind::Map) => self.headers(last_kept)?,
                (1..=5, _) => return Err(PutError::FieldKind { message: self.number(), field: field.id }),
                _ => self.unknown(field, last_kept)?,
            }
            last_kept = field.id;
        }
        self.copy(kept_from, self.at);
        if !E::IS_STORED_FORM {
            Binary::write_end(self.batch.fields_mut());
        }
        let topic = topic.ok_or_else(|| PutError::NoTopic { message: self.number() })?;
        if !has_value {
            return Err(PutError::NoValue { message: self.number() });
        }
        self.end_message(begin, topic)?;
        Ok(partition)
    }

    /// Takes over encoded fields if they are in stored form; the others have been written one by one.
    #[inline]
    fn copy(&mut self, from: usize, to: usize) {
        if E::IS_STORED_FORM {
            self.batch.fields_mut().extend_from_slice(self.args.get(from..to).unwrap_or_default());
        }
    }

    fn topic(&mut self, last: i16) -> Result<&'a [u8], PutError> {
        let topic = E::string(self.args, &mut self.at)?;
        if topic.is_empty() || topic.len() > MAX_TOPIC_BYTES {
            return Err(PutError::TopicSize { message: self.number(), size: topic.len() });
        }
        self.keep_string(3, last, topic);
        Ok(topic)
    }

    fn value(&mut self, last: i16) -> Result<(), PutError> {
        let value = E::string(self.args, &mut self.at)?;
        if value.len() > self.max_message_bytes {
            let (size, limit) = (value.len(), self.max_message_bytes);
            return Err(PutError::ValueTooLarge { message: self.number(), size, limit });
        }
        self.keep_string(4, last, value);
        Ok(())
    }

    #[inline]
    fn keep_string(&mut self, id: i16, last: i16, string: &[u8]) {
        if !E::IS_STORED_FORM {
            let out = self.batch.fields_mut();
            Binary::write_field(out, Kind::String, id, last);
            Binary::write_string(out, string);
        }
    }

    /// Consumers in some languages fail at names that are no UTF-8, so they are not let in.
    fn headers(&mut self, last: i16) -> Result<(), PutError> {
        let (key, value, count) = E::map(self.args, &mut self.at)?;
        if count > 0 && (key, value) != (Kind::String, Kind::String) {
            return Err(PutError::FieldKind { message: self.number(), field: 5 });
        }
        if !E::IS_STORED_FORM {
            let out = self.batch.fields_mut();
            Binary::write_field(out, Kind::Map, 5, last);
            Binary::write_map(out, Kind::String, Kind::String, count);
        }
        for _ in 0..count {
            let name = E::string(self.args, &mut self.at)?;
            let value = E::string(self.args, &mut self.at)?;
            if std::str::from_utf8(name).is_err() {
                return Err(PutError::HeaderName { message: self.number() });
            }
            if !E::IS_STORED_FORM {
                let out = self.batch.fields_mut();
                Binary::write_string(out, name);
                Binary::write_string(out, value);
            }
        }
        Ok(())
    }

    /// A field that we do not know is kept as it came.
    fn unknown(&mut self, field: Field, last: i16) -> Result<(), PutError> {
        if E::IS_STORED_FORM {
            return Ok(skip::<E>(self.args, &mut self.at, field.kind, FIELD_DEPTH)?);
        }
        let out = self.batch.fields_mut();
        let copied = copy_field::<E, Binary>(self.args, &mut self.at, field, last, FIELD_DEPTH, out, MAX_STORED_PUT_BYTES);
        copied.map_err(|error| match error {
            WireError::TooLarge { size, limit } => PutError::PutTooLarge { size, limit },
            other => other.into(),
        })
    }

    #[inline]
    fn end_message(&mut self, begin: usize, topic: &'a [u8]) -> Result<(), PutError> {
        let (end, number) = (self.batch.byte_len(), self.number());
        if end - begin > MAX_STORED_MESSAGE_BYTES {
            return Err(PutError::MessageTooLarge { message: number, size: end - begin, limit: MAX_STORED_MESSAGE_BYTES });
        }
        if end > MAX_STORED_PUT_BYTES {
            return Err(PutError::PutTooLarge { size: end, limit: MAX_STORED_PUT_BYTES });
        }
        self.batch.end_message(begin);
        if self.topic_run.0 == topic {
            self.topic_run.1 += 1;
        } else {
            let (ended, count) = std::mem::replace(&mut self.topic_run, (topic, 1));
            self.batch.note_topic(ended, count);
        }
        Ok(())
    }

    /// Of the message at hand, counted from 1.
    fn number(&self) -> usize {
        self.batch.count() + 1
    }
}

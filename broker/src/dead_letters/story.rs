//! What stands in the headers of a dead letter.
//!
//! | header | |
//! |---|---|
//! | `hq-partition` | the partition it was in |
//! | `hq-id` | its id there |
//! | `hq-topic` | its topic there |
//! | `hq-attempts` | how often it was tried |
//! | `hq-error` | the last reason, at most 1,024 bytes |
//! | `hq-removed` | only on a message that says that a letter is removed: the letter's id in the dead-letter queue |
//! | `hq-fields` | never stored: the fields of the message that we do not know, while it is decoded |
//!
//! A producer's own headers of these names give way; all others stay.

use std::collections::BTreeMap;

use hqueue_protocol::generated::{TMessage, TMessageID};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredMessage, are_unknown_fields};
use thrift::protocol::{TBinaryInputProtocol, TSerializable};

use crate::subscription::DeadLetter;

const SUFFIX: &str = ".dlq";
const PARTITION: &str = "hq-partition";
const ID: &str = "hq-id";
const TOPIC: &str = "hq-topic";
const ATTEMPTS: &str = "hq-attempts";
const ERROR: &str = "hq-error";
const REMOVED: &str = "hq-removed";
const FIELDS: &str = "hq-fields";
/// Bytes of the longest reason that is kept.
const MAX_ERROR: usize = 1024;

/// The name of a queue's dead-letter queue.
#[must_use]
pub fn dead_letter_queue(queue: &str) -> String {
    format!("{queue}{SUFFIX}")
}

#[must_use]
pub fn is_dead_letter_queue(name: &str) -> bool {
    name.ends_with(SUFFIX)
}

/// Which message of which partition could not be consumed by whom: there is one letter for that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub subscriber: Vec<u8>,
    pub partition: i16,
    pub id: MessageId,
}

/// What a message of a dead-letter queue is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Letter(Key),
    /// This letter is removed.
    Removal(MessageId),
    /// Neither, whoever put it there.
    Other,
}

/// All of a stored message. What the generated code does not know goes into a header.
pub fn decode(message: &StoredMessage<'_>) -> Result<TMessage, String> {
    let read = TMessage::read_from_in_protocol(&mut TBinaryInputProtocol::new(message.raw, true));
    let mut decoded = read.map_err(|error| error.to_string())?;
    let unknown = message.unknown_fields().map_err(|error| error.to_string())?;
    if let Some(headers) = &mut decoded.headers {
        headers.remove(FIELDS);
    }
    if !unknown.is_empty() {
        decoded.headers.get_or_insert_default().insert(FIELDS.to_owned(), unknown);
    }
    Ok(decoded)
}

/// Adds a decoded message to a batch, as it was stored or is to be. The error says what is wrong with it.
pub fn encode(message: &TMessage, batch: &mut PutBatch) -> Result<(), String> {
    let all = || message.headers.iter().flatten();
    let headers = all().filter(|(name, _)| *name != FIELDS).map(|(name, value)| (name.as_str(), value.as_slice()));
    let headers: Vec<(&str, &[u8])> = headers.collect();
    let fields = message.headers.as_ref().and_then(|headers| headers.get(FIELDS)).map_or(&[][..], Vec::as_slice);
    if !are_unknown_fields(fields) {
        return Err(format!("its header {FIELDS} holds no fields"));
    }
    let topic = message.topic.as_deref().unwrap_or_default();
    batch.push_with(topic, message.value.as_deref().unwrap_or_default(), &headers, fields);
    Ok(())
}

/// What a message of a dead-letter queue is.
#[must_use]
pub fn content(message: &TMessage) -> Content {
    let header = |name: &str| {
        let value = message.headers.as_ref().and_then(|headers| headers.get(name))?;
        std::str::from_utf8(value).ok()
    };
    if let Some(id) = header(REMOVED).and_then(|id| id.parse().ok()) {
        return Content::Removal(id);
    }
    let partition = header(PARTITION).and_then(|p| p.parse().ok());
    let id = header(ID).and_then(|id| id.parse().ok());
    match (partition, id, &message.topic) {
        (Some(partition), Some(id), Some(subscriber)) => Content::Letter(Key { subscriber: subscriber.clone(), partition, id }),
        _ => Content::Other,
    }
}

/// How often the message of a letter was tried, and why it could not be consumed.
#[must_use]
pub fn attempts_and_error(letter: &TMessage) -> (u32, String) {
    let header =
        |name: &str| letter.headers.as_ref().and_then(|headers| headers.get(name)).map(Vec::as_slice).unwrap_or_default();
    let attempts = std::str::from_utf8(header(ATTEMPTS)).ok().and_then(|n| n.parse().ok()).unwrap_or_default();
    (attempts, String::from_utf8_lossy(header(ERROR)).into_owned())
}

/// A letter as a message of the dead-letter queue.
pub fn letter(letter: &DeadLetter) -> Result<TMessage, String> {
    let stored = match letter.message.messages().next() {
        Some(Ok(message)) => message,
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err("there is no message".to_owned()),
    };
    let mut message = decode(&stored)?;
    let mut error = letter.error.clone();
    let end = (0..=MAX_ERROR.min(error.len())).rev().find(|at| error.is_char_boundary(*at)).unwrap_or_default();
    error.truncate(end);
    let headers = message.headers.get_or_insert_default();
    // A producer may have written anything: this would make a removal of the letter.
    headers.remove(REMOVED);
    let mut set = |name: &str, value: Vec<u8>| headers.insert(name.to_owned(), value);
    set(PARTITION, letter.partition.to_string().into_bytes());
    set(ID, stored.id.to_string().into_bytes());
    set(TOPIC, stored.topic.to_vec());
    set(ATTEMPTS, letter.attempts.to_string().into_bytes());
    set(ERROR, error.into_bytes());
    message.topic = Some(letter.subscriber.clone().into_bytes());
    (message.id, message.partition_i_d) = (None, None);
    Ok(message)
}

/// The message that says that a letter is removed.
#[must_use]
pub fn removal(subscriber: &[u8], letter: MessageId) -> TMessage {
    let headers = BTreeMap::from([(REMOVED.to_owned(), letter.to_string().into_bytes())]);
    TMessage { id: None, partition_i_d: None, topic: Some(subscriber.to_vec()), value: Some(Vec::new()), headers: Some(headers) }
}

/// The message as it was, for another delivery.
#[must_use]
pub fn original(letter: TMessage, key: &Key) -> TMessage {
    let mut headers = letter.headers.unwrap_or_default();
    let topic = headers.remove(TOPIC).or(letter.topic);
    for name in [PARTITION, ID, ATTEMPTS, ERROR] {
        headers.remove(name);
    }
    TMessage {
        id: Some(TMessageID { timestamp: Some(key.id.timestamp), sequence_i_d: Some(key.id.sequence) }),
        partition_i_d: Some(key.partition),
        topic,
        value: letter.value,
        headers: (!headers.is_empty()).then_some(headers),
    }
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::stored::StoredSlice;
    use hqueue_protocol::wire::binary::Binary;
    use hqueue_protocol::wire::{Encode, Kind};

    use super::*;

    fn dead(message: StoredSlice) -> DeadLetter {
        let (queue, subscriber) = ("q".to_owned(), "s".to_owned());
        DeadLetter { queue, subscriber, partition: 3, message, attempts: 17, error: "é".repeat(1000) }
    }

    fn stored(message: &TMessage, id: MessageId) -> StoredSlice {
        let mut batch = PutBatch::default();
        encode(message, &mut batch).unwrap();
        batch.seal(0, || id).unwrap()
    }

    /// Through the dead-letter queue and back: what a later version has added comes to the subscriber as it came.
    #[test]
    fn fields_that_we_do_not_know_stay() {
        let id = MessageId::new(1_700_000_000_000, 12);
        let mut more = Vec::new();
        Binary::write_field(&mut more, Kind::String, 6, 0);
        Binary::write_string(&mut more, b"six");
        for headers in [&[][..], &[("hq-fields", &b"forged"[..]), ("own", b"v")]] {
            let mut batch = PutBatch::default();
            batch.push_with(b"topic", b"value", headers, &more);
            let original_bytes = batch.seal(3, || id).unwrap();
            let kept = stored(&letter(&dead(original_bytes)).unwrap(), id.successor());
            let kept = kept.messages().next().unwrap().unwrap();
            assert_eq!(kept.unknown_fields().unwrap(), more, "they are fields of the letter, too");
            let key = Key { subscriber: b"s".to_vec(), partition: 3, id };
            let again = stored(&original(decode(&kept).unwrap(), &key), id);
            let again = again.messages().next().unwrap().unwrap();
            assert_eq!((again.topic, again.value, again.unknown_fields().unwrap()), (&b"topic"[..], &b"value"[..], more.clone()));
            let headers_again = decode(&again).unwrap().headers.unwrap();
            assert_eq!(headers_again.contains_key("own"), headers.len() == 2);
        }
        let forged = TMessage { headers: Some(BTreeMap::from([(FIELDS.to_owned(), b"forged".to_vec())])), ..TMessage::default() };
        assert!(encode(&forged, &mut PutBatch::default()).is_err());
    }

    #[test]
    fn a_letter_tells_its_story_and_becomes_the_message_again() {
        let id = MessageId::new(1_700_000_000_000, 12);
        let mut batch = PutBatch::with_capacity(1, 64);
        let header = b"v".to_vec();
        let forged = b"1:0".to_vec();
        batch.push(b"topic", b"value", &[("kind", &header), ("hq-own", &header), ("hq-removed", &forged), ("hq-id", &forged)]);
        let message = batch.seal(3, || id).unwrap();
        let made = letter(&dead(message)).unwrap();
        let key = Key { subscriber: b"s".to_vec(), partition: 3, id };
        assert_eq!(content(&made), Content::Letter(key.clone()));
        let headers = made.headers.clone().unwrap();
        assert_eq!((headers[ATTEMPTS].as_slice(), headers[ERROR].len()), (&b"17"[..], 1024));
        let again = original(made, &key);
        assert_eq!((again.topic.as_deref(), again.value.as_deref()), (Some(&b"topic"[..]), Some(&b"value"[..])));
        assert_eq!(
            again.headers.unwrap().into_iter().collect::<Vec<_>>(),
            [("hq-own".to_owned(), b"v".to_vec()), ("kind".to_owned(), b"v".to_vec())]
        );
        assert_eq!(content(&removal(b"s", id)), Content::Removal(id));
    }
}

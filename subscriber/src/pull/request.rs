//! A fetch on the wire.

use std::time::Duration;

use bytes::Bytes;
use hqueue_protocol::client::ClientError;
use hqueue_protocol::generated::TFetch;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::rpc::{Fetch, FetchArgs, Method};
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encoding, Kind, Protocol, WireError, skip};

use super::Fetched;
use crate::error::Error;
use crate::message::{self, Message};

/// A broker gives at most so many messages at once.
pub(super) const MAX_MESSAGES: u32 = 100_000;
/// A broker waits at most so long.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(30);
/// For an answer beyond the wait.
pub(super) const ANSWER: Duration = Duration::from_secs(30);

/// What is asked of a partition.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) queue: String,
    pub(super) partition: i16,
    /// As a broker reads it; `None`: behind what the subscriber has committed.
    pub(super) position: Option<String>,
    pub(super) subscriber: Option<String>,
    pub(super) topics: Vec<Bytes>,
    pub(super) messages: u32,
    pub(super) wait: Duration,
}

impl Request {
    pub(super) fn encode(&self) -> Bytes {
        let what = TFetch {
            position: self.position.clone(),
            subscriber: self.subscriber.clone().map(String::into_bytes),
            max_messages: Some(i32::try_from(self.messages.min(MAX_MESSAGES)).unwrap_or(i32::MAX)),
            wait_ms: Some(i64::try_from(self.wait.min(MAX_WAIT).as_millis()).unwrap_or(i64::MAX)),
            topics: (!self.topics.is_empty()).then(|| self.topics.iter().map(|topic| topic.to_vec()).collect()),
        };
        let args = FetchArgs { queue_name: self.queue.clone().into_bytes(), partition: self.partition, what };
        Fetch::encode_args(Protocol::Binary, &args).into()
    }
}

/// Reads the result of `fetch` without copying values.
pub(super) fn read(body: &Bytes, partition: i16) -> Result<Fetched, Error> {
    let bad = |reason: String| Error::bad_reply(Fetch::NAME, reason);
    let mut at = 0;
    match Binary::field(body, &mut at, 0) {
        Ok(Some(field)) if (field.id, field.kind) == (0, Kind::Struct) => {
            read_fetched(body, &mut at, partition).map_err(|error| bad(error.to_string()))
        }
        _ => match Fetch::decode_result(Protocol::Binary, body).map_err(|error| bad(error.to_string()))? {
            Err(refusal) => Err(ClientError::from(refusal).into()),
            Ok(_) => Err(bad("the result does not come first".to_owned())),
        },
    }
}

fn read_fetched(body: &Bytes, at: &mut usize, partition: i16) -> Result<Fetched, WireError> {
    /// The containers in which a field of the result stands.
    const DEPTH: usize = 2;
    let mut fetched = Fetched { partition, messages: Vec::new(), next: MessageId::MIN };
    while let Some(field) = Binary::field(body, at, 0)? {
        match (field.id, field.kind) {
            (1, Kind::List) => fetched.messages = Message::read_list(body, at)?,
            (2, Kind::Struct) => fetched.next = message::read_id(body, at)?,
            (_, kind) => skip::<Binary>(body, at, kind, DEPTH)?,
        }
    }
    Ok(fetched)
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::generated::{HQueueError, TErrorCode, TFetched, TMessage, TMessageID};

    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let message = TMessage::new(TMessageID::new(7, 8), 3, b"t".to_vec(), b"value".to_vec(), None);
        let result = TFetched::new(vec![message.clone(), message.clone()], TMessageID::new(7, 9));
        let read = read(&Fetch::encode_result(Protocol::Binary, &Ok(result)).into(), 3).unwrap();
        assert_eq!(read.messages, [Message::from(message.clone()), Message::from(message)]);
        assert_eq!((read.partition, read.next), (3, MessageId::new(7, 9)));
    }

    #[test]
    fn refusals_and_nonsense_are_errors() {
        let refusal = HQueueError::new(TErrorCode::OFFLINE.0, "away".to_owned());
        let body = Fetch::encode_result(Protocol::Binary, &Err(refusal));
        assert_eq!(read(&body.into(), 0).unwrap_err().code(), Some(ErrorCode::Offline));
        let whole = Fetch::encode_result(Protocol::Binary, &Ok(TFetched::new(vec![], TMessageID::new(1, 2))));
        for end in 0..whole.len() - 1 {
            assert!(matches!(read(&Bytes::copy_from_slice(&whole[..end]), 0), Err(Error::Protocol(_))), "{end}");
        }
    }

    #[test]
    fn what_a_broker_would_refuse_is_not_asked() {
        let request = Request {
            queue: "q".to_owned(),
            partition: 1,
            position: None,
            subscriber: Some("s".to_owned()),
            topics: Vec::new(),
            messages: u32::MAX,
            wait: Duration::MAX,
        };
        let sent = Fetch::decode_args(Protocol::Binary, &request.encode()).unwrap();
        assert_eq!((sent.what.max_messages, sent.what.wait_ms, sent.what.topics), (Some(100_000), Some(30_000), None));
    }
}

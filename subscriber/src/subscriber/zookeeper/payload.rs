//! What stands in the nodes that a subscriber writes, and in those that it reads.

use bytes::Bytes;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::position::Position;
use serde_json::{Value, json};

/// Of an `address` node. An endpoint of ours speaks framed binary: the broker need not find out.
pub(super) fn address(address: &str, registration: i64) -> Vec<u8> {
    json!({"address": address, "transport": "framed", "protocol": "binary", "registration": registration})
        .to_string()
        .into_bytes()
}

/// Of a `topics` node: a list of texts, or of lists of numbers where a topic is not UTF-8. Empty: all.
pub(super) fn topics(topics: &[Bytes]) -> Vec<u8> {
    let topic = |topic: &Bytes| match std::str::from_utf8(topic) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(topic.to_vec()),
    };
    Value::from(topics.iter().map(topic).collect::<Vec<_>>()).to_string().into_bytes()
}

/// Of a checkpoint that says "begin there". Empty: at the newest message, which only the owner knows.
pub(super) fn checkpoint(position: Position, now_ms: i64) -> Vec<u8> {
    if position == Position::Latest {
        return Vec::new();
    }
    let MessageId { timestamp, sequence } = before(position.resolve(now_ms, None));
    json!({"timestamp": timestamp, "sequence": sequence}).to_string().into_bytes()
}

/// The id behind which this one is the next.
const fn before(id: MessageId) -> MessageId {
    match (id.timestamp, id.sequence) {
        (timestamp, 1..) => MessageId::new(timestamp, id.sequence - 1),
        (1.., _) => MessageId::new(id.timestamp - 1, i16::MAX),
        _ => MessageId::MIN,
    }
}

/// The fixed endpoints of a subscription, by its options node: with these it takes nobody who registers. What cannot be read is the
/// brokers' to report.
pub(super) fn fixed_endpoints(options: &[u8]) -> Vec<String> {
    let options: Value = serde_json::from_slice(options).unwrap_or_default();
    let addresses = options.get("addresses").and_then(Value::as_array);
    addresses.into_iter().flatten().filter_map(|a| a.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(payload: Vec<u8>) -> String {
        String::from_utf8(payload).unwrap()
    }

    #[test]
    fn an_address_says_who_and_how() {
        let read: Value = serde_json::from_slice(&address("10.0.0.9:7000", 5)).unwrap();
        assert_eq!(read, json!({"address": "10.0.0.9:7000", "registration": 5, "transport": "framed", "protocol": "binary"}));
    }

    #[test]
    fn topics_are_a_list_of_texts_and_bytes() {
        assert_eq!(text(topics(&[])), "[]");
        assert_eq!(text(topics(&["a\"b".into(), Bytes::from_static(&[255, 0]), "é".into()])), r#"["a\"b",[255,0],"é"]"#);
    }

    #[test]
    fn a_checkpoint_lies_before_the_position() {
        let at = |position| text(checkpoint(position, 1_000_000));
        assert_eq!(at(Position::Latest), "");
        assert_eq!(at(Position::Earliest), r#"{"sequence":0,"timestamp":0}"#);
        assert_eq!(at(Position::Id(MessageId::new(7, 3))), r#"{"sequence":2,"timestamp":7}"#);
        assert_eq!(at(Position::Id(MessageId::new(7, 0))), r#"{"sequence":32767,"timestamp":6}"#);
        assert_eq!(at(Position::Ago(Duration::from_secs(10))), r#"{"sequence":32767,"timestamp":989999}"#);
    }

    #[test]
    fn fixed_endpoints_are_seen() {
        assert_eq!(fixed_endpoints(br#"{"addresses":["a:1","b:2"],"topics":[]}"#), ["a:1", "b:2"]);
        for none in [&b""[..], b"{}", b"broken", br#"{"addresses":[]}"#] {
            assert!(fixed_endpoints(none).is_empty());
        }
    }
}

//! A put outside of the limits is refused whole, with the limit and the size in plain digits.

use hqueue_protocol::generated::TErrorCode;
use hqueue_protocol::limits::{MAX_STORED_MESSAGE_BYTES, MAX_STORED_PUT_BYTES};
use hqueue_protocol::stored::{PutError, PutShape, read_put};
use hqueue_protocol::wire::{Protocol, WireError, compact};

use super::support::PROTOCOLS;
use super::values::Value;

const MAX: usize = 4_194_304;

fn string(bytes: &[u8]) -> Value {
    Value::String(bytes.to_vec())
}

fn message(topic: &[u8], value: &[u8]) -> Value {
    Value::Struct(vec![(3, string(topic)), (4, string(value))])
}

fn list(messages: Vec<Value>) -> Value {
    let element = messages.first().cloned().unwrap_or(Value::Struct(vec![]));
    Value::Struct(vec![(1, string(b"q1")), (2, Value::List(element.into(), messages))])
}

/// What both protocols say of it.
fn refusal(args: &Value, shape: PutShape) -> PutError {
    let [binary, compact] = PROTOCOLS
        .map(|protocol| read_put(protocol, &args.encode(protocol), shape, MAX).map(|put| put.batch.count()).unwrap_err());
    assert_eq!(binary, compact);
    binary
}

fn accepted(args: &Value, shape: PutShape) -> usize {
    let [binary, compact] =
        PROTOCOLS.map(|protocol| read_put(protocol, &args.encode(protocol), shape, MAX).unwrap().batch.count());
    assert_eq!(binary, compact);
    binary
}

#[test]
fn topics_have_1_to_255_bytes() {
    assert_eq!(accepted(&list(vec![message(&[7; 255], b""), message(&[0], b"")]), PutShape::List), 2);
    let error = refusal(&list(vec![message(b"t", b""), message(&[7; 256], b"")]), PutShape::List);
    assert_eq!(error, PutError::TopicSize { message: 2, size: 256 });
    assert_eq!(error.to_string(), "message 2: a topic of 256 bytes is not allowed, 1 to 255 bytes are");
    assert_eq!(refusal(&list(vec![message(b"", b"")]), PutShape::List), PutError::TopicSize { message: 1, size: 0 });
    let none = Value::Struct(vec![(4, string(b"v"))]);
    assert_eq!(refusal(&list(vec![none]), PutShape::List), PutError::NoTopic { message: 1 });
}

#[test]
fn values_have_0_to_the_largest_number_of_bytes() {
    assert_eq!(accepted(&list(vec![message(b"t", b""), message(b"t", &vec![0; MAX])]), PutShape::List), 2);
    let error = refusal(&list(vec![message(b"t", &vec![0; MAX + 1])]), PutShape::List);
    assert_eq!(error.to_string(), "message 1: a value of 4194305 bytes is too large, max_message_bytes is 4194304");
    assert_eq!(error.code(), TErrorCode::TOO_LARGE);
    assert!(!error.is_malformed());
    let absent = Value::Struct(vec![(3, string(b"t"))]);
    assert_eq!(refusal(&list(vec![absent]), PutShape::List), PutError::NoValue { message: 1 });
}

#[test]
fn a_message_fits_into_a_call_with_all_that_it_carries() {
    let with_headers = |size| {
        let entry = (string(b"k"), Value::String(vec![0; size]));
        let headers = Value::Map(string(b"").into(), string(b"").into(), vec![entry]);
        list(vec![Value::Struct(vec![(3, string(b"t")), (4, string(b"v")), (5, headers)])])
    };
    // Prefix, topic, value, the map's head, name and value, the end.
    let rest = 25 + 8 + 8 + 9 + 5 + 4 + 1;
    assert_eq!(accepted(&with_headers(MAX_STORED_MESSAGE_BYTES - rest), PutShape::List), 1);
    let (message, size, limit) = (1, MAX_STORED_MESSAGE_BYTES + 1, MAX_STORED_MESSAGE_BYTES);
    let error = refusal(&with_headers(size - rest), PutShape::List);
    assert_eq!(error, PutError::MessageTooLarge { message, size, limit });
}

#[test]
fn the_compact_protocol_cannot_say_more_than_we_keep() {
    let refused = |parts: &[&[u8]]| {
        let args = parts.concat();
        assert!(args.len() < 16 << 20);
        let error = read_put(Protocol::Compact, &args, PutShape::List, MAX).map(|put| put.batch.count()).unwrap_err();
        assert!(
            matches!(error, PutError::PutTooLarge { size, limit: MAX_STORED_PUT_BYTES } if size <= MAX_STORED_PUT_BYTES + 50)
        );
    };
    let varint = |number| {
        let mut bytes = Vec::new();
        compact::write_varint(&mut bytes, number);
        bytes
    };
    // Many messages of six bytes.
    let message = b"\x38\x01t\x18\x00\x00";
    refused(&[b"\x18\x02q1\x19\xfc", &varint(1_000_000), &message.repeat(1_000_000), b"\x00"]);
    // A list of small numbers, each of which takes eight bytes in stored form.
    let list = [b"\x38\x01t\x18\x00\x29\xf6", &varint(8_000_000)[..], &[2; 8_000_000], b"\x00"].concat();
    refused(&[b"\x18\x02q1\x19\x1c", &list, b"\x00"]);
}

#[test]
fn fields_of_the_wrong_type_are_refused() {
    let with = |id, value| list(vec![Value::Struct(vec![(3, string(b"t")), (4, string(b"v")), (id, value)])]);
    let numbers = Value::Map(string(b"").into(), Value::I32(0).into(), vec![(string(b"k"), Value::I32(1))]);
    let ids =
        [(1, Value::I64(5)), (2, Value::I32(5)), (3, Value::Bool(true)), (4, Value::I64(0)), (5, string(b"x")), (5, numbers)];
    for (field, value) in ids {
        assert_eq!(refusal(&with(field, value), PutShape::List), PutError::FieldKind { message: 1, field });
    }
    let name = Value::Map(string(b"").into(), string(b"").into(), vec![(string(b"\xff"), string(b"x"))]);
    assert_eq!(refusal(&with(5, name), PutShape::List), PutError::HeaderName { message: 1 });
    let strings = list(vec![string(b"no message")]);
    assert_eq!(refusal(&strings, PutShape::List), PutError::NotMessages);
}

#[test]
fn missing_and_strange_arguments_are_malformed() {
    let refused = |fields: Vec<(i16, Value)>, shape| {
        let error = refusal(&Value::Struct(fields), shape);
        assert!(error.is_malformed());
        error
    };
    let one = || message(b"t", b"v");
    let messages = || Value::List(one().into(), vec![one()]);
    let queue = || string(b"q1");
    let missing = |name| PutError::ArgumentMissing { name };
    assert_eq!(refused(vec![(2, one())], PutShape::Message), missing("queueName"));
    assert_eq!(refused(vec![(1, queue())], PutShape::Message), missing("tMessage"));
    assert_eq!(refused(vec![(1, queue())], PutShape::List), missing("tMessages"));
    assert_eq!(refused(vec![(1, queue()), (3, messages())], PutShape::PartitionAndList), missing("partitionID"));
    assert_eq!(refused(vec![(1, queue()), (2, Value::I16(1))], PutShape::PartitionAndMessage), missing("tMessage"));
    assert_eq!(refused(vec![(1, queue()), (2, Value::I16(1))], PutShape::List), PutError::ArgumentKind { field: 2 });
    assert_eq!(refused(vec![(1, Value::I16(1)), (2, one())], PutShape::Message), PutError::ArgumentKind { field: 1 });
    let twice = vec![(1, queue()), (2, messages()), (2, messages())];
    assert_eq!(refused(twice, PutShape::List), PutError::ArgumentTwice { name: "tMessages" });
}

#[test]
fn an_empty_list_is_an_empty_put() {
    assert_eq!(accepted(&list(vec![]), PutShape::List), 0);
}

#[test]
fn what_would_be_too_deep_in_a_push_is_refused_at_the_put() {
    let nested = |levels| (0..levels).fold(Value::Struct(vec![]), |inner, _| Value::Struct(vec![(1, inner)]));
    let single = |levels| {
        let message = Value::Struct(vec![(3, string(b"t")), (4, string(b"")), (6, nested(levels))]);
        Value::Struct(vec![(1, string(b"q1")), (2, message)])
    };
    // Arguments, list and message are three levels, the innermost struct is one more.
    assert_eq!(accepted(&single(60), PutShape::Message), 1);
    assert_eq!(refusal(&single(61), PutShape::Message), PutError::Malformed(WireError::TooDeep));
}

#[test]
fn memory_follows_what_is_there_and_not_what_is_announced() {
    // Two billion messages, of which one is there.
    let one = message(b"t", b"v").encode(Protocol::Binary);
    let args = [b"\x0b\x00\x01\x00\x00\x00\x02q1\x0f\x00\x02\x0c\x7f\xff\xff\xff".to_vec(), one].concat();
    let error = read_put(Protocol::Binary, &args, PutShape::List, MAX).unwrap_err();
    assert_eq!(error, PutError::Malformed(WireError::Truncated));
    let one = message(b"t", b"v").encode(Protocol::Compact);
    let args = [b"\x18\x02q1\x19\xfc\xff\xff\xff\xff\x07".to_vec(), one].concat();
    let error = read_put(Protocol::Compact, &args, PutShape::List, MAX).unwrap_err();
    assert_eq!(error, PutError::Malformed(WireError::Truncated));
}

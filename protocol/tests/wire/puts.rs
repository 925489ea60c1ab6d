//! A put is taken over from its encoded arguments exactly as the generated code would read and write it.

use std::collections::BTreeMap;

use hqueue_protocol::generated::{THQueueServiceSyncClient, TMessage, TMessageID};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PREFIX_LEN, PutRequest, PutShape, StoredSlice, TopicTable, read_put};
use hqueue_protocol::wire::{Protocol, header};
use proptest::prelude::*;
use thrift::protocol::TSerializable;

use super::support::{PROTOCOLS, Written, gateway_call, output};
use super::values::{Value, unknown_fields};

const MAX: usize = 4_194_304;

pub(crate) fn any_message() -> impl Strategy<Value = TMessage> {
    let bytes = |sizes| prop::collection::vec(any::<u8>(), sizes);
    let id = prop::option::of((any::<i64>(), any::<i16>()).prop_map(|(t, s)| TMessageID::new(t, s)));
    let headers = prop::option::of(prop::collection::btree_map(".{0,8}", bytes(0..150), 0..4));
    (id, prop::option::of(any::<i16>()), bytes(1..20), bytes(0..300), headers)
        .prop_map(|(id, partition, topic, value, headers)| TMessage::new(id, partition, topic, value, headers))
}

/// The message as the broker keeps it, written by the generated code.
pub(crate) fn stored(message: &TMessage, id: MessageId, partition: i16) -> Vec<u8> {
    let mut message = message.clone();
    message.id = Some(TMessageID::new(id.timestamp, id.sequence));
    message.partition_i_d = Some(partition);
    let written = Written::default();
    message.write_to_out_protocol(&mut *output(Protocol::Binary, &written)).unwrap();
    written.take()
}

pub(crate) fn ids(first: i64) -> impl Iterator<Item = MessageId> {
    (0..).map(move |n| MessageId::new(first, n))
}

/// The arguments' struct of a call.
fn args_of(protocol: Protocol, call: &[u8]) -> &[u8] {
    let (_, at) = header::read(protocol, call).unwrap();
    &call[at..]
}

fn seal(put: PutRequest<'_>, partition: i16) -> Option<StoredSlice> {
    let mut ids = ids(1000);
    put.batch.seal(partition, || ids.next().unwrap())
}

fn check(messages: &[TMessage], put: PutRequest<'_>) {
    assert_eq!(put.queue, b"q1");
    assert_eq!(put.batch.count(), messages.len());
    let mut topics = TopicTable::default();
    messages.iter().for_each(|message| topics.add(message.topic.as_ref().unwrap(), 1));
    assert_eq!(put.batch.topics(), &topics);
    let expected: Vec<u8> = messages.iter().zip(ids(1000)).flat_map(|(message, id)| stored(message, id, 7)).collect();
    assert_eq!(put.batch.byte_len(), expected.len());
    match seal(put, 7) {
        None => assert!(messages.is_empty()),
        Some(slice) => {
            assert_eq!(slice.bytes, expected);
            assert_eq!(slice.count as usize, messages.len());
            assert_eq!((slice.first, slice.last), (MessageId::new(1000, 0), MessageId::new(1000, messages.len() as i16 - 1)));
        }
    }
}

fn read<'a>(protocol: Protocol, call: &'a [u8]) -> PutRequest<'a> {
    let (header, _) = header::read(protocol, call).unwrap();
    let shape = PutShape::of_method(header.method).unwrap();
    read_put(protocol, args_of(protocol, call), shape, MAX).unwrap()
}

#[test]
fn all_methods_of_the_generated_client() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(messages in prop::collection::vec(any_message(), 0..30), single in any_message(), partition: i16)| {
        let queue = || b"q1".to_vec();
        for protocol in PROTOCOLS {
            let call = gateway_call(protocol, |client| client.put_message(queue(), single.clone()).is_err());
            let put = read(protocol, &call);
            assert_eq!(put.partition, single.partition_i_d);
            check(std::slice::from_ref(&single), put);

            let call = gateway_call(protocol, |client| client.put_messages(queue(), messages.clone()).is_err());
            let put = read(protocol, &call);
            assert_eq!(put.partition, None);
            check(&messages, put);

            let call = gateway_call(protocol, |client| client.put_message_with_pid(queue(), partition, single.clone()).is_err());
            let put = read(protocol, &call);
            assert_eq!(put.partition, Some(partition));
            check(std::slice::from_ref(&single), put);

            for with_ids in [false, true] {
                let call = gateway_call(protocol, |client| match with_ids {
                    false => client.put_messages_with_pid(queue(), partition, messages.clone()).is_err(),
                    true => client.put_messages_for_ids(queue(), partition, messages.clone()).is_err(),
                });
                let put = read(protocol, &call);
                assert_eq!(put.partition, Some(partition));
                check(&messages, put);
            }
        }
    });
}

/// Fields of a message in any order, unknown ones among them.
fn shuffled_fields() -> impl Strategy<Value = Vec<(i16, Value)>> {
    let headers = prop::collection::btree_map(".{0,8}", prop::collection::vec(any::<u8>(), 0..50), 0..4);
    let known = (any::<i64>(), any::<i16>(), prop::option::of(headers)).prop_map(|(timestamp, partition, headers)| {
        let mut fields = vec![
            (1, Value::Struct(vec![(1, Value::I64(timestamp)), (2, Value::I16(3)), (9, Value::Bool(true))])),
            (2, Value::I16(partition)),
            (3, Value::String(b"topic".to_vec())),
            (4, Value::String(vec![4; 100])),
        ];
        fields.extend(headers.map(|headers: BTreeMap<String, Vec<u8>>| {
            let entries = headers.into_iter().map(|(k, v)| (Value::String(k.into()), Value::String(v))).collect();
            (5, Value::Map(Value::String(vec![]).into(), Value::String(vec![]).into(), entries))
        }));
        fields
    });
    (known, unknown_fields()).prop_map(|(known, unknown)| [known, unknown].concat()).prop_shuffle()
}

#[test]
fn unknown_fields_and_any_order_are_kept() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(messages in prop::collection::vec(shuffled_fields(), 1..5))| {
        let list = messages.iter().cloned().map(Value::Struct).collect();
        let args = Value::Struct(vec![
            (77, Value::Bool(false)),
            (2, Value::List(Value::Struct(vec![]).into(), list)),
            (1, Value::String(b"q1".to_vec())),
            (78, Value::List(Value::I64(0).into(), vec![Value::I64(-1)])),
        ]);
        let expected: Vec<u8> = messages.iter().zip(ids(1000)).flat_map(|(fields, id)| {
            let kept = fields.iter().filter(|(id, _)| *id > 2).cloned().collect();
            let prefix = stored(&TMessage::new(None, None, None, None, None), id, 7);
            [prefix[..PREFIX_LEN].to_vec(), Value::Struct(kept).encode(Protocol::Binary)].concat()
        }).collect();
        for protocol in PROTOCOLS {
            let args = args.encode(protocol);
            let put = read_put(protocol, &args, PutShape::List, MAX).unwrap();
            let slice = seal(put, 7).unwrap();
            assert_eq!(slice.bytes, expected, "{protocol:?}");
            for message in slice.messages() {
                let message = message.unwrap();
                assert_eq!((message.topic, message.value, message.partition), (&b"topic"[..], &[4; 100][..], 7));
            }
        }
    });
}

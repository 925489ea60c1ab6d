//! Calls and results around stored messages are byte for byte what the generated code writes, and it reads them.

use std::collections::BTreeMap;

use bytes::Bytes;
use hqueue_protocol::generated::{
    HQueueServiceSyncClient, HQueueSubscriberServiceSyncHandler, HQueueSubscriberServiceSyncProcessor, TFetch,
    THQueueServiceSyncClient, TMessage, TMessageID,
};
use hqueue_protocol::id::MessageId;
use hqueue_protocol::rpc::{Fetch, Method};
use hqueue_protocol::stored::{
    PutBatch, StoredSlice, consume_call, fetch_result, scanner_get_result, scanner_list_result, to_compact,
};
use hqueue_protocol::wire::{Dialect, MessageHeader, MessageType, Protocol, Transport, header};
use proptest::prelude::*;
use std::cell::RefCell;
use thrift::server::TProcessor;

use super::puts::{any_message, ids, stored};
use super::support::{PROTOCOLS, Written, framed, input, output};
use super::values::{Value, unknown_fields};

/// The messages as they come to a consumer, and cut into slices anywhere.
fn slices_of(messages: &[TMessage], cuts: &[usize]) -> (Vec<TMessage>, Vec<StoredSlice>) {
    let delivered: Vec<_> = messages
        .iter()
        .zip(ids(1000))
        .map(|(message, id)| {
            let mut message = message.clone();
            message.id = Some(TMessageID::new(id.timestamp, id.sequence));
            message.partition_i_d = Some(7);
            message
        })
        .collect();
    let mut slices = Vec::new();
    let mut rest: Vec<_> = delivered.iter().zip(ids(1000)).map(|(message, id)| stored(message, id, 7)).collect();
    for cut in cuts {
        let front: Vec<_> = rest.drain(..(cut % 5 + 1).min(rest.len())).collect();
        slices.extend(StoredSlice::from_stored(Bytes::from(front.concat())).unwrap());
    }
    slices.extend(StoredSlice::from_stored(Bytes::from(rest.concat())).unwrap());
    (delivered, slices)
}

/// Keeps what it is called with.
#[derive(Default)]
struct Recorder(RefCell<Vec<TMessage>>);

impl HQueueSubscriberServiceSyncHandler for &Recorder {
    fn handle_consume_messages(&self, messages: Vec<TMessage>) -> thrift::Result<i32> {
        self.0.replace(messages);
        Ok(0)
    }
}

/// What a generated server gets from a call.
fn consumed(protocol: Protocol, call: &[u8]) -> Vec<TMessage> {
    let recorder = Recorder::default();
    let written = Written::default();
    HQueueSubscriberServiceSyncProcessor::new(&recorder)
        .process(&mut *input(protocol, call), &mut *output(protocol, &written))
        .unwrap();
    recorder.0.take()
}

/// A reply with a result's struct, as a server sends it to a client's first call.
fn reply(protocol: Protocol, method: &str, result: Vec<Bytes>) -> Vec<u8> {
    let mut reply = Vec::new();
    let message_type = MessageType::Reply;
    header::write(&mut reply, protocol, &MessageHeader { method: method.as_bytes(), message_type, sequence: 1 });
    reply.extend(result.concat());
    reply
}

fn client<'a>(protocol: Protocol, reply: &'a [u8]) -> impl THQueueServiceSyncClient + 'a {
    HQueueServiceSyncClient::new(input(protocol, reply), output(protocol, &Written::default()))
}

#[test]
fn a_push_is_what_the_generated_client_writes() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(messages in prop::collection::vec(any_message(), 0..40), cuts in prop::collection::vec(any::<usize>(), 0..6))| {
        let (delivered, slices) = slices_of(&messages, &cuts);
        for protocol in PROTOCOLS {
            let expected = super::support::consume_call(protocol, delivered.clone());
            let buffered = consume_call(Dialect { transport: Transport::Buffered, protocol }, 1, &slices).unwrap().concat();
            assert_eq!(buffered, expected, "{protocol:?}");
            let in_frame = consume_call(Dialect { transport: Transport::Framed, protocol }, 1, &slices).unwrap().concat();
            assert_eq!(in_frame, framed(&expected));
            assert_eq!(consumed(protocol, &buffered), delivered);
        }
    });
}

#[test]
fn any_sequence_id_comes_back() {
    for protocol in PROTOCOLS {
        for sequence in [0, 1, 127, 128, i32::MAX, -1, i32::MIN] {
            let call = consume_call(Dialect { transport: Transport::Buffered, protocol }, sequence, &[]).unwrap().concat();
            assert_eq!(input(protocol, &call).read_message_begin().unwrap().sequence_number, sequence);
            assert_eq!(header::read(protocol, &call).unwrap().0.sequence, sequence);
        }
    }
}

#[test]
fn the_generated_client_reads_scanner_results() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(messages in prop::collection::vec(any_message(), 1..40), cuts in prop::collection::vec(any::<usize>(), 0..6))| {
        let (delivered, slices) = slices_of(&messages, &cuts);
        for protocol in PROTOCOLS {
            let bytes = reply(protocol, "messageScannerGetList", scanner_list_result(protocol, &slices).unwrap());
            assert_eq!(client(protocol, &bytes).message_scanner_get_list(1, 100).unwrap(), delivered);
            let bytes = reply(protocol, "messageScannerGet", scanner_get_result(protocol, slices.first()).unwrap());
            assert_eq!(client(protocol, &bytes).message_scanner_get(1).unwrap(), delivered[0]);
        }
    });
}

#[test]
fn the_end_of_a_scanner_is_a_message_without_an_id() {
    let end = TMessage::new(None, None, vec![], vec![], None);
    for protocol in PROTOCOLS {
        let bytes = reply(protocol, "messageScannerGet", scanner_get_result(protocol, None).unwrap());
        assert_eq!(client(protocol, &bytes).message_scanner_get(1).unwrap(), end);
        let bytes = reply(protocol, "messageScannerGetList", scanner_list_result(protocol, &[]).unwrap());
        assert_eq!(client(protocol, &bytes).message_scanner_get_list(1, 100).unwrap(), []);
    }
    // As the generated code writes it: topic and value are there.
    let result = scanner_get_result(Protocol::Binary, None).unwrap().concat();
    assert_eq!(result, b"\x0c\0\0\x0b\0\x03\0\0\0\0\x0b\0\x04\0\0\0\0\0\0");
    assert_eq!(scanner_get_result(Protocol::Compact, None).unwrap().concat(), b"\x0c\0\x38\0\x18\0\0\0");
}

#[test]
fn unknown_fields_reach_compact_peers() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(unknown in unknown_fields())| {
        let fields = |id: Option<MessageId>| {
            let mut fields = Vec::new();
            if let Some(id) = id {
                fields.push((1, Value::Struct(vec![(1, Value::I64(id.timestamp)), (2, Value::I16(id.sequence))])));
                fields.push((2, Value::I16(7)));
            }
            fields.extend([(3, Value::String(b"t".to_vec())), (4, Value::String(vec![9; 30]))]);
            Value::Struct([fields, unknown.clone()].concat())
        };
        let id = MessageId::new(1_700_000_000_000, 12);
        let mut batch = PutBatch::default();
        batch.push_fields(b"t", &fields(None).encode(Protocol::Binary));
        let slice = batch.seal(7, || id).unwrap();
        assert_eq!(slice.bytes, fields(Some(id)).encode(Protocol::Binary));
        assert_eq!(to_compact(&[slice]).unwrap(), fields(Some(id)).encode(Protocol::Compact));
    });
}

#[test]
fn a_batch_made_of_parts_is_what_the_generated_code_writes() {
    let id = MessageId::new(5, 6);
    let mut batch = PutBatch::with_capacity(2, 100);
    batch.push(b"t", b"value", &[("a", b"1"), ("b", b"")]);
    batch.push(b"t", b"", &[]);
    let slice = batch.seal(7, || id).unwrap();
    let headers = BTreeMap::from([("a".to_owned(), b"1".to_vec()), ("b".to_owned(), vec![])]);
    let with = TMessage::new(None, None, b"t".to_vec(), b"value".to_vec(), headers);
    let without = TMessage::new(None, None, b"t".to_vec(), vec![], None);
    assert_eq!(slice.bytes, [stored(&with, id, 7), stored(&without, id, 7)].concat());
}

#[test]
fn the_generated_client_reads_what_was_fetched() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(messages in prop::collection::vec(any_message(), 0..40), cuts in prop::collection::vec(any::<usize>(), 0..6),
          timestamp in 0..=i64::MAX, sequence in 0..=i16::MAX)| {
        let (delivered, slices) = slices_of(&messages, &cuts);
        for protocol in PROTOCOLS {
            let result = fetch_result(protocol, &slices, MessageId::new(timestamp, sequence)).unwrap();
            let fetched = client(protocol, &reply(protocol, "fetch", result.clone())).fetch(vec![], 0, TFetch::default()).unwrap();
            prop_assert_eq!(fetched.messages.as_ref(), Some(&delivered));
            prop_assert_eq!(fetched.next_i_d.as_ref(), Some(&TMessageID::new(timestamp, sequence)));
            prop_assert_eq!(result.concat(), Fetch::encode_result(protocol, &Ok(fetched)));
        }
    });
}

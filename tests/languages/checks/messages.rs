//! Messages that are hard to carry.

use std::collections::BTreeMap;

use hqueue_protocol::generated::TMessage;
use hqueue_tests::message::to_put;
use hqueue_tests::{Broker, Message, Subscription, gateway};

/// Values and topics of any bytes and of sizes at which somebody's buffer ends.
pub(crate) fn odd() -> Vec<TMessage> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut messages = vec![
        to_put("t", ""),
        to_put("t", "x"),
        to_put("t", ""),
        to_put(&every_byte[..255], every_byte.clone()),
        to_put(&every_byte[1..], b"\xc3\x28".to_vec()),
        to_put(b"\xc3\x28".to_vec(), b"\x80\x81\xfe\xff".to_vec()),
        to_put("d\u{e9}j\u{e0} vu", "\u{1f600} \u{4e2d}\u{6587}"),
        to_put(b"\0".to_vec(), b"\0\0\0".to_vec()),
        with_headers("t", "with headers"),
    ];
    for size in [4095, 4096, 4097, 65_535, 65_536] {
        messages.push(to_put("size", every_byte.repeat(size / 256 + 1)[..size].to_vec()));
    }
    messages
}

/// Headers are newer than the original contract: who does not know them skips them.
pub(crate) fn with_headers(topic: &str, value: &str) -> TMessage {
    let headers = [("kind", &b"\xff\x00"[..]), ("", b""), ("d\u{e9}j\u{e0}", b"vu")];
    let headers: BTreeMap<String, Vec<u8>> = headers.into_iter().map(|(k, v)| (k.to_owned(), v.to_vec())).collect();
    TMessage::new(None, None, topic.as_bytes().to_vec(), value.as_bytes().to_vec(), headers)
}

/// One of 3 MiB.
pub(crate) fn large() -> TMessage {
    to_put("large", (0..3 << 20).map(|n: u32| n.to_le_bytes()[(n % 3) as usize]).collect::<Vec<u8>>())
}

pub(crate) fn put(broker: &Broker, queue: &str, partition: i16, messages: Vec<TMessage>) {
    gateway::put_for_ids(&mut broker.gateway(), queue, partition, messages).expect("the put is taken");
}

/// Checks that what was accepted is what is stored: each message once, in order, every byte of it.
#[track_caller]
pub(crate) fn check_complete(broker: &Broker, queue: &str, partitions: i16, accepted: &[Message], who: &str) {
    (0..partitions).for_each(|partition| check_partition(broker, queue, partition, accepted, who));
}

/// The same of one partition.
#[track_caller]
pub(crate) fn check_partition(broker: &Broker, queue: &str, partition: i16, accepted: &[Message], who: &str) {
    let stored = broker.scan(queue, partition);
    let came: Vec<&Message> = accepted.iter().filter(|m| m.partition == partition).collect();
    assert_eq!(came.len(), stored.len(), "{who}, partition {partition}: so many messages");
    for (number, (came, stored)) in came.iter().zip(&stored).enumerate() {
        assert_eq!(came.id, stored.id, "{who}, partition {partition}: number {number} is in its place");
        assert!(came.topic == stored.topic, "{who}: the topic of {} came as {:?}", stored.id, came.topic);
        assert!(came.value == stored.value, "{who}: the value of {} came in {} bytes", stored.id, came.value.len());
    }
}

/// Checks that no call with messages failed. A runtime that starts on a busy machine may be too slow for the questions in which dialect it
/// speaks: these have a second each, and are asked again.
#[track_caller]
pub(crate) fn check_no_failure(subscription: &Subscription, who: &str) {
    let undetected = subscription.last_error().contains("in none of Thrift's dialects");
    assert!(subscription.0.failed == Some(0) || undetected, "{who}: {}", subscription.last_error());
}

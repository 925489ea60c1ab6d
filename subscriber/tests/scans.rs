//! Scanners: ranges, topics, ends, and a broker that has forgotten them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::collections::BTreeMap;

use hqueue::{ErrorCode, MessageId, NewMessage, Queue, Scan};
use support::Broker;

/// Puts the numbers of a range into a partition; even ones under the topic `even`.
async fn put_numbers(queue: &Queue, partition: i16, numbers: std::ops::Range<usize>) -> Vec<MessageId> {
    let message = |n: usize| NewMessage::new(if n.is_multiple_of(2) { "even" } else { "odd" }, n.to_string());
    let messages: Vec<_> = numbers.map(message).collect();
    queue.put_batch_to(partition, &messages).await.unwrap().ids
}

#[tokio::test]
async fn a_range_is_inclusive_at_its_start_and_exclusive_at_its_stop() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let ids = put_numbers(&queue, 0, 0..20).await;
    let mut scanner = queue.partition_scanner(0, Scan::all().from(ids[3]).until(ids[9]).topic("even"));
    let values: Vec<_> = scanner.next_batch(100).await.unwrap().into_iter().map(|m| m.value).collect();
    assert_eq!(values, ["4", "6", "8"]);
    assert!(scanner.next().await.unwrap().is_none());
    scanner.close().await;
    broker.stop().await;
}

#[tokio::test]
async fn long_scans_are_complete_and_in_order_however_they_are_read() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    for begin in (0..5000).step_by(500) {
        put_numbers(&queue, 0, begin..begin + 500).await;
    }
    for at_once in [1, 7, 1000, 5000] {
        let mut scanner = queue.partition_scanner(0, Scan::all());
        let mut expected = 0;
        loop {
            let messages = scanner.next_batch(at_once).await.unwrap();
            if messages.is_empty() {
                break;
            }
            for message in messages {
                assert_eq!(message.value, expected.to_string());
                expected += 1;
            }
        }
        assert_eq!(expected, 5000, "{at_once} at once");
    }
    broker.stop().await;
}

#[tokio::test]
async fn after_the_end_later_messages_follow() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let mut scanner = queue.partition_scanner(0, Scan::all());
    assert!(scanner.next().await.unwrap().is_none());
    put_numbers(&queue, 0, 0..1).await;
    assert_eq!(scanner.next().await.unwrap().unwrap().value, "0");
    assert!(scanner.next().await.unwrap().is_none());
    put_numbers(&queue, 0, 1..2).await;
    assert_eq!(scanner.next().await.unwrap().unwrap().value, "1");
    broker.stop().await;
}

#[tokio::test]
async fn several_partitions_have_a_scan_each() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 4).await;
    let mut ids = Vec::new();
    for partition in 0..4 {
        ids.push(put_numbers(&queue, partition, 0..4).await);
    }
    let scans = BTreeMap::from([(3, Scan::all().from(ids[3][2])), (0, Scan::all()), (1, Scan::all().until(ids[1][0]))]);
    let mut scanner = queue.combined_partition_scanner(scans);
    let mut found = Vec::new();
    while let Some(m) = scanner.next().await.unwrap() {
        found.push(format!("{} {}", m.partition, String::from_utf8_lossy(&m.value)));
    }
    assert_eq!(found, ["0 0", "0 1", "0 2", "0 3", "3 2", "3 3"]);
    assert!(scanner.next_batch(5).await.unwrap().is_empty());
    scanner.close().await;
    broker.stop().await;
}

#[tokio::test]
async fn no_such_queue_or_partition_is_an_error() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let nowhere = broker.connect().await.queue("nowhere").unwrap();
    assert_eq!(nowhere.queue_scanner(Scan::all()).await.unwrap_err().code(), Some(ErrorCode::NotFound));
    let error = nowhere.partition_scanner(0, Scan::all()).next().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    let error = queue.partition_scanner(9, Scan::all()).next().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Invalid));
    broker.stop().await;
}

#[tokio::test]
async fn a_scan_goes_on_where_it_was_when_the_broker_was_restarted() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    for begin in (0..4000).step_by(1000) {
        put_numbers(&queue, 0, begin..begin + 1000).await;
    }
    // With 2500 messages read, one request is under way ahead of the reader.
    for restart_at in [0, 1, 2500] {
        let mut scanner = queue.partition_scanner(0, Scan::all());
        for n in 0..4000 {
            if n == restart_at {
                broker.stop().await;
                broker.start_again().await;
            }
            assert_eq!(scanner.next().await.unwrap().unwrap().value, n.to_string());
        }
        assert!(scanner.next().await.unwrap().is_none());
    }
    broker.stop().await;
}

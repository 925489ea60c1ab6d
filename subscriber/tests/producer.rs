//! The producer: many puts at once, in order, each with its own answer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::sync::Arc;

use hqueue::{Error, ErrorCode, NewMessage, ProducerOptions, Scan, Target};
use support::Broker;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_put_at_once_and_each_learns_its_place() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 3).await;
    let producer = queue.producer(ProducerOptions { batch_messages: 50, ..ProducerOptions::default() }).unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|task| {
            let producer = producer.clone();
            tokio::spawn(async move {
                let mut placed = Vec::new();
                for n in 0..50 {
                    let message = NewMessage::new("t", format!("{task} {n}"));
                    placed.push((producer.put(Target::Partition(task % 3), message).await.unwrap(), format!("{task} {n}")));
                }
                placed
            })
        })
        .collect();
    let mut expected = Vec::new();
    for task in tasks {
        let placed = task.await.unwrap();
        assert!(placed.is_sorted_by_key(|(p, _)| p.id), "what a task puts in turn stays in order");
        expected.extend(placed.into_iter().map(|(p, value)| (p.partition, p.id, value)));
    }
    expected.sort();
    let mut scanner = queue.queue_scanner(Scan::all()).await.unwrap();
    let mut found = Vec::new();
    while let Some(m) = scanner.next().await.unwrap() {
        found.push((m.partition, m.id, String::from_utf8(m.value.to_vec()).unwrap()));
    }
    assert_eq!(found, expected);
    broker.stop().await;
}

#[tokio::test]
async fn what_is_handed_over_without_waiting_stays_in_order_across_batches() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let options = ProducerOptions { batch_messages: 7, pending_messages: 100, ..ProducerOptions::default() };
    let producer = queue.producer(options).unwrap();
    let mut pending = Vec::new();
    for n in 0..2000 {
        pending.push(producer.enqueue(Target::Any, NewMessage::new("t", n.to_string())).await.unwrap());
    }
    producer.flush().await.unwrap();
    assert!(pending.iter().all(hqueue::PendingPut::is_settled), "after a flush every outcome is known");
    let mut last = None;
    for message in pending {
        let id = message.placed().await.unwrap().id;
        assert!(last < Some(id));
        last = Some(id);
    }
    let mut scanner = queue.partition_scanner(0, Scan::all());
    for n in 0..2000 {
        assert_eq!(scanner.next().await.unwrap().unwrap().value, n.to_string());
    }
    broker.stop().await;
}

#[tokio::test]
async fn one_bad_message_fails_its_batch_and_the_rest_goes_on() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 2).await;
    let producer = queue.producer(ProducerOptions::default()).unwrap();
    let bad = producer.put(Target::Partition(7), NewMessage::new("t", "v"));
    let good = producer.put(Target::Partition(1), NewMessage::new("t", "v"));
    let (bad, good) = tokio::join!(bad, good);
    assert_eq!(bad.unwrap_err().code(), Some(ErrorCode::Invalid));
    assert_eq!(good.unwrap().partition, 1);
    let huge = producer.put(Target::Any, NewMessage::new("t", vec![0; 17 << 20])).await;
    assert!(matches!(huge, Err(Error::Invalid(_))));
    producer.close().await.unwrap();
    assert_eq!(producer.put(Target::Any, NewMessage::new("t", "v")).await, Err(Error::Closed));
    broker.stop().await;
}

#[tokio::test]
async fn close_waits_for_what_was_handed_over_and_drop_does_not_hang() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let producer = Arc::new(queue.producer(ProducerOptions::default()).unwrap());
    let pending = producer.enqueue(Target::Any, NewMessage::new("t", "closed")).await.unwrap();
    producer.close().await.unwrap();
    assert!(pending.is_settled() && pending.placed().await.is_ok());

    let producer = queue.producer(ProducerOptions::default()).unwrap();
    let pending = producer.enqueue(Target::Any, NewMessage::new("t", "dropped")).await.unwrap();
    drop(producer);
    // It may have been sent or not; it must be said.
    let _ = tokio::time::timeout(support::PATIENCE, pending.placed()).await.unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn a_broker_that_goes_away_is_an_error_for_everyone_who_waits() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let producer = queue.producer(ProducerOptions::default()).unwrap();
    producer.put(Target::Any, NewMessage::new("t", "v")).await.unwrap();
    broker.stop().await;
    let error = producer.put(Target::Any, NewMessage::new("t", "v")).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    producer.close().await.unwrap();
}

#[tokio::test]
async fn options_have_limits() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let default = ProducerOptions::default;
    for (options, says) in [
        (ProducerOptions { batch_messages: 0, ..default() }, "batch_messages is 0; it can be 1 to 100000"),
        (ProducerOptions { batch_bytes: 1, ..default() }, "batch_bytes is 1; it can be 1024 to 16777216"),
        (ProducerOptions { pending_messages: 9, ..default() }, "pending_messages is 9; it can be 1000 or more"),
        (ProducerOptions { pending_bytes: 5, ..default() }, "pending_bytes is 5; it can be 1048576 to 2147483648"),
    ] {
        let error = queue.producer(options).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    broker.stop().await;
}

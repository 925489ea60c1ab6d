//! Every way to put, and what comes back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use hqueue::{Error, ErrorCode, HQueue, MessageId, NewMessage, Scan, Target, partition_of_key};
use support::Broker;

#[tokio::test]
async fn messages_are_where_the_put_says() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 4).await;
    let mut expected = Vec::new();
    let placed = queue.put("t", "any").await.unwrap();
    expected.push((placed.partition, placed.id, "any".to_owned()));
    let placed = queue.put_to(2, "t", "in two").await.unwrap();
    assert_eq!(placed.partition, 2);
    expected.push((2, placed.id, "in two".to_owned()));
    let placed = queue.put_keyed("customer-42", "t", "keyed").await.unwrap();
    assert_eq!(placed.partition, partition_of_key(b"customer-42", 4));
    expected.push((placed.partition, placed.id, "keyed".to_owned()));
    let batch = queue.put_batch_to(1, &[NewMessage::new("t", "a"), NewMessage::new("t", "b")]).await.unwrap();
    assert!(batch.partition == 1 && batch.ids[0] < batch.ids[1]);
    expected.extend(batch.ids.iter().zip(["a", "b"]).map(|(id, value)| (1, *id, value.to_owned())));
    let batch = queue.put_batch(&[NewMessage::new("t", "c")]).await.unwrap();
    expected.push((batch.partition, batch.ids[0], "c".to_owned()));
    let batch = queue.put_all(Target::Key("k".into()), &[]).await.unwrap();
    assert_eq!(batch.ids, Vec::<MessageId>::new());

    let mut scanner = queue.queue_scanner(Scan::all()).await.unwrap();
    let mut found = Vec::new();
    while let Some(m) = scanner.next().await.unwrap() {
        found.push((m.partition, m.id, String::from_utf8(m.value.to_vec()).unwrap()));
    }
    expected.sort();
    assert_eq!(found, expected);
    broker.stop().await;
}

#[tokio::test]
async fn headers_and_any_bytes_come_back_as_they_were() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let message = NewMessage::new(vec![0, 0xff], vec![0xfe; 70_000]).header("name", vec![0xff]).header("empty", "");
    queue.put_batch(std::slice::from_ref(&message)).await.unwrap();
    let found = queue.partition_scanner(0, Scan::all()).next().await.unwrap().unwrap();
    assert_eq!((found.topic, found.value, found.headers), (message.topic, message.value, message.headers));
    broker.stop().await;
}

#[tokio::test]
async fn refusals_say_what_and_why() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 2).await;
    let nowhere = broker.connect().await.queue("nowhere").unwrap();
    let refused = |error: Error| (error.code().unwrap(), error.to_string());
    let (code, text) = refused(nowhere.put("t", "v").await.unwrap_err());
    assert!(code == ErrorCode::NotFound && text.contains("nowhere"), "{text}");
    assert_eq!(nowhere.put_keyed("k", "t", "v").await.unwrap_err().code(), Some(ErrorCode::NotFound));
    let (code, text) = refused(queue.put_to(2, "t", "v").await.unwrap_err());
    assert!(code == ErrorCode::Invalid && text.contains("partition"), "{text}");
    let (_, text) = refused(queue.put("", "v").await.unwrap_err());
    assert!(text.contains("topic"), "{text}");
    let (_, text) = refused(queue.put("t", vec![0; 4 * 1024 * 1024 + 1]).await.unwrap_err());
    assert!(text.contains("4194304"), "{text}");
    for error in [queue.put_to(-1, "t", "v").await.unwrap_err(), queue.put("t", vec![0; 17 << 20]).await.unwrap_err()] {
        assert!(matches!(error, Error::Invalid(_)) && !error.is_retryable(), "{error}");
    }
    assert!(queue.partition_scanner(0, Scan::all()).next().await.unwrap().is_none(), "nothing was stored");
    broker.stop().await;
}

#[tokio::test]
async fn a_broker_that_is_away_is_told_apart_and_found_again() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    queue.put("t", "before").await.unwrap();
    broker.stop().await;
    let error = queue.put("t", "meanwhile").await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let error = HQueue::connect(&broker.url()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && error.to_string().contains("127.0.0.1"), "{error}");
    broker.start_again().await;
    let refusal = queue.put("t", "after").await;
    assert!(refusal.is_ok() || refusal.is_err_and(|e| e.code() == Some(ErrorCode::NotFound)));
    broker.stop().await;
}

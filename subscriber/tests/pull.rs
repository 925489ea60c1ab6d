//! The pull consumer: positions kept by the broker and by itself, waits, shares, and what a dropped fetch leaves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::time::{Duration, Instant};

use hqueue::{Error, ErrorCode, Fetched, MessageId, Position, PullConsumer};
use support::{Broker, PATIENCE};

fn values(fetched: &Fetched) -> Vec<String> {
    fetched.messages.iter().map(|m| String::from_utf8(m.value.to_vec()).unwrap()).collect()
}

async fn now(consumer: &PullConsumer, partition: i16) -> Fetched {
    consumer.fetch(partition, None, 10, Duration::ZERO).await.unwrap()
}

#[tokio::test]
async fn the_broker_keeps_the_position_of_a_name() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 2).await;
    let consumer = queue.pull_consumer("s").unwrap();
    assert_eq!(consumer.fetch(0, None, 10, Duration::ZERO).await.unwrap_err().code(), Some(ErrorCode::NotFound));
    assert_eq!(consumer.partitions().await.unwrap(), [0, 1]);
    for n in 0..25 {
        queue.put_to(0, "t", n.to_string()).await.unwrap();
    }
    assert!(consumer.begin(Position::Earliest).await.unwrap());
    assert!(!consumer.begin(Position::Latest).await.unwrap(), "it was there");
    let first = now(&consumer, 0).await;
    assert_eq!((values(&first).len(), first.messages[9].id.successor()), (10, first.next));
    assert_eq!(now(&consumer, 0).await, first, "nothing was committed");
    consumer.commit(0, first.next).await.unwrap();
    consumer.commit(0, MessageId::MIN).await.unwrap();
    broker.stop().await;
    broker.start_again().await;
    let again = broker.connect().await.queue("q").unwrap().pull_consumer("s").unwrap();
    assert_eq!(values(&now(&again, 0).await)[0], "10");
    let position = Position::Id(first.messages[3].id);
    assert_eq!(values(&again.fetch(0, position, 2, Duration::ZERO).await.unwrap()), ["3", "4"]);
    broker.stop().await;
}

#[tokio::test]
async fn a_consumer_without_a_name_keeps_it_itself() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 2).await;
    let ids: Vec<_> = [queue.put_to(0, "t", "a").await.unwrap().id, queue.put_to(0, "t", "b").await.unwrap().id].into();
    let consumer = queue.pull_consumer(None).unwrap();
    assert!(matches!(consumer.fetch(0, None, 1, Duration::ZERO).await, Err(Error::Invalid(_))), "no position yet");
    consumer.seek(Position::Latest, &[]).await.unwrap();
    queue.put_to(0, "t", "c").await.unwrap();
    queue.put_to(1, "u", "d").await.unwrap();
    let found = now(&consumer, 0).await;
    assert_eq!(values(&found), ["c"], "latest was fixed by the seek");
    assert_eq!(values(&now(&consumer, 1).await), ["d"]);
    consumer.clone().commit(0, found.next).await.unwrap();
    consumer.commit(0, ids[0]).await.unwrap();
    assert!(values(&now(&consumer, 0).await).is_empty());
    consumer.seek(Position::Id(ids[1]), &[0]).await.unwrap();
    assert_eq!(values(&now(&consumer, 0).await), ["b", "c"]);
    consumer.seek(Position::Ago(Duration::from_secs(3600)), &[]).await.unwrap();
    assert_eq!(values(&now(&consumer, 0).await), ["a", "b", "c"]);
    let of_topic = queue.pull_consumer(None).unwrap().topic("u");
    of_topic.seek(Position::Earliest, &[]).await.unwrap();
    assert_eq!((values(&now(&of_topic, 0).await).len(), values(&now(&of_topic, 1).await).len()), (0, 1));
    assert!(broker.connect().await.admin().list_subscribers("q").await.unwrap().is_empty(), "the broker knows of none");
    broker.stop().await;
}

#[tokio::test]
async fn waits_hold_up_nobody_and_end_where_they_are_dropped() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 4).await;
    let consumer = queue.pull_consumer("s").unwrap();
    consumer.begin(Position::Earliest).await.unwrap();
    let mut waits = Vec::new();
    for partition in 0..4 {
        let consumer = consumer.clone();
        waits.push(tokio::spawn(async move { consumer.fetch(partition, None, 10, Duration::from_secs(60)).await }));
    }
    let dropped = tokio::time::timeout(Duration::from_millis(200), consumer.fetch(0, None, 10, Duration::from_secs(60))).await;
    assert!(dropped.is_err());
    for partition in [3, 1, 0, 2] {
        let began = Instant::now();
        queue.put_to(partition, "t", partition.to_string()).await.unwrap();
        let found = waits.get_mut(partition as usize).unwrap().await.unwrap().unwrap();
        assert_eq!(values(&found), [partition.to_string()]);
        assert!(began.elapsed() < PATIENCE / 3, "{:?}", began.elapsed());
        consumer.commit(partition, found.next).await.unwrap();
    }
    let began = Instant::now();
    assert!(values(&consumer.fetch(0, None, 10, Duration::from_millis(100)).await.unwrap()).is_empty());
    assert!(began.elapsed() >= Duration::from_millis(99));
    broker.stop().await;
}

#[tokio::test]
async fn a_poll_gives_each_partition_its_share_and_waits_for_any() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 70).await;
    let consumer = queue.pull_consumer("s").unwrap();
    consumer.begin(Position::Earliest).await.unwrap();
    let all = consumer.partitions().await.unwrap();
    assert!(consumer.poll(&all, 10, Duration::ZERO).await.unwrap().is_empty());
    let (waiter, partitions) = (consumer.clone(), all.clone());
    let wait = tokio::spawn(async move { waiter.poll(&partitions, 10, Duration::from_secs(60)).await });
    queue.put_to(69, "t", "first").await.unwrap();
    let polled = wait.await.unwrap().unwrap();
    assert_eq!(polled.messages().map(|m| m.partition).collect::<Vec<_>>(), [69]);
    let mut expected = 1;
    for (partition, count) in [(0, 50), (1, 50), (2, 3)] {
        for n in 0..count {
            queue.put_to(partition, "t", n.to_string()).await.unwrap();
        }
        expected += count;
    }
    let shares = consumer.poll(&[0, 1, 2], 43, Duration::ZERO).await.unwrap();
    assert_eq!(shares.fetched.iter().map(|f| f.messages.len()).collect::<Vec<_>>(), [20, 20, 3]);
    let mut seen = 0;
    loop {
        let polled = consumer.poll(&all, 30, Duration::ZERO).await.unwrap();
        assert!(polled.messages().count() <= 30 && polled.failed.is_empty());
        if polled.is_empty() {
            break;
        }
        seen += polled.messages().count();
        for fetched in &polled.fetched {
            consumer.commit(fetched.partition, fetched.next).await.unwrap();
        }
    }
    assert_eq!(seen, expected);
    broker.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_an_error() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 2).await;
    for name in ["", "a b", "owner"] {
        assert!(matches!(queue.pull_consumer(name), Err(Error::Invalid(_))), "{name:?}");
    }
    let consumer = queue.pull_consumer("s").unwrap();
    consumer.begin(Position::Earliest).await.unwrap();
    for max in [0, 100_001] {
        let Err(Error::Invalid(reason)) = consumer.fetch(0, None, max, Duration::ZERO).await else { panic!("{max}") };
        assert!(reason.contains("100000"), "{reason}");
    }
    assert_eq!(consumer.fetch(2, None, 1, Duration::ZERO).await.unwrap_err().code(), Some(ErrorCode::Invalid));
    // A partition that fails is named, and the others are served.
    queue.put_to(1, "t", "a").await.unwrap();
    let polled = consumer.poll(&[0, 1, 2], 10, Duration::ZERO).await.unwrap();
    assert_eq!((polled.messages().count(), polled.failed.len(), polled.failed[0].0), (1, 1, 2));
    assert!(consumer.poll(&[2, 3], 10, Duration::ZERO).await.is_err());
    broker.stop().await;
    assert!(consumer.fetch(0, None, 1, Duration::from_secs(5)).await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn a_seek_moves_the_position_of_a_name() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 2).await;
    for value in ["a", "b"] {
        queue.put_to(0, "t", value).await.unwrap();
    }
    let consumer = queue.pull_consumer("s").unwrap();
    consumer.begin(Position::Latest).await.unwrap();
    assert!(values(&now(&consumer, 0).await).is_empty());
    consumer.seek(Position::Earliest, &[0]).await.unwrap();
    assert_eq!(values(&now(&consumer, 0).await), ["a", "b"]);
    consumer.seek(Position::Latest, &[]).await.unwrap();
    assert!(values(&now(&consumer, 0).await).is_empty());
    broker.stop().await;
}

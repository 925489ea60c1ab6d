//! Subscribers: pushed to while they run, from where they were when they come back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by them")]

mod support;

use std::time::Duration;

use hqueue::{ErrorCode, Listeners, Message, Position, Queue, Subscription};
use support::{Broker, Seen, eventually};

async fn endpoints(queue: &Queue, broker: &Broker) -> Vec<String> {
    let status = broker.connect().await.admin().queue_status(queue.name()).await.unwrap();
    status.subscriptions.into_iter().find(|s| s.name == "s").map(|s| s.endpoints).unwrap_or_default()
}

#[tokio::test]
async fn it_gets_what_was_put_before_and_what_comes_and_goes_on_where_it_stopped() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    queue.put("t", "early").await.unwrap();
    let seen = Seen::default();
    let wanted = Subscription::new("s").from(Position::Earliest);
    let mut subscriber = queue.create_subscriber(wanted, Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    assert_eq!(endpoints(&queue, &broker).await, [subscriber.address().unwrap().to_string()]);
    queue.put("t", "later").await.unwrap();
    seen.wait_for(&["early", "later"]).await;
    subscriber.stop("test").await;
    assert!(endpoints(&queue, &broker).await.is_empty(), "it has unregistered");
    queue.put("t", "while it is away").await.unwrap();
    subscriber.start().await.unwrap();
    seen.wait_for(&["early", "later", "while it is away"]).await;
    subscriber.stop("test").await;
    broker.stop().await;
}

#[tokio::test]
async fn it_gets_only_the_topics_and_partitions_it_wants() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 3).await;
    for partition in 0..3 {
        for topic in ["a", "b"] {
            queue.put_to(partition, topic, format!("{partition}{topic}")).await.unwrap();
        }
    }
    let seen = Seen::default();
    let wanted = Subscription::new("s").topic("b").partition_from(1, Position::Earliest).partition(2);
    let mut subscriber = queue.create_subscriber(wanted, Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    seen.wait_for(&["1b"]).await;
    for partition in 0..3 {
        queue.put_to(partition, "a", "no").await.unwrap();
        queue.put_to(partition, "b", format!("{partition}b later")).await.unwrap();
    }
    eventually("all that is wanted", || async { seen.values().len() == 3 }).await;
    let mut values = seen.values();
    values.sort();
    assert_eq!(values, ["1b", "1b later", "2b later"]);
    subscriber.stop("test").await;
    broker.stop().await;
}

#[tokio::test]
async fn a_failure_is_repeated_from_that_message_on() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    for value in ["1", "2", "3"] {
        queue.put("t", value).await.unwrap();
    }
    let (first, second) = (Seen::default(), Seen::default());
    let note = second.listener();
    let failures = std::sync::atomic::AtomicU32::new(0);
    let fails_once = move |message: &Message| {
        if message.value == "2" && failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            return Err("not yet".to_owned());
        }
        note(message)
    };
    let wanted = Subscription::new("s").from(Position::Earliest);
    let listeners = Listeners::one(first.listener()).and(fails_once);
    let mut subscriber = queue.create_subscriber(wanted, listeners);
    subscriber.start().await.unwrap();
    second.wait_for(&["1", "2", "3"]).await;
    assert_eq!(first.values(), ["1", "2", "2", "3"], "what was consumed is not repeated");
    subscriber.stop("test").await;
    broker.stop().await;
}

#[tokio::test]
async fn it_registers_again_when_the_broker_comes_back() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let seen = Seen::default();
    let wanted = Subscription::new("s").from(Position::Earliest);
    let mut subscriber = queue.create_subscriber(wanted, Listeners::one(seen.listener()));
    subscriber.start().await.unwrap();
    queue.put("t", "before").await.unwrap();
    seen.wait_for(&["before"]).await;
    broker.stop().await;
    broker.start_again().await;
    eventually("it is registered", || async { !endpoints(&queue, &broker).await.is_empty() }).await;
    queue.put("t", "after").await.unwrap();
    seen.wait_for(&["before", "after"]).await;
    subscriber.stop("test").await;
    broker.stop().await;
}

#[tokio::test]
async fn a_stop_waits_for_the_call_in_hand() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let seen = Seen::default();
    let note = seen.listener();
    let (entered, mut begun) = tokio::sync::mpsc::unbounded_channel();

    struct Slow<F>(F, tokio::sync::mpsc::UnboundedSender<()>);
    impl<F: Fn(&Message) -> Result<(), String> + Send + Sync + 'static> hqueue::MessageListener for Slow<F> {
        type Error = String;

        async fn consume(&self, message: &Message) -> Result<(), String> {
            let _ = self.1.send(());
            tokio::time::sleep(Duration::from_millis(300)).await;
            (self.0)(message)
        }
    }

    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::one(Slow(note, entered)));
    subscriber.start().await.unwrap();
    queue.put("t", "in hand").await.unwrap();
    begun.recv().await.unwrap();
    subscriber.stop("test").await;
    assert_eq!(seen.values(), ["in hand"]);
    let status = broker.connect().await.admin().queue_status("q").await.unwrap();
    assert_eq!(status.subscriptions[0].lag_messages, 0, "the broker has the answer");
    broker.stop().await;
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    let mut broker = Broker::start().await;
    let queue = broker.queue("q", 1).await;
    let nowhere = broker.connect().await.queue("nowhere").unwrap();
    let mut subscriber = nowhere.create_subscriber(Subscription::new("s"), Listeners::default());
    assert_eq!(subscriber.start().await.unwrap_err().code(), Some(ErrorCode::NotFound));
    assert_eq!(subscriber.address(), None);
    let mut subscriber = queue.create_subscriber(Subscription::new("bad name"), Listeners::default());
    assert_eq!(subscriber.start().await.unwrap_err().code(), Some(ErrorCode::Invalid));
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = other.local_addr().unwrap();
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::default()).listen(taken);
    assert!(matches!(subscriber.start().await, Err(hqueue::Error::Listen { .. })));
    let mut subscriber = queue.create_subscriber(Subscription::new("s"), Listeners::default()).advertise("nonsense");
    assert!(matches!(subscriber.start().await, Err(hqueue::Error::Invalid(_))));
    broker.stop().await;
}

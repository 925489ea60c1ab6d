//! HQueue's SDK: put, scan, subscribe and fetch from Rust.
//!
//! HQueue is a persistent message queue that pushes: a put is durable when it returns, and within about a millisecond the broker calls
//! every subscriber that wants the message.
//!
//! # Putting and scanning
//!
//! ```
//! # async fn example(url: &str) -> Result<(), hqueue::Error> {
//! use hqueue::{HQueue, QueueSpec, Scan};
//!
//! let hqueue = HQueue::connect(url).await?; // hqueue://127.0.0.1:9190, or zk://127.0.0.1:2181
//! let spec = QueueSpec { name: "q1".to_owned(), partitions: 4, ttl_seconds: 86_400, ..QueueSpec::default() };
//! hqueue.admin().create_queue(&spec).await?;
//!
//! let queue = hqueue.queue("q1")?;
//! let placed = queue.put_keyed("customer-42", "orders", "one pair of boots").await?;
//! println!("in partition {} as {}", placed.partition, placed.id);
//!
//! let mut scanner = queue.queue_scanner(Scan::all().topic("orders")).await?;
//! while let Some(message) = scanner.next().await? {
//!     assert_eq!(message.value, "one pair of boots");
//! }
//! # Ok(()) }
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! #     let folder = tempfile::tempdir().unwrap();
//! #     let options = hqueue_broker::Options {
//! #         data: folder.path().to_owned(), listen: ([127, 0, 0, 1], 0).into(), http: None, ..Default::default()
//! #     };
//! #     let broker = hqueue_broker::Broker::start(options).await.unwrap();
//! #     example(&format!("hqueue://{}", broker.address())).await.unwrap();
//! #     broker.stop().await;
//! # });
//! ```
//!
//! # Many puts at once
//!
//! A [`Producer`] gathers what many tasks put into batches, which are sent while others are under way.
//!
//! ```
//! # async fn example(url: &str) -> Result<(), hqueue::Error> {
//! use hqueue::{HQueue, NewMessage, ProducerOptions, Target};
//!
//! let producer = HQueue::connect(url).await?.queue("q1")?.producer(ProducerOptions::default())?;
//! let mut pending = Vec::new();
//! for n in 0..10_000 {
//!     let message = NewMessage::new("numbers", n.to_string()).header("made-by", "example");
//!     pending.push(producer.enqueue(Target::Partition(0), message).await?);
//! }
//! for message in pending {
//!     message.placed().await?;
//! }
//! producer.close().await?;
//! # Ok(()) }
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! #     let folder = tempfile::tempdir().unwrap();
//! #     let options = hqueue_broker::Options {
//! #         data: folder.path().to_owned(), listen: ([127, 0, 0, 1], 0).into(), http: None, ..Default::default()
//! #     };
//! #     let broker = hqueue_broker::Broker::start(options).await.unwrap();
//! #     let url = format!("hqueue://{}", broker.address());
//! #     let spec = hqueue::QueueSpec { name: "q1".into(), partitions: 1, ttl_seconds: 60, ..Default::default() };
//! #     hqueue::HQueue::connect(&url).await.unwrap().admin().create_queue(&spec).await.unwrap();
//! #     example(&url).await.unwrap();
//! #     broker.stop().await;
//! # });
//! ```
//!
//! # Subscribing
//!
//! A subscriber is a Thrift server in this process, on a free port, announced to the broker as long as it lives. How far it came is kept by
//! the broker under the subscription's name.
//!
//! ```
//! # async fn example(url: &str) -> Result<(), hqueue::Error> {
//! use hqueue::{HQueue, Listeners, Message, Position, Subscription};
//!
//! let queue = HQueue::connect(url).await?.queue("q1")?;
//! let (sender, mut values) = tokio::sync::mpsc::unbounded_channel();
//! let listener = move |message: &Message| sender.send(message.value.clone());
//! let wanted = Subscription::new("mailer").topic("orders").from(Position::Earliest);
//! let mut subscriber = queue.create_subscriber(wanted, Listeners::one(listener));
//! subscriber.start().await?;
//!
//! queue.put("orders", "one pair of boots").await?;
//! assert_eq!(values.recv().await.unwrap(), "one pair of boots");
//! subscriber.stop("the example is over").await;
//! # Ok(()) }
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! #     let folder = tempfile::tempdir().unwrap();
//! #     let options = hqueue_broker::Options {
//! #         data: folder.path().to_owned(), listen: ([127, 0, 0, 1], 0).into(), http: None, ..Default::default()
//! #     };
//! #     let broker = hqueue_broker::Broker::start(options).await.unwrap();
//! #     let url = format!("hqueue://{}", broker.address());
//! #     let spec = hqueue::QueueSpec { name: "q1".into(), partitions: 2, ttl_seconds: 60, ..Default::default() };
//! #     hqueue::HQueue::connect(&url).await.unwrap().admin().create_queue(&spec).await.unwrap();
//! #     example(&url).await.unwrap();
//! #     broker.stop().await;
//! # });
//! ```
//!
//! # Fetching
//!
//! A [`PullConsumer`] sets the pace itself: it fetches, works and commits. The broker keeps its position under a name, or the consumer keeps
//! it itself. A fetch that finds nothing waits for the next message, without polling.
//!
//! ```
//! # async fn example(url: &str) -> Result<(), hqueue::Error> {
//! use hqueue::{HQueue, Position};
//! use std::time::Duration;
//!
//! let queue = HQueue::connect(url).await?.queue("q1")?;
//! let consumer = queue.pull_consumer("archive")?;
//! consumer.begin(Position::Earliest).await?; // where the position is kept, if the name is new
//! queue.put_to(0, "orders", "one pair of boots").await?;
//!
//! // One partition, behind what was committed, waiting up to 10 s.
//! let fetched = consumer.fetch(0, None, 100, Duration::from_secs(10)).await?;
//! assert_eq!(fetched.messages[0].value, "one pair of boots");
//! consumer.commit(0, fetched.next).await?;
//!
//! // All partitions, each with its share.
//! queue.put_to(1, "orders", "laces").await?;
//! let polled = consumer.poll(&consumer.partitions().await?, 100, Duration::from_secs(10)).await?;
//! for fetched in &polled.fetched {
//!     println!("{} messages from partition {}", fetched.messages.len(), fetched.partition);
//!     consumer.commit(fetched.partition, fetched.next).await?;
//! }
//! assert_eq!(polled.messages().count(), 1);
//!
//! // With a position of its own: once more from the beginning.
//! let again = queue.pull_consumer(None)?;
//! again.seek(Position::Earliest, &[]).await?;
//! assert_eq!(again.fetch(0, None, 100, Duration::ZERO).await?.messages, fetched.messages);
//! # Ok(()) }
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! #     let folder = tempfile::tempdir().unwrap();
//! #     let options = hqueue_broker::Options {
//! #         data: folder.path().to_owned(), listen: ([127, 0, 0, 1], 0).into(), http: None, ..Default::default()
//! #     };
//! #     let broker = hqueue_broker::Broker::start(options).await.unwrap();
//! #     let url = format!("hqueue://{}", broker.address());
//! #     let spec = hqueue::QueueSpec { name: "q1".into(), partitions: 2, ttl_seconds: 60, ..Default::default() };
//! #     hqueue::HQueue::connect(&url).await.unwrap().admin().create_queue(&spec).await.unwrap();
//! #     example(&url).await.unwrap();
//! #     broker.stop().await;
//! # });
//! ```

mod admin;
mod cluster;
mod dead_letter;
mod error;
mod hqueue;
mod key;
mod listener;
mod message;
mod pull;
mod put;
mod queue;
mod scan;
mod subscriber;
mod url;

pub use hqueue_protocol::id::{BadMessageId, MessageId};
pub use hqueue_protocol::position::{BadPosition, Position};

pub use self::admin::{
    Admin, BrokerStatus, CallDetails, ClusterStatus, Explanation, MessageStanding, PartitionStatus, QueueDescription, QueueSpec,
    QueueStatus, QueueSummary, Redriven, SubscriberSpec, SubscriptionStatus, WhenFull,
};
pub use self::dead_letter::{DeadLetter, DeadLetters};
pub use self::error::{Error, ErrorCode};
pub use self::hqueue::{ConnectOptions, HQueue};
pub use self::key::{key_hash, partition_of_key};
pub use self::listener::{Listeners, MessageListener};
pub use self::message::Message;
pub use self::pull::{Fetched, Polled, PullConsumer};
pub use self::put::{NewMessage, PendingPut, Placed, PlacedBatch, Producer, ProducerOptions, Target};
pub use self::queue::Queue;
pub use self::scan::{CombinedPartitionScanner, PartitionScanner, QueueScanner, Scan};
pub use self::subscriber::{HQueueSubscriber, Subscription};
pub use self::url::is_address;

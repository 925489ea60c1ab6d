//! HQueue's SDK: put, scan and subscribe from Rust.
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
//! let hqueue = HQueue::connect(url).await?; // hqueue://127.0.0.1:9190
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
//! #     let broker = hqueue_broker::Standalone::start(options).await.unwrap();
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
//! #     let broker = hqueue_broker::Standalone::start(options).await.unwrap();
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
//! #     let broker = hqueue_broker::Standalone::start(options).await.unwrap();
//! #     let url = format!("hqueue://{}", broker.address());
//! #     let spec = hqueue::QueueSpec { name: "q1".into(), partitions: 2, ttl_seconds: 60, ..Default::default() };
//! #     hqueue::HQueue::connect(&url).await.unwrap().admin().create_queue(&spec).await.unwrap();
//! #     example(&url).await.unwrap();
//! #     broker.stop().await;
//! # });
//! ```

mod admin;
mod error;
mod hqueue;
mod key;
mod listener;
mod message;
mod put;
mod queue;
mod scan;
mod subscriber;
mod url;

pub use hqueue_protocol::id::{BadMessageId, MessageId};
pub use hqueue_protocol::position::{BadPosition, Position};

pub use self::admin::{
    Admin, BrokerStatus, ClusterStatus, PartitionStatus, QueueDescription, QueueSpec, QueueStatus, QueueSummary, SubscriberSpec,
    SubscriptionStatus,
};
pub use self::error::{Error, ErrorCode};
pub use self::hqueue::HQueue;
pub use self::key::{key_hash, partition_of_key};
pub use self::listener::{Listeners, MessageListener};
pub use self::message::Message;
pub use self::put::{NewMessage, PendingPut, Placed, PlacedBatch, Producer, ProducerOptions, Target};
pub use self::queue::Queue;
pub use self::scan::{CombinedPartitionScanner, PartitionScanner, QueueScanner, Scan};
pub use self::subscriber::{HQueueSubscriber, Subscription};

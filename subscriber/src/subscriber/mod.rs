//! Being a subscriber: a Thrift server that the broker calls, and a registration that says where it is,
//! kept by a broker (`registration`) or written to ZooKeeper by itself (`zookeeper`).

mod endpoint;
mod hqueue_subscriber;
mod registration;
mod service;
mod subscription;
mod zookeeper;

pub use self::hqueue_subscriber::HQueueSubscriber;
pub use self::subscription::Subscription;
pub(crate) use self::subscription::position_text;

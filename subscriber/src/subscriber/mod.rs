//! Being a subscriber: a Thrift server that the broker calls, and a registration that says where it is.

mod hqueue_subscriber;
mod registration;
mod service;
mod subscription;

pub use self::hqueue_subscriber::HQueueSubscriber;
pub use self::subscription::Subscription;
pub(crate) use self::subscription::position_text;

//! Consuming at one's own pace: fetch, work, commit.
//!
//! ```text
//! consumer      fetch, commit, seek of one partition
//! poll          fair over many partitions, and waiting for the first message of any
//! request       the bytes of a fetch and of what it returns
//! connections   a connection for each fetch under way: a wait holds up nobody, and ends with it
//! ```

mod connections;
mod consumer;
mod poll;
mod request;

pub use self::consumer::PullConsumer;
pub use self::poll::Polled;

use hqueue_protocol::id::MessageId;

use crate::message::Message;

/// What a fetch returned of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub partition: i16,
    /// In order.
    pub messages: Vec<Message>,
    /// Where the next fetch begins, and what to commit when all of these are done. Also without messages it may have moved on, past some
    /// that were not wanted.
    pub next: MessageId,
}

//! A message that could not be consumed, on its way to where it is kept.

use std::fmt::Debug;
use std::sync::Arc;

use hqueue_coordination::BoxFuture;
use hqueue_protocol::stored::StoredSlice;

/// A dead letter with its story.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    pub queue: String,
    pub subscriber: String,
    pub partition: i16,
    /// The one message.
    pub message: StoredSlice,
    pub attempts: u32,
    /// Why it could not be consumed, for people.
    pub error: String,
}

/// Keeps dead letters.
pub trait DeadLetterBox: Debug + Send + Sync + 'static {
    /// Can letters of this queue be kept? Those of a dead-letter queue itself cannot.
    fn takes(&self, queue: &str) -> bool;

    /// Keeps a letter; durable when it returns. The same one twice is kept once. The error is for people.
    fn keep(&self, letter: DeadLetter) -> BoxFuture<'_, Result<(), String>>;
}

/// A shared box.
pub type SharedDeadLetterBox = Arc<dyn DeadLetterBox>;

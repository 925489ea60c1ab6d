//! What a consumer remembers.

use std::time::Instant;

use super::answer::Answer;
use crate::message::Message;

/// A call with messages.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it had arrived.
    pub at: Instant,
    pub messages: Vec<Message>,
    pub answer: Answer,
}

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) calls: Vec<Call>,
    pub(super) empty_calls: usize,
    pub(super) accepted: Vec<Message>,
    /// Connections that were accepted.
    pub(super) connections: u64,
}

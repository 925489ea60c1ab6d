//! Messages that are pushed again outside of the order: dead letters that get another chance. They take the worker's turn, so that the
//! partition has one call in flight, and leave the checkpoint where it is.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

use hqueue_protocol::stored::StoredSlice;
use tokio::sync::oneshot;

use super::{Batch, Next, SubscriptionWorker};
use crate::subscription::outcome::Outcome;

/// Beyond a call's own time: until it is this worker's turn.
const TURN_PATIENCE: Duration = Duration::from_secs(10);

/// How many were accepted, from the first on.
pub type Redelivered = Result<u32, Unaccepted>;

/// Why none was accepted; for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unaccepted {
    /// The subscriber failed at them.
    Failed(String),
    /// They cannot be tried now, and others neither.
    Untried(String),
}

/// Messages that wait for a turn.
#[derive(Debug)]
pub(super) struct Redelivery {
    slice: StoredSlice,
    reply: oneshot::Sender<Redelivered>,
}

impl SubscriptionWorker {
    /// Pushes these messages once, as many as fit into a call. Returns how many were accepted; the error says why none was.
    pub async fn redeliver(self: &Arc<Self>, slice: StoredSlice) -> Redelivered {
        if self.shared.is_held(self.partition) {
            return Err(self.why_held());
        }
        if !self.shared.has_endpoint(self.partition) {
            return Err(Unaccepted::Untried("the subscription has no endpoint".to_owned()));
        }
        let (reply, answer) = oneshot::channel();
        {
            let mut progress = self.lock();
            if progress.redelivery.is_some() {
                return Err(Unaccepted::Untried("another redelivery is under way".to_owned()));
            }
            progress.redelivery = Some(Redelivery { slice, reply });
        }
        Self::hurry(self);
        let patience = self.shared.options.call_timeout + TURN_PATIENCE;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(accepted)) => accepted,
            Ok(Err(_)) => Err(Unaccepted::Untried("the subscription was ended".to_owned())),
            Err(_) => {
                self.lock().redelivery = None;
                Err(Unaccepted::Untried("the subscriber does not answer".to_owned()))
            }
        }
    }

    fn why_held(&self) -> Unaccepted {
        let (queue, name) = (&self.shared.queue, &self.shared.name);
        Unaccepted::Untried(if self.shared.held.load(Acquire) {
            format!("queue {queue} is disabled")
        } else if self.shared.paused.load(Acquire) {
            format!("subscriber {name} of queue {queue} is paused")
        } else {
            format!("partition {} of queue {queue} is not held by this broker", self.partition)
        })
    }

    /// What is to be redelivered goes before everything else.
    pub(super) fn redelivery_batch(&self, messages: u32, bytes: usize) -> Option<Batch> {
        let mut progress = self.lock();
        let Redelivery { slice, reply } = progress.redelivery.take()?;
        // What cannot be split was made a moment ago from messages that could be read.
        let (slice, _) = slice.clone().split_front(messages, bytes).unwrap_or((slice, None));
        let generation = progress.generation;
        Some(Batch { messages: slice.count, slices: vec![slice], cold: false, generation, redelivery: Some(reply), flight: None })
    }

    pub(super) fn redelivered(&self, reply: oneshot::Sender<Redelivered>, sent: u32, outcome: Outcome) -> Next {
        let (result, next) = match outcome {
            Outcome::Consumed(k) => (Ok(k.min(sent)), Next::Again),
            Outcome::Busy => (Err(Unaccepted::Untried("the subscriber is busy (-2)".to_owned())), Next::Again),
            Outcome::Refused => (Err(Unaccepted::Failed("the subscriber refused it for good (-3)".to_owned())), Next::Again),
            Outcome::Failed(reason) => (Err(Unaccepted::Failed(reason)), Next::Again),
            Outcome::NoAnswer { reason, silence, .. } => {
                let why = if silence.may_have_arrived() { Unaccepted::Failed } else { Unaccepted::Untried };
                (Err(why(reason)), Next::Ask(Duration::ZERO))
            }
        };
        // Whoever asked may have given up.
        let _ = reply.send(result);
        next
    }
}

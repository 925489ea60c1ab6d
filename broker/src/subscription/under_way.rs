//! The calls of a worker that are under way, for those who ask where a message is.

use std::sync::{Arc, Mutex, PoisonError};

use hqueue_protocol::id::MessageId;

use super::worker::Batch;
use crate::time::Moment;

/// A call that is under way.
#[derive(Clone, Debug)]
pub struct OnItsWay {
    pub first: MessageId,
    pub last: MessageId,
    pub endpoint: Arc<str>,
    pub began: Moment,
    /// Attempts before it.
    pub attempts: u32,
    /// A dead letter gets another chance.
    pub is_redelivery: bool,
}

/// As many as a worker may have at once.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<Vec<OnItsWay>>);

impl UnderWay {
    pub(super) fn begin(&self, batch: &Batch, endpoint: &Arc<str>, attempts: u32) {
        let Some((first, last)) = batch.ends() else { return };
        let is_redelivery = batch.is_redelivery();
        let call = OnItsWay { first, last, endpoint: Arc::clone(endpoint), began: Moment::now(), attempts, is_redelivery };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// The call with this batch has ended.
    pub(super) fn end(&self, batch: &Batch) -> Option<OnItsWay> {
        let (first, _) = batch.ends()?;
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = calls.iter().position(|call| call.first == first && call.is_redelivery == batch.is_redelivery())?;
        Some(calls.swap_remove(at))
    }

    pub(super) fn all(&self) -> Vec<OnItsWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! One line on its way: put, stored, pushed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hqueue::{Message, MessageListener, NewMessage, Placed, Queue, Target};
use tokio::sync::oneshot;

use crate::failure::Failure;

/// The header that carries a line's number.
const NUMBER: &str = "line";
/// A push that takes longer is a failure of the demo.
const PATIENCE: Duration = Duration::from_secs(30);

/// A line that was pushed.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) value: Bytes,
    pub(super) placed: Placed,
    /// From put to push.
    pub(super) took: Duration,
}

/// The subscriber's listener: tells who waits for a line that it was pushed. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<HashMap<u64, oneshot::Sender<Instant>>>>);

impl Watched {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, number: u64) -> oneshot::Receiver<Instant> {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(number, sender);
        receiver
    }
}

impl MessageListener for Watched {
    type Error = Infallible;

    async fn consume(&self, message: &Message) -> Result<(), Infallible> {
        let now = Instant::now();
        let number = message.headers.iter().find(|(name, _)| name == NUMBER);
        let number = number.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        if let Some(waiter) = number.and_then(|number: u64| self.lock().remove(&number)) {
            // Whoever waited may have given up.
            let _ = waiter.send(now);
        }
        Ok(())
    }
}

/// Puts a line and waits until it was pushed.
pub(super) async fn put(queue: Queue, watched: Watched, number: u64, value: Bytes) -> Result<Line, Failure> {
    let pushed = watched.watch(number);
    let message = NewMessage::new("demo", value.clone()).header(NUMBER, number.to_string());
    let began = Instant::now();
    let batch = queue.put_all(Target::Any, std::slice::from_ref(&message)).await?;
    let id = batch.ids.first().copied().ok_or_else(|| Failure::failed("the broker gave no id"))?;
    let late = || Failure::failed(format!("line {number} was stored as {id} but not pushed within {PATIENCE:?}"));
    let pushed = tokio::time::timeout(PATIENCE, pushed).await.map_err(|_| late())?.map_err(Failure::failed)?;
    Ok(Line { value, placed: Placed { partition: batch.partition, id }, took: pushed.duration_since(began) })
}

//! Puts under way through a client library whose calls are futures.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;

use crate::failure::Outcome;

/// Keeps the order: of the first poll, which is when client libraries send, and of the answers.
#[derive(Default)]
pub struct Flights {
    pending: FuturesOrdered<BoxFuture<'static, Outcome<()>>>,
    /// Answers that came while something else was sent.
    landed: VecDeque<Outcome<()>>,
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flights({} pending, {} landed)", self.pending.len(), self.landed.len())
    }
}

impl Flights {
    /// Begins a put without waiting for its end.
    pub async fn launch(&mut self, put: BoxFuture<'static, Outcome<()>>) {
        // The runtime may make any first poll wait for a turn when a task has done much already, and a later put go before it.
        self.pending.push_back(Box::pin(tokio::task::unconstrained(put)));
        poll_fn(|context| {
            self.collect(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Waits until the oldest put has ended; how many of the oldest have. Cancel safe.
    pub async fn landed(&mut self) -> Outcome<usize> {
        poll_fn(|context| {
            self.collect(context);
            if self.landed.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        let count = self.landed.len();
        self.landed.drain(..).collect::<Outcome<()>>().map(|()| count)
    }

    fn collect(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some(answer)) = self.pending.poll_next_unpin(context) {
            self.landed.push_back(answer);
        }
    }
}

//! A count that somebody may wait for; counting wakes nobody before it is reached.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::failure::{Failure, Outcome};

/// How often the waiting looks whether there is a reason to give up.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Counter {
    now: AtomicU64,
    wanted: AtomicU64,
    reached: Notify,
}

impl Default for Counter {
    fn default() -> Self {
        Self { now: AtomicU64::new(0), wanted: AtomicU64::new(u64::MAX), reached: Notify::new() }
    }
}

impl Counter {
    pub(super) fn get(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    pub(super) fn add(&self, count: u64) {
        let now = self.now.fetch_add(count, Ordering::SeqCst) + count;
        if now >= self.wanted.load(Ordering::SeqCst) {
            self.reached.notify_waiters();
        }
    }

    /// Waits until it is `wanted`, for one at a time. An error if `check` finds one, or if it stands still for `patience`.
    pub(super) async fn wait(&self, wanted: u64, what: &str, patience: Duration, check: impl Fn() -> Outcome<()>) -> Outcome<()> {
        let (mut last, mut moved) = (self.get(), Instant::now());
        loop {
            let mut reached = std::pin::pin!(self.reached.notified());
            reached.as_mut().enable();
            self.wanted.store(wanted, Ordering::SeqCst);
            check()?;
            let now = self.get();
            if now >= wanted {
                self.wanted.store(u64::MAX, Ordering::SeqCst);
                return Ok(());
            }
            if now != last {
                (last, moved) = (now, Instant::now());
            }
            if moved.elapsed() >= patience {
                return Err(Failure::Invalid(format!("{now} of {wanted} {what} came, and nothing more for {patience:?}")));
            }
            // Reached or not is seen in the next turn.
            let _ = timeout(LOOK.min(patience), reached).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_reached_wakes_and_what_stands_still_fails() {
        let counter = std::sync::Arc::new(Counter::default());
        let theirs = std::sync::Arc::clone(&counter);
        let waiting = tokio::spawn(async move { theirs.wait(3, "messages", Duration::from_secs(30), || Ok(())).await });
        for _ in 0..3 {
            tokio::task::yield_now().await;
            counter.add(1);
        }
        waiting.await.unwrap().unwrap();
        let late = counter.wait(4, "messages", Duration::from_millis(10), || Ok(())).await;
        assert!(late.unwrap_err().to_string().contains("3 of 4 messages came"));
    }
}

//! Deadlines of connections without a timer each: a connection stamps its own, one sweep looks at all of them.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::pace::millis;

/// Milliseconds since a server began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { began: Instant::now() }
    }

    pub(super) fn now(self) -> u64 {
        millis(self.began.elapsed())
    }
}

/// No deadline.
pub(super) const NEVER: u64 = u64::MAX;

/// What others see of a connection's task.
#[derive(Debug)]
pub(super) struct Watch {
    deadline: AtomicU64,
    task: AtomicWaker,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self { deadline: AtomicU64::new(NEVER), task: AtomicWaker::new() }
    }

    /// Whom `wake` and `wake_if_due` wake.
    pub(super) fn register(&self, task: &std::task::Waker) {
        self.task.register(task);
    }

    pub(super) fn stamp(&self, deadline: u64) {
        self.deadline.store(deadline, Ordering::Relaxed);
    }

    pub(super) fn wake(&self) {
        self.task.wake();
    }

    /// The task looks itself whether its deadline has passed: it may have moved since.
    pub(super) fn wake_if_due(&self, now: u64) {
        if self.deadline.load(Ordering::Relaxed) <= now {
            self.task.wake();
        }
    }
}

//! Whose turn it is: the state that keeps a worker at one place at a time without a lock.

use std::sync::atomic::{AtomicU8, Ordering};

/// A worker is in one of these states; only one sender at a time has its turn.
///
/// ```text
/// Idle --wake--> Queued --begin--> Running --wake--> RunningAgain
///  ^                ^                |  |                 |
///  |                +---- again -----+  +-- wait --> Waiting --over--> Queued
///  +------------------- end -------------- (RunningAgain ends in Queued)
/// ```
#[derive(Debug, Default)]
pub(super) struct Turn(AtomicU8);

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const RUNNING_AGAIN: u8 = 3;
const WAITING: u8 = 4;

impl Turn {
    /// Something may be there to do. True: the caller has to queue the worker.
    pub(super) fn wake(&self) -> bool {
        let step = |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(RUNNING_AGAIN),
            _ => None,
        };
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, step) == Ok(IDLE)
    }

    /// A sender takes the worker from its queue.
    pub(super) fn begin(&self) {
        self.0.store(RUNNING, Ordering::Release);
    }

    /// The sender found nothing more to do. True: something came meanwhile, and the caller has to queue the worker.
    pub(super) fn end(&self) -> bool {
        if self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return false;
        }
        self.0.store(QUEUED, Ordering::Release);
        true
    }

    /// There is more to do: the caller has to queue the worker.
    pub(super) fn again(&self) {
        self.0.store(QUEUED, Ordering::Release);
    }

    /// Nothing before a wait is over.
    pub(super) fn wait(&self) {
        self.0.store(WAITING, Ordering::Release);
    }

    /// The wait is over, or cut short. True: the caller has to queue the worker.
    pub(super) fn wait_over(&self) -> bool {
        self.0.compare_exchange(WAITING, QUEUED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Queued, but there is nowhere to go.
    pub(super) fn rest(&self) {
        self.0.store(IDLE, Ordering::Release);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == IDLE
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Acquire) == WAITING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_during_a_turn_is_not_lost() {
        let turn = Turn::default();
        assert!(turn.wake(), "idle: has to be queued");
        assert!(!turn.wake(), "queued already");
        turn.begin();
        assert!(!turn.wake(), "running: noted");
        assert!(turn.end(), "so it is queued again");
        turn.begin();
        assert!(!turn.end());
        assert!(turn.wake(), "idle again");
    }

    #[test]
    fn a_wake_does_not_cut_a_wait_short() {
        let turn = Turn::default();
        turn.wake();
        turn.begin();
        turn.wait();
        assert!(!turn.wake());
        assert!(turn.is_waiting());
        assert!(turn.wait_over());
        assert!(!turn.wait_over(), "only once");
    }
}

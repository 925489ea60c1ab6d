//! Where syncs can be made to wait.

use std::sync::{Condvar, Mutex, PoisonError};

/// Open by default.
#[derive(Debug, Default)]
pub(super) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(super) fn set_closed(&self, closed: bool) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.opened.notify_all();
    }

    /// Waits until it is open.
    pub(super) fn pass(&self) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap_or_else(PoisonError::into_inner));
    }
}

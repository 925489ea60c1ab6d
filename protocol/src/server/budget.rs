//! A bound on what all connections of a server hold in memory together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that each connection may hold without asking: small calls go on when large ones have used the bound up.
pub const FREE_BYTES: usize = 16 << 10;

/// The bound, shared by all connections.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// What one connection holds of the bound; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    charged: usize,
}

impl Share {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, charged: 0 }
    }

    /// The connection now holds `bytes`. False, and nothing changed, if that goes beyond the bound.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(FREE_BYTES);
        if wanted > self.charged {
            let more = wanted - self.charged;
            let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= self.budget.limit);
            if self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
                return false;
            }
        } else if wanted < self.charged {
            self.budget.used.fetch_sub(self.charged - wanted, Ordering::Relaxed);
        }
        self.charged = wanted;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bound_is_refused_and_given_back_at_the_end() {
        let budget = Budget::new(1000);
        let mut one = Share::new(budget.clone());
        let mut two = Share::new(budget.clone());
        assert!(one.hold(FREE_BYTES + 700));
        assert!(two.hold(FREE_BYTES));
        assert!(!two.hold(FREE_BYTES + 301));
        assert!(two.hold(FREE_BYTES + 300));
        assert_eq!(budget.used(), 1000);
        assert!(one.hold(FREE_BYTES + 10));
        assert_eq!(budget.used(), 310);
        drop(one);
        drop(two);
        assert_eq!(budget.used(), 0);
    }
}

//! What all connections to one endpoint know of it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::wire::{Dialect, Protocol, Transport};

/// In the order in which they are tried: what stock servers speak most comes first.
pub(super) const DIALECTS: [Dialect; 4] = [
    Dialect { transport: Transport::Buffered, protocol: Protocol::Binary },
    Dialect { transport: Transport::Framed, protocol: Protocol::Binary },
    Dialect { transport: Transport::Buffered, protocol: Protocol::Compact },
    Dialect { transport: Transport::Framed, protocol: Protocol::Compact },
];

/// What all connections to one endpoint know of it: the dialect that worked.
///
/// After an end without an answer that dialect is doubted: the next connection finds out anew, beginning with it.
#[derive(Debug, Default)]
pub struct EndpointMemory {
    /// 0: nothing was found yet; else 1 + the index in `DIALECTS`, and `DOUBT` with it if that has to be found out anew.
    found: AtomicU8,
    /// In which order dialects are to be tried; empty: as in `DIALECTS`.
    order: Mutex<Vec<Dialect>>,
    /// It leaves idle connections without closing them, as PHP's servers do.
    leaves_idle: AtomicBool,
}

const DOUBT: u8 = 0x80;

impl EndpointMemory {
    /// The dialect that works.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        let found = self.found.load(Ordering::Relaxed);
        if found & DOUBT == 0 { dialect_of(found) } else { None }
    }

    /// All dialects, in the order in which they are to be tried: the one that worked last comes first, those behind which the endpoint
    /// was away come last.
    pub(super) fn order(&self) -> Vec<Dialect> {
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if order.is_empty() { DIALECTS.to_vec() } else { order.clone() }
    }

    /// The endpoint went away when these had been tried, in vain. Some servers (PHP's) end at bytes of another protocol: one that is
    /// started again each time would never be asked in its own.
    pub(super) fn went_away(&self, tried: &[Dialect]) {
        let (mut order, back): (Vec<_>, Vec<_>) = self.order().into_iter().partition(|dialect| !tried.contains(dialect));
        order.extend(back);
        self.set_order(order);
    }

    /// It was there for all that can be tried, in vain.
    pub(super) fn stayed(&self) {
        self.set_order(beginning_with(dialect_of(self.found.load(Ordering::Relaxed) & !DOUBT)));
    }

    fn set_order(&self, order: Vec<Dialect>) {
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = order;
    }

    /// Is a connection that was idle better replaced before it is used?
    pub(super) fn leaves_idle(&self) -> bool {
        self.leaves_idle.load(Ordering::Relaxed)
    }

    /// A call over a connection that had been idle had no answer in time. Once is enough: to replace one for nothing costs little.
    pub(super) fn left_idle(&self) {
        self.leaves_idle.store(true, Ordering::Relaxed);
    }

    pub(super) fn works(&self, dialect: Dialect) {
        let code = code_of(dialect);
        if self.found.load(Ordering::Relaxed) != code {
            self.found.store(code, Ordering::Relaxed);
            self.set_order(beginning_with(Some(dialect)));
        }
    }

    /// Does nothing if another connection has found another dialect meanwhile.
    pub(super) fn doubt(&self, dialect: Dialect) {
        let code = code_of(dialect);
        let _ = self.found.compare_exchange(code, code | DOUBT, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn code_of(dialect: Dialect) -> u8 {
    DIALECTS.iter().zip(1..).find(|(known, _)| **known == dialect).map_or(0, |(_, code)| code)
}

fn beginning_with(first: Option<Dialect>) -> Vec<Dialect> {
    let mut order = DIALECTS.to_vec();
    order.sort_by_key(|dialect| Some(*dialect) != first);
    order
}

fn dialect_of(code: u8) -> Option<Dialect> {
    DIALECTS.get(usize::from(code).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubted_dialect_is_not_used_unasked_and_not_forgotten() {
        let memory = EndpointMemory::default();
        assert_eq!((memory.dialect(), memory.order()), (None, DIALECTS.to_vec()));
        for dialect in DIALECTS {
            memory.works(dialect);
            assert_eq!(memory.dialect(), Some(dialect));
            memory.doubt(dialect);
            assert_eq!((memory.dialect(), memory.order()[0]), (None, dialect));
        }
    }

    #[test]
    fn what_the_endpoint_ended_at_is_tried_last() {
        let memory = EndpointMemory::default();
        let [a, b, c, d] = DIALECTS;
        memory.works(c);
        memory.doubt(c);
        assert_eq!(memory.order(), [c, a, b, d]);
        memory.went_away(&[c]);
        assert_eq!(memory.order(), [a, b, d, c]);
        memory.went_away(&[a, b]);
        assert_eq!(memory.order(), [d, c, a, b]);
        memory.went_away(&[]);
        memory.went_away(&[d, c, a, b]);
        assert_eq!(memory.order(), [d, c, a, b]);
        memory.stayed();
        assert_eq!(memory.order(), [c, a, b, d]);
    }

    #[test]
    fn doubt_of_an_old_dialect_leaves_a_newer_one_alone() {
        let memory = EndpointMemory::default();
        memory.works(DIALECTS[3]);
        memory.doubt(DIALECTS[0]);
        assert_eq!(memory.dialect(), Some(DIALECTS[3]));
    }
}

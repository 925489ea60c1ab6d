//! What all connections to one endpoint know of it.

use std::sync::atomic::{AtomicU8, Ordering};

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
}

const DOUBT: u8 = 0x80;

impl EndpointMemory {
    /// The dialect that works.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        let found = self.found.load(Ordering::Relaxed);
        if found & DOUBT == 0 { dialect_of(found) } else { None }
    }

    /// The dialect that worked last, doubted or not.
    pub(super) fn last(&self) -> Option<Dialect> {
        dialect_of(self.found.load(Ordering::Relaxed) & !DOUBT)
    }

    pub(super) fn works(&self, dialect: Dialect) {
        let code = code_of(dialect);
        if self.found.load(Ordering::Relaxed) != code {
            self.found.store(code, Ordering::Relaxed);
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

fn dialect_of(code: u8) -> Option<Dialect> {
    DIALECTS.get(usize::from(code).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubted_dialect_is_not_used_unasked_and_not_forgotten() {
        let memory = EndpointMemory::default();
        assert_eq!((memory.dialect(), memory.last()), (None, None));
        for dialect in DIALECTS {
            memory.works(dialect);
            assert_eq!(memory.dialect(), Some(dialect));
            memory.doubt(dialect);
            assert_eq!((memory.dialect(), memory.last()), (None, Some(dialect)));
        }
    }

    #[test]
    fn doubt_of_an_old_dialect_leaves_a_newer_one_alone() {
        let memory = EndpointMemory::default();
        memory.works(DIALECTS[3]);
        memory.doubt(DIALECTS[0]);
        assert_eq!(memory.dialect(), Some(DIALECTS[3]));
    }
}

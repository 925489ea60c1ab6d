//! Who has sent what, and what of it has arrived.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::stamp::Stamp;
use crate::failure::{Failure, Outcome};

/// Checks that the messages of each producer and partition arrive all and in order. Repetitions are counted and are no fault: every
/// side delivers at least once.
#[derive(Debug)]
pub struct Ledger {
    partitions: usize,
    /// By producer and partition: the number that comes next.
    next: Vec<AtomicU64>,
    repeated: AtomicU64,
    fault: Mutex<Option<String>>,
}

impl Ledger {
    #[must_use]
    pub fn new(producers: usize, partitions: usize) -> Self {
        let next = std::iter::repeat_with(AtomicU64::default).take(producers * partitions).collect();
        Self { partitions, next, repeated: AtomicU64::new(0), fault: Mutex::default() }
    }

    /// True: it is new and in its place. Messages of one partition must not be noted by two threads at once.
    pub fn note(&self, stamp: Stamp) -> bool {
        let producer = stamp.producer as usize;
        let partition = usize::from(stamp.partition);
        let place = (partition < self.partitions).then(|| self.next.get(producer * self.partitions + partition)).flatten();
        let Some(next) = place else {
            self.fault(format!("a message of producer {producer} for partition {partition}, which do not exist"));
            return false;
        };
        let expected = next.load(Ordering::Relaxed);
        if stamp.number < expected {
            self.repeated.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if stamp.number > expected {
            self.fault(format!(
                "producer {producer}, partition {partition}: message {} came where {expected} was due",
                stamp.number
            ));
        }
        next.store(stamp.number + 1, Ordering::Relaxed);
        true
    }

    /// Keeps the first thing that went wrong.
    pub fn fault(&self, what: String) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }

    /// How many messages came more than once.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Was everything in its place so far?
    pub fn check(&self) -> Outcome<()> {
        match self.fault.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(fault) => Err(Failure::Invalid(fault.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(partition: u16, number: u64) -> Stamp {
        Stamp { producer: 1, partition, number, sent_ns: 0 }
    }

    #[test]
    fn a_gap_is_a_fault_and_a_repetition_is_none() {
        let ledger = Ledger::new(2, 2);
        assert!(ledger.note(stamp(0, 0)));
        assert!(ledger.note(stamp(1, 0)));
        assert!(ledger.note(stamp(0, 1)));
        assert!(!ledger.note(stamp(0, 1)));
        assert_eq!(ledger.repeated(), 1);
        assert!(ledger.check().is_ok());
        assert!(ledger.note(stamp(1, 2)));
        assert!(ledger.check().unwrap_err().to_string().contains("message 2 came where 1 was due"));
    }

    #[test]
    fn a_stranger_is_a_fault() {
        let ledger = Ledger::new(2, 2);
        assert!(!ledger.note(stamp(2, 0)));
        assert!(ledger.check().is_err());
    }
}

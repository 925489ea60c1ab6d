//! What was acknowledged to putters: the left side of "A is contained in D".

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::message::{Id, Message};

/// Values by partition and id. Shared by threads that put.
#[derive(Debug, Default)]
pub struct Acknowledged {
    values: Mutex<BTreeMap<(i16, Id), Vec<u8>>>,
}

impl Acknowledged {
    /// Notes the answer of a put.
    ///
    /// # Panics
    /// If an id was acknowledged before, or there are more ids than values.
    #[track_caller]
    pub fn note(&self, partition: i16, ids: &[Id], values: &[Vec<u8>]) {
        assert_eq!(ids.len(), values.len(), "an id for each message");
        let mut known = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, value) in ids.iter().zip(values) {
            let before = known.insert((partition, *id), value.clone());
            assert!(before.is_none(), "partition {partition}: {id} was acknowledged twice");
        }
    }

    /// How many messages were acknowledged.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Checks that all are among `messages`, with the values that were put.
    ///
    /// # Panics
    /// If one is missing, or has another value.
    #[track_caller]
    pub fn check_all_in(&self, messages: &[Message], what: &str) {
        let there: BTreeMap<(i16, Id), &[u8]> = messages.iter().map(|m| ((m.partition, m.id), m.value.as_slice())).collect();
        let known = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing = Vec::new();
        for (place, value) in known.iter() {
            match there.get(place) {
                Some(found) => assert!(*found == value.as_slice(), "{what}: {place:?} has another value than was put"),
                None => missing.push(place),
            }
        }
        let first = missing.iter().take(5).collect::<Vec<_>>();
        assert!(missing.is_empty(), "{what}: {} of {} acknowledged messages are missing: {first:?}", missing.len(), known.len());
    }
}

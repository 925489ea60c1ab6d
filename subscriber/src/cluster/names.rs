//! Subscribers of one name in one session: nodes of a session do not tell which of them made them, so they take turns at the names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

type Key = (String, String);

/// Who is registered, by queue and subscriber. As many as there are subscribers that run.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeMap<Key, BTreeSet<u32>>>);

/// The number of a subscriber among those of its name; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    names: Arc<Names>,
    key: Key,
    number: u32,
}

impl Names {
    pub(super) fn take(this: &Arc<Self>, queue: &str, subscriber: &str) -> Turn {
        let key = (queue.to_owned(), subscriber.to_owned());
        let mut all = this.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.entry(key.clone()).or_default();
        let number = (0..).find(|n| !taken.contains(n)).unwrap_or(u32::MAX);
        taken.insert(number);
        Turn { names: Arc::clone(this), key, number }
    }
}

impl Turn {
    /// The first one may have the plain names.
    pub(crate) const fn is_first(&self) -> bool {
        self.number == 0
    }

    /// What stands behind the plain names where those are not ours.
    pub(crate) fn suffix(&self, session: i64) -> String {
        match self.number {
            0 => format!("-{session:x}"),
            number => format!("-{session:x}-{number}"),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.names.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = all.get_mut(&self.key) {
            taken.remove(&self.number);
            if taken.is_empty() {
                all.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_number_is_taken() {
        let names = Arc::new(Names::default());
        let (first, second) = (Names::take(&names, "q", "s"), Names::take(&names, "q", "s"));
        assert!(first.is_first() && !second.is_first());
        assert_eq!((first.suffix(0x1f), second.suffix(0x1f)), ("-1f".to_owned(), "-1f-1".to_owned()));
        assert!(Names::take(&names, "q", "other").is_first());
        drop(first);
        assert!(Names::take(&names, "q", "s").is_first());
        drop(second);
        assert!(names.0.lock().unwrap().is_empty());
    }
}

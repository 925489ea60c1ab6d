//! The paths that somebody watches, and how far each is with being read.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::root;
use crate::Observed;

/// With fewer watched paths nobody looks for those whose receivers are gone.
pub(super) const SWEEP_FROM: usize = 64;

/// The watched paths of one kind of snapshot.
#[derive(Debug)]
pub(super) struct Paths<T> {
    entries: HashMap<Arc<str>, Entry<T>>,
    /// With so many it is time to look for those that nobody watches any more.
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry<T> {
    sender: watch::Sender<Observed<T>>,
    progress: Progress,
    /// When it is read again though nothing is heard of it: random, so that not all are read at once.
    turn: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It was read, and the next change is an event.
    Idle,
    Marked,
    Reading,
    /// Something happened while it was being read.
    ReadingStale,
}

impl<T> Entry<T> {
    fn is_being_read(&self) -> bool {
        matches!(self.progress, Progress::Reading | Progress::ReadingStale)
    }
}

impl<T: PartialEq + Absent> Paths<T> {
    pub(super) fn new() -> Self {
        Self { entries: HashMap::new(), sweep_at: SWEEP_FROM }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A receiver, and the path if it has to be marked.
    pub(super) fn watch(&mut self, path: &str) -> (watch::Receiver<Observed<T>>, Option<Arc<str>>) {
        if let Some(entry) = self.entries.get(path) {
            let receiver = entry.sender.subscribe();
            // One that could not be read so far is tried again now.
            let unread = *receiver.borrow() == Observed::Pending;
            return (receiver, if unread { self.mark(path) } else { None });
        }
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| entry.sender.receiver_count() > 0 || entry.is_being_read());
            self.sweep_at = SWEEP_FROM.max(self.entries.len() * 2);
        }
        // A path that is not valid is never there, and never read.
        let valid = root::check(path).is_ok();
        let (first, progress) =
            if valid { (Observed::Pending, Progress::Marked) } else { (Observed::Seen(T::absent()), Progress::Idle) };
        let (sender, receiver) = watch::channel(first);
        let path: Arc<str> = path.into();
        self.entries.insert(Arc::clone(&path), Entry { sender, progress, turn: fastrand::u32(..) });
        (receiver, valid.then_some(path))
    }

    /// Marks what is watched; returns the path if it was not marked before.
    pub(super) fn mark(&mut self, path: &str) -> Option<Arc<str>> {
        let (path, entry) = self.entries.get_key_value(path)?;
        let path = Arc::clone(path);
        if entry.sender.receiver_count() == 0 && entry.progress == Progress::Idle {
            self.entries.remove(&path);
            return None;
        }
        let entry = self.entries.get_mut(&path)?;
        match entry.progress {
            Progress::Idle => {
                entry.progress = Progress::Marked;
                Some(path)
            }
            Progress::Reading => {
                entry.progress = Progress::ReadingStale;
                None
            }
            Progress::Marked | Progress::ReadingStale => None,
        }
    }

    pub(super) fn mark_all(&mut self, mut marked: impl FnMut(Arc<str>)) {
        self.entries.retain(|_, entry| entry.sender.receiver_count() > 0);
        for (path, entry) in self.entries.iter_mut().filter(|(path, _)| root::check(path).is_ok()) {
            entry.progress = Progress::Marked;
            marked(Arc::clone(path));
        }
    }

    pub(super) fn marked(&self, mut marked: impl FnMut(Arc<str>)) {
        let all = self.entries.iter().filter(|(_, entry)| entry.progress == Progress::Marked);
        all.for_each(|(path, _)| marked(Arc::clone(path)));
    }

    pub(super) fn due(&self, turn: u64, turns: u64, mut due: impl FnMut(Arc<str>)) {
        for (path, entry) in &self.entries {
            if entry.progress == Progress::Idle && u64::from(entry.turn) % turns.max(1) == turn && root::check(path).is_ok() {
                due(Arc::clone(path));
            }
        }
    }

    /// Whether it was missing when it was read last; `None` if there is nothing to read.
    pub(super) fn begin_read(&mut self, path: &str) -> Option<bool> {
        let entry = self.entries.get_mut(path).filter(|entry| entry.progress == Progress::Marked)?;
        if entry.sender.receiver_count() == 0 {
            self.entries.remove(path);
            return None;
        }
        entry.progress = Progress::Reading;
        Some(matches!(&*entry.sender.borrow(), Observed::Seen(seen) if *seen == T::absent()))
    }

    /// Publishes; whether it has to be read again.
    pub(super) fn end_read(&mut self, path: &str, found: Option<T>) -> bool {
        let Some(entry) = self.entries.get_mut(path) else { return false };
        if let Some(found) = found.map(Observed::Seen) {
            entry.sender.send_if_modified(|shown| {
                let differs = *shown != found;
                *shown = found;
                differs
            });
        }
        let stale = entry.progress == Progress::ReadingStale;
        entry.progress = if stale { Progress::Marked } else { Progress::Idle };
        stale
    }
}

/// What is shown of a node that is not there.
pub(super) trait Absent {
    fn absent() -> Self;
}

impl<T> Absent for Option<T> {
    fn absent() -> Self {
        None
    }
}

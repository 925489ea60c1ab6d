//! Who watches what. One session's watches; a path costs something only while somebody holds a receiver of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::watch;

use super::tree::Tree;
use crate::{Node, Observed};

/// With fewer watched paths nobody looks for those whose receivers are gone.
const SWEEP_FROM: usize = 64;

/// The watches of a session.
///
/// A watch is registered with a look at the tree under the lock here; the writer changes the tree first and publishes under the lock
/// then. So whoever registers either sees a change or is told of it.
#[derive(Debug)]
pub(super) struct Watches {
    registered: Mutex<Registered>,
}

#[derive(Debug)]
struct Registered {
    nodes: Paths<Option<Node>>,
    children: Paths<Option<Vec<String>>>,
    over: bool,
}

impl Watches {
    pub(super) fn new() -> Self {
        Self { registered: Mutex::new(Registered { nodes: Paths::new(), children: Paths::new(), over: false }) }
    }

    pub(super) fn watch_node(&self, path: &str, tree: &RwLock<Tree>) -> watch::Receiver<Observed<Option<Node>>> {
        let mut registered = self.lock();
        if registered.over { ended() } else { registered.nodes.watch(path, || read(tree).get(path)) }
    }

    pub(super) fn watch_children(&self, path: &str, tree: &RwLock<Tree>) -> watch::Receiver<Observed<Option<Vec<String>>>> {
        let mut registered = self.lock();
        if registered.over { ended() } else { registered.children.watch(path, || read(tree).children(path)) }
    }

    /// Shows the watchers what the tree has now at these paths.
    pub(super) fn publish<'a>(
        &self,
        nodes: impl Iterator<Item = &'a str>,
        parents: impl Iterator<Item = &'a str>,
        tree: &RwLock<Tree>,
    ) {
        let mut registered = self.lock();
        nodes.for_each(|path| registered.nodes.publish(path, || read(tree).get(path)));
        parents.for_each(|path| registered.children.publish(path, || read(tree).children(path)));
    }

    /// Ends all watches, and those to come at once.
    pub(super) fn end(&self) {
        *self.lock() = Registered { nodes: Paths::new(), children: Paths::new(), over: true };
    }

    /// Paths that cost something.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let registered = self.lock();
        registered.nodes.senders.len() + registered.children.senders.len()
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watched paths of one kind of snapshot.
#[derive(Debug)]
struct Paths<T> {
    senders: HashMap<Box<str>, watch::Sender<Observed<T>>>,
    /// With so many it is time to look for those that nobody watches any more.
    sweep_at: usize,
}

impl<T> Paths<T> {
    fn new() -> Self {
        Self { senders: HashMap::new(), sweep_at: SWEEP_FROM }
    }

    fn watch(&mut self, path: &str, snapshot: impl FnOnce() -> T) -> watch::Receiver<Observed<T>> {
        if let Some(sender) = self.senders.get(path).filter(|sender| sender.receiver_count() > 0) {
            return sender.subscribe();
        }
        if self.senders.len() >= self.sweep_at {
            self.senders.retain(|_, sender| sender.receiver_count() > 0);
            self.sweep_at = SWEEP_FROM.max(self.senders.len() * 2);
        }
        let (sender, receiver) = watch::channel(Observed::Seen(snapshot()));
        self.senders.insert(path.into(), sender);
        receiver
    }

    fn publish(&mut self, path: &str, snapshot: impl FnOnce() -> T) {
        if let Some(sender) = self.senders.get(path) {
            if sender.receiver_count() == 0 {
                self.senders.remove(path);
            } else {
                sender.send_replace(Observed::Seen(snapshot()));
            }
        }
    }
}

fn read(tree: &RwLock<Tree>) -> RwLockReadGuard<'_, Tree> {
    tree.read().unwrap_or_else(PoisonError::into_inner)
}

/// A watch that is over.
fn ended<T>() -> watch::Receiver<Observed<T>> {
    watch::channel(Observed::Pending).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_watches_costs_nothing_for_long() {
        let (watches, tree) = (Watches::new(), RwLock::new(Tree::default()));
        for n in 0..100_000 {
            drop(watches.watch_node(&format!("/n{n}"), &tree));
            drop(watches.watch_children(&format!("/n{n}"), &tree));
            assert!(watches.len() <= 2 * SWEEP_FROM);
        }
    }

    #[test]
    fn what_is_watched_stays() {
        let (watches, tree) = (Watches::new(), RwLock::new(Tree::default()));
        let mut held: Vec<_> = (0..1000).map(|n| watches.watch_node(&format!("/n{n}"), &tree)).collect();
        for n in 1000..10_000 {
            drop(watches.watch_node(&format!("/n{n}"), &tree));
        }
        assert!((1000..=2100).contains(&watches.len()), "{}", watches.len());
        let paths: Vec<_> = (0..10_000).map(|n| format!("/n{n}")).collect();
        watches.publish(paths.iter().map(String::as_str), std::iter::empty(), &tree);
        assert_eq!(watches.len(), 1000, "what changes and is not watched is forgotten");
        assert!(held.iter_mut().all(|receiver| receiver.has_changed().unwrap()));
        watches.end();
        assert!(held.iter().all(|receiver| receiver.has_changed().is_err()));
        assert!(watches.watch_node("/n", &tree).has_changed().is_err());
    }
}

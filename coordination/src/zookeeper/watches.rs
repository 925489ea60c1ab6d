//! Who watches what, and what has to be read again.
//!
//! Watching is level-triggered: an event of ZooKeeper only marks a path, a reader (`reader.rs`) takes marked paths, reads them
//! with the watch set anew, and publishes what it found. A path is marked once however many events there are, so nothing here can
//! grow beyond what is watched. With a new session everything is marked. A watched path has no task and no timer of its own.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::watched_paths::{Paths, SWEEP_FROM};
use crate::{Node, Observed};

pub(super) type Children = Option<Vec<String>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Node,
    Children,
}

/// What ZooKeeper says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Created,
    Deleted,
    DataChanged,
    ChildrenChanged,
}

/// A path to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) kind: Kind,
    pub(super) path: Arc<str>,
    /// The node was not there when it was read last.
    pub(super) was_missing: bool,
}

/// What a reader found; `None`: it could not read, and nobody is told.
#[derive(Debug)]
pub(super) enum Found {
    Node(Option<Node>),
    Children(Children),
    Nothing,
}

#[derive(Debug)]
pub(super) struct Watches {
    registered: Mutex<Registered>,
    /// Something is marked, or the session that was read in is over.
    marked: Notify,
}

#[derive(Debug)]
struct Registered {
    nodes: Paths<Option<Node>>,
    children: Paths<Children>,
    marked: VecDeque<(Kind, Arc<str>)>,
    /// Counts sessions: what an earlier one still brings is ignored.
    epoch: u64,
    over: bool,
}

impl Watches {
    pub(super) fn new() -> Self {
        let registered =
            Registered { nodes: Paths::new(), children: Paths::new(), marked: VecDeque::new(), epoch: 0, over: false };
        Self { registered: Mutex::new(registered), marked: Notify::new() }
    }

    pub(super) fn watch_node(&self, path: &str) -> watch::Receiver<Observed<Option<Node>>> {
        let mut registered = self.lock();
        if registered.over {
            return watch::channel(Observed::Pending).1;
        }
        let (receiver, new) = registered.nodes.watch(path);
        self.mark_new(registered, Kind::Node, new);
        receiver
    }

    pub(super) fn watch_children(&self, path: &str) -> watch::Receiver<Observed<Children>> {
        let mut registered = self.lock();
        if registered.over {
            return watch::channel(Observed::Pending).1;
        }
        let (receiver, new) = registered.children.watch(path);
        self.mark_new(registered, Kind::Children, new);
        receiver
    }

    fn mark_new(&self, mut registered: MutexGuard<'_, Registered>, kind: Kind, new: Option<Arc<str>>) {
        if let Some(path) = new {
            registered.marked.push_back((kind, path));
            registered.forget_swept();
            drop(registered);
            self.marked.notify_waiters();
        }
    }

    /// A new session begins, with no watches in it: everything is to be read. Returns its number.
    pub(super) fn begin(&self) -> u64 {
        let mut registered = self.lock();
        registered.epoch += 1;
        let mut marked = std::mem::take(&mut registered.marked);
        marked.clear();
        registered.nodes.mark_all(|path| marked.push_back((Kind::Node, path)));
        registered.children.mark_all(|path| marked.push_back((Kind::Children, path)));
        registered.marked = marked;
        let epoch = registered.epoch;
        drop(registered);
        self.marked.notify_waiters();
        epoch
    }

    /// The session is over: what it still brings is ignored, and nothing is read until the next one begins.
    pub(super) fn suspend(&self) {
        self.lock().epoch += 1;
        self.marked.notify_waiters();
    }

    /// An event in session `epoch`.
    pub(super) fn event(&self, epoch: u64, event: Event, path: &str) {
        let mut registered = self.lock();
        if registered.epoch != epoch {
            return;
        }
        // A list of children that waits for its node does so with the same watch as a node.
        if event != Event::ChildrenChanged {
            registered.mark(Kind::Node, path);
        }
        if event != Event::DataChanged {
            registered.mark(Kind::Children, path);
        }
        drop(registered);
        self.marked.notify_waiters();
    }

    /// Marks those whose turn it is, of `turns`: each path has one turn in a round.
    pub(super) fn mark_turn(&self, turn: u64, turns: u64) {
        let mut registered = self.lock();
        let mut due = Vec::new();
        registered.nodes.due(turn, turns, |path| due.push((Kind::Node, path)));
        registered.children.due(turn, turns, |path| due.push((Kind::Children, path)));
        for (kind, path) in due {
            registered.mark(kind, &path);
        }
        drop(registered);
        self.marked.notify_waiters();
    }

    /// The next path to read in session `epoch`; `None` when that is over.
    pub(super) async fn next(&self, epoch: u64) -> Option<Job> {
        loop {
            let mut marked = pin!(self.marked.notified());
            marked.as_mut().enable();
            if let Some(job) = self.take(epoch)? {
                return Some(job);
            }
            marked.await;
        }
    }

    fn take(&self, epoch: u64) -> Option<Option<Job>> {
        let mut registered = self.lock();
        if registered.epoch != epoch || registered.over {
            return None;
        }
        while let Some((kind, path)) = registered.marked.pop_front() {
            let reads = match kind {
                Kind::Node => registered.nodes.begin_read(&path),
                Kind::Children => registered.children.begin_read(&path),
            };
            if let Some(was_missing) = reads {
                return Some(Some(Job { kind, path, was_missing }));
            }
        }
        Some(None)
    }

    /// A job was done in session `epoch`.
    pub(super) fn done(&self, epoch: u64, job: &Job, found: Found) {
        let mut registered = self.lock();
        if registered.epoch != epoch {
            return;
        }
        let again = match (job.kind, found) {
            (Kind::Node, Found::Node(node)) => registered.nodes.end_read(&job.path, Some(node)),
            (Kind::Node, _) => registered.nodes.end_read(&job.path, None),
            (Kind::Children, Found::Children(names)) => registered.children.end_read(&job.path, Some(names)),
            (Kind::Children, _) => registered.children.end_read(&job.path, None),
        };
        if again {
            registered.marked.push_back((job.kind, Arc::clone(&job.path)));
            drop(registered);
            self.marked.notify_waiters();
        }
    }

    /// Ends all watches, and those to come at once.
    pub(super) fn end(&self) {
        let mut registered = self.lock();
        registered.over = true;
        (registered.nodes, registered.children) = (Paths::new(), Paths::new());
        registered.marked.clear();
        drop(registered);
        self.marked.notify_waiters();
    }

    /// Paths that cost something.
    #[cfg(test)]
    fn len(&self) -> usize {
        let registered = self.lock();
        registered.nodes.len() + registered.children.len()
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered {
    /// Without a session nobody takes what is marked, and what is watched no more is still among it.
    fn forget_swept(&mut self) {
        if self.marked.len() > SWEEP_FROM + 2 * (self.nodes.len() + self.children.len()) {
            self.marked.clear();
            self.nodes.marked(|path| self.marked.push_back((Kind::Node, path)));
            self.children.marked(|path| self.marked.push_back((Kind::Children, path)));
        }
    }

    fn mark(&mut self, kind: Kind, path: &str) {
        let marked = match kind {
            Kind::Node => self.nodes.mark(path),
            Kind::Children => self.children.mark(path),
        };
        self.marked.extend(marked.map(|path| (kind, path)));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn node(payload: &[u8]) -> Option<Node> {
        Some(Node { payload: payload.to_vec(), version: 0, owner_session: None })
    }

    /// The next job, if there is one now.
    fn next(watches: &Watches, epoch: u64) -> Option<Job> {
        watches.next(epoch).now_or_never().flatten()
    }

    #[test]
    fn a_path_is_read_once_however_many_events_there_are() {
        let watches = Watches::new();
        let (receiver, epoch) = (watches.watch_node("/n"), watches.begin());
        let job = next(&watches, epoch).unwrap();
        assert_eq!((job.kind, &*job.path), (Kind::Node, "/n"));
        (0..5).for_each(|_| watches.event(epoch, Event::DataChanged, "/n"));
        assert_eq!(next(&watches, epoch), None, "one read of a path at a time");
        watches.done(epoch, &job, Found::Node(node(b"a")));
        assert_eq!(*receiver.borrow(), Observed::Seen(node(b"a")));
        let job = next(&watches, epoch).expect("what happened during the read is read again");
        watches.done(epoch, &job, Found::Node(node(b"b")));
        assert_eq!(*receiver.borrow(), Observed::Seen(node(b"b")));
        assert_eq!(next(&watches, epoch), None);
    }

    #[test]
    fn an_earlier_session_changes_nothing() {
        let watches = Watches::new();
        let (receiver, first) = (watches.watch_node("/n"), watches.begin());
        let job = next(&watches, first).unwrap();
        let second = watches.begin();
        watches.done(first, &job, Found::Node(node(b"old")));
        watches.event(first, Event::DataChanged, "/n");
        assert_eq!(watches.next(first).now_or_never(), Some(None), "the reader of the first is told to end");
        assert_eq!(*receiver.borrow(), Observed::Pending);
        let job = next(&watches, second).unwrap();
        watches.done(second, &job, Found::Node(node(b"new")));
        assert_eq!(*receiver.borrow(), Observed::Seen(node(b"new")));
        assert_eq!(next(&watches, second), None);
    }

    #[test]
    fn a_new_node_concerns_those_who_wait_for_its_children() {
        let watches = Watches::new();
        let (receiver, epoch) = (watches.watch_children("/n"), watches.begin());
        let job = next(&watches, epoch).unwrap();
        watches.done(epoch, &job, Found::Children(None));
        watches.event(epoch, Event::DataChanged, "/n");
        assert_eq!(next(&watches, epoch), None);
        watches.event(epoch, Event::Created, "/n");
        let job = next(&watches, epoch).unwrap();
        assert!(job.was_missing);
        watches.done(epoch, &job, Found::Children(Some(vec![])));
        assert_eq!(*receiver.borrow(), Observed::Seen(Some(vec![])));
    }

    #[test]
    fn a_read_that_failed_tells_nobody_and_has_its_turn_again() {
        let watches = Watches::new();
        let (mut receiver, epoch) = (watches.watch_node("/n"), watches.begin());
        let job = next(&watches, epoch).unwrap();
        watches.done(epoch, &job, Found::Node(node(b"a")));
        receiver.mark_unchanged();
        for found in [Found::Nothing, Found::Node(node(b"a"))] {
            (0..4).for_each(|turn| watches.mark_turn(turn, 4));
            let job = next(&watches, epoch).expect("each path has its turn");
            watches.done(epoch, &job, found);
            assert!(!receiver.has_changed().unwrap(), "what is read again unchanged wakes nobody");
        }
    }

    #[test]
    fn what_nobody_watches_costs_nothing_for_long() {
        let watches = Watches::new();
        let epoch = watches.begin();
        for n in 0..10_000 {
            drop(watches.watch_node(&format!("/n{n}")));
            drop(watches.watch_children(&format!("/n{n}")));
            while next(&watches, epoch).is_some() {}
            assert!(watches.len() <= 2 * SWEEP_FROM);
        }
        let held = watches.watch_node("/held");
        let job = next(&watches, epoch).unwrap();
        watches.done(epoch, &job, Found::Node(None));
        drop(held);
        let before = watches.len();
        watches.event(epoch, Event::Created, "/held");
        assert_eq!(watches.len(), before - 1, "an event for nobody ends the watch");
        assert_eq!(next(&watches, epoch), None);
    }

    #[test]
    fn paths_come_and_go_without_a_session_at_no_cost() {
        let watches = Watches::new();
        for n in 0..10_000 {
            drop(watches.watch_node(&format!("/n{n}")));
            assert!(watches.len() <= 2 * SWEEP_FROM, "{}", watches.len());
            assert!(watches.lock().marked.len() <= 8 * SWEEP_FROM);
        }
        let held = watches.watch_node("/held");
        let epoch = watches.begin();
        assert_eq!(next(&watches, epoch).map(|job| job.path), Some("/held".into()), "the others are gone");
        assert_eq!(next(&watches, epoch), None);
        drop(held);
    }

    #[test]
    fn an_end_ends_all() {
        let watches = Watches::new();
        let (node, bad, epoch) = (watches.watch_node("/n"), watches.watch_node("n"), watches.begin());
        assert_eq!(*bad.borrow(), Observed::Seen(None));
        assert_eq!(next(&watches, epoch).map(|job| job.path), Some("/n".into()), "a bad path is not read");
        watches.end();
        assert!(node.has_changed().is_err() && bad.has_changed().is_err());
        assert!(watches.watch_children("/n").has_changed().is_err());
        assert_eq!(watches.next(epoch).now_or_never(), Some(None));
    }
}

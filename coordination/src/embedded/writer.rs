//! The one thread that changes the tree.
//!
//! It takes all the writes that wait, decides them in order, keeps them with one append to the journal, makes them visible, and
//! answers. What comes meanwhile waits for the next round: many concurrent writes cost one sync.

use std::collections::HashSet;
use std::sync::Arc;

use hqueue_storage::journal::{Journal, JournalError, RecordBatch};

use super::change::Change;
use super::queue::{Call, Item};
use super::stage::{Stage, Written};
use super::{Inner, Session};
use crate::{CoordinationError, parent_of};

/// What the writer answers its calls, in their order.
type Outcomes = Vec<Result<Written, CoordinationError>>;

#[derive(Debug)]
pub(super) struct Writer {
    inner: Arc<Inner>,
    journal: Journal,
    batch: RecordBatch,
    /// The last append failed.
    failing: bool,
}

impl Writer {
    pub(super) fn new(inner: Arc<Inner>, journal: Journal) -> Self {
        Self { inner, journal, batch: RecordBatch::default(), failing: false }
    }

    /// Serves until the last session has ended.
    pub(super) fn run(mut self) {
        // However this thread ends, nobody waits for it in vain.
        let _end = EndQueue(Arc::clone(&self.inner));
        let unanswered = self.serve();
        if let Err(error) = self.journal.close() {
            tracing::warn!(%error, "the end of the coordination journal could not be noted: all that was acknowledged is there");
        }
        self.inner.queue.end();
        drop(unanswered);
    }

    /// Returns what is left when the last session has ended: calls of sessions that are over, and those who wait for the end.
    fn serve(&mut self) -> Vec<Item> {
        loop {
            let mut calls = Vec::new();
            let mut items = self.inner.queue.take().into_iter();
            while let Some(item) = items.next() {
                match item {
                    Item::Call(call) => calls.push(call),
                    Item::End { session, .. } => {
                        self.commit(std::mem::take(&mut calls));
                        if self.end_session(session) {
                            return [item].into_iter().chain(items).collect();
                        }
                    }
                }
            }
            self.commit(calls);
        }
    }

    fn commit(&mut self, calls: Vec<Call>) {
        let (mut outcomes, mut changes) = self.decide(&calls, None);
        if let Err(error) = self.keep(&changes) {
            (outcomes, changes) = self.decide(&calls, Some(&error));
        }
        self.show(changes);
        for (call, outcome) in calls.into_iter().zip(outcomes) {
            // Who dropped the call does not want to know.
            let _ = call.answer.send(outcome);
        }
        if self.journal.wants_rewrite() {
            self.rewrite();
        }
    }

    fn decide(&self, calls: &[Call], unkept: Option<&CoordinationError>) -> (Outcomes, Vec<Change>) {
        let tree = self.inner.tree();
        let sessions = self.inner.sessions();
        let mut stage = Stage::new(&tree, unkept);
        let mut decide = |call: &Call| match sessions.live.contains_key(&call.session) {
            true => stage.write(call.session, &call.write),
            false => Err(CoordinationError::Closed),
        };
        let outcomes = calls.iter().map(&mut decide).collect();
        (outcomes, stage.into_changes())
    }

    fn keep(&mut self, changes: &[Change]) -> Result<(), CoordinationError> {
        self.batch.clear();
        changes.iter().for_each(|change| change.keep(&mut |parts| self.batch.push(parts)));
        if self.batch.is_empty() {
            return Ok(());
        }
        let kept = self.journal.append(&self.batch);
        match &kept {
            Ok(()) if self.failing => tracing::info!("coordination keeps nodes again"),
            Err(error) if !self.failing => tracing::error!(%error, "coordination cannot keep nodes"),
            _ => {}
        }
        self.failing = kept.is_err();
        kept.map_err(error_of)
    }

    /// Makes changes visible, to readers first and then to watchers.
    fn show(&self, changes: Vec<Change>) {
        let moves = |change: &Change| matches!(change, Change::Create { .. } | Change::Delete { .. });
        let touched: Vec<(Arc<str>, bool)> = changes.iter().map(|change| (Arc::clone(change.path()), moves(change))).collect();
        let mut tree = self.inner.tree_mut();
        for change in changes {
            if let Err(why) = tree.apply(change) {
                tracing::error!(why, "a change that was accepted does not fit the tree: this is a fault in the program");
            }
        }
        drop(tree);
        let nodes: HashSet<&str> = touched.iter().map(|(path, _)| &**path).collect();
        let moved = touched.iter().filter(|(_, moves)| *moves).map(|(path, _)| &**path);
        // A node that comes or goes changes the list of its parent, and there is a list of its own or none.
        let parents: HashSet<&str> = moved.flat_map(|path| [Some(path), parent_of(path)]).flatten().collect();
        let sessions: Vec<Arc<Session>> = self.inner.sessions().live.values().cloned().collect();
        for session in sessions {
            session.watches.publish(nodes.iter().copied(), parents.iter().copied(), &self.inner.tree);
        }
    }

    /// Removes what a session holds. True if it was the last one.
    fn end_session(&self, id: i64) -> bool {
        let mut sessions = self.inner.sessions();
        if let Some(session) = sessions.live.remove(&id) {
            session.watches.end();
        }
        sessions.over = sessions.live.is_empty();
        let over = sessions.over;
        drop(sessions);
        let held = self.inner.tree().held_by(id);
        self.show(held.into_iter().map(|path| Change::Delete { path, kept: false }).collect());
        over
    }

    fn rewrite(&mut self) {
        let before = self.journal.byte_len();
        let tree = self.inner.tree();
        let nodes = tree.len();
        match self.journal.rewrite(&mut |snapshot| tree.snapshot(&mut |parts| snapshot.push(parts))) {
            Ok(()) => tracing::info!(before, after = self.journal.byte_len(), nodes, "wrote the coordination journal anew"),
            Err(error) => tracing::warn!(%error, "the coordination journal could not be written anew, it goes on growing"),
        }
    }
}

/// Ends the queue when it is dropped.
#[derive(Debug)]
struct EndQueue(Arc<Inner>);

impl Drop for EndQueue {
    fn drop(&mut self) {
        self.0.queue.end();
    }
}

fn error_of(error: JournalError) -> CoordinationError {
    match error {
        JournalError::NoSpace { .. } => CoordinationError::NoSpace(error.to_string()),
        _ => CoordinationError::Failed(error.to_string()),
    }
}

//! What a consumer that pulls says of a partition: how far it came, and that this is to be kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hqueue_protocol::id::MessageId;

use super::SubscriptionWorker;
use crate::partition::MissingCounts;
use crate::subscription::Checkpoint;
use crate::subscription::call_log::Mover;

/// A commit that was taken: what has to be stored before it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// Everything wanted at or below it is done.
    pub id: MessageId,
    /// The version of the checkpoint's node, as far as it was known then.
    version: i32,
}

impl SubscriptionWorker {
    /// Everything wanted at or below `id` is done. Moves the checkpoint forward, never back; it is stored within a second, or at the next
    /// flush of the updater.
    pub fn commit(self: &Arc<Self>, id: MessageId) -> Commit {
        let mut progress = self.lock();
        let version = progress.checkpoint.version;
        if id > progress.checkpoint.id {
            self.note_moved(Mover::Commit, progress.checkpoint.id, id);
            progress.checkpoint = progress.checkpoint.moved_to(Checkpoint { version, ..Checkpoint::at(id) });
            // Of a call under way nothing counts any more: it was for what is done now.
            progress.generation += 1;
            // Nor does what was in the way.
            progress.letter = None;
            progress.blocked = false;
            progress.hunt = None;
            self.restart_in(&mut progress);
            self.shared.checkpoints.mark(self);
            drop(progress);
            Self::hurry(self);
        }
        Commit { id, version }
    }

    /// The running number of the message behind a commit has been found.
    pub fn note_number(self: &Arc<Self>, commit: Commit, number: Option<u64>) {
        let mut progress = self.lock();
        if progress.checkpoint.id == commit.id && progress.checkpoint.number.is_none() && number.is_some() {
            progress.checkpoint.number = number;
            self.shared.checkpoints.mark(self);
        }
    }

    /// The checkpoint's node says at least what was committed, or somebody has moved it since.
    #[must_use]
    pub fn is_stored(&self, commit: Commit) -> bool {
        if self.is_forgotten() {
            return false;
        }
        let progress = self.lock();
        let now = progress.checkpoint;
        let is_whole =
            !self.dirty.load(Ordering::Acquire) && progress.written.is_none_or(|written| now.version > written.version);
        let is_in_it =
            |written: Checkpoint| written.id >= commit.id && written.version >= commit.version && now.version > written.version;
        now.id < commit.id || is_whole || progress.written.is_some_and(is_in_it)
    }

    /// A fetch from this checkpoint on has found messages missing: counts them once, however often the fetch is repeated.
    pub fn count_unread(self: &Arc<Self>, from: Checkpoint, missing: MissingCounts) {
        let Some(number) = missing.expired_to else { return };
        let mut progress = self.lock();
        if progress.checkpoint.id != from.id || progress.checkpoint.number != from.number {
            return;
        }
        progress.checkpoint.number = Some(number);
        self.shared.checkpoints.mark(self);
        drop(progress);
        self.shared.counters.expired.fetch_add(missing.expired, Ordering::Relaxed);
        tracing::warn!(
            queue = self.shared.queue,
            subscriber = self.shared.name,
            partition = self.partition,
            "{} messages expired unread, the first ones behind {}",
            missing.expired,
            from.id
        );
    }
}

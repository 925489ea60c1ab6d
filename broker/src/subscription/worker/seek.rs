//! Moving the checkpoint by command.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;

use super::SubscriptionWorker;
use crate::subscription::Checkpoint;
use crate::subscription::call_log::Mover;

impl SubscriptionWorker {
    /// Goes on behind this checkpoint, forward or back, with a clean slate. A call under way does not move it any more.
    pub fn seek(self: &Arc<Self>, to: Checkpoint) {
        let mut progress = self.lock();
        self.shared.lowers(self.partition, to.id);
        self.note_moved(Mover::Seek, progress.checkpoint.id, to.id);
        progress.checkpoint = progress.checkpoint.moved_to(Checkpoint { version: progress.checkpoint.version, ..to });
        progress.generation += 1;
        progress.busy = 0;
        progress.missed_to = MessageId::MIN;
        progress.hunt = None;
        progress.letter = None;
        progress.blocked = false;
        self.restart_in(&mut progress);
        drop(progress);
        self.shared.checkpoints.mark(self);
        Self::hurry(self);
    }
}

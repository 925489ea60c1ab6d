//! Syncing what was written: with its group, or behind it, by a thread of its own for which no group waits.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Instant;

use super::commit::Failure;
use super::intake::Status;
use super::queue::QueueLog;
use super::segment::Segment;
use super::writer::{Active, Unsynced, Writer};
use crate::disk::DiskFile;

/// What was written is let go of in pieces of so many bytes.
const LET_GO: u64 = 8 << 20;

/// What is only written is synced before its time when it is so many bytes, so that whoever must wait for a sync, such as a new segment,
/// waits for little.
const HURRY: u64 = 16 << 20;

/// What is about to be synced.
struct Taken {
    file: Arc<dyn DiskFile>,
    segment: Arc<Segment>,
    end: u64,
}

impl QueueLog {
    pub(super) fn sync(&self, file: &dyn DiskFile, path: &Path) -> Result<(), Failure> {
        let began = Instant::now();
        file.sync_data().map_err(|error| Failure::Uncertain(format!("sync of {}: {error}", path.display())))?;
        self.shared.counters.synced(began.elapsed());
        Ok(())
    }

    /// Has what was written just now synced within `async_sync`.
    pub(super) fn note_unsynced(self: &Arc<Self>, active: &mut Active, file: Arc<dyn DiskFile>, written: Range<u64>) {
        match &mut active.unsynced {
            None => {
                active.unsynced = Some(Unsynced { file, from: written.start, is_hurried: false });
                self.sync_at(Instant::now() + self.shared.options.async_sync);
            }
            Some(unsynced) if !unsynced.is_hurried && written.end - unsynced.from >= HURRY => {
                unsynced.is_hurried = true;
                self.sync_at(Instant::now());
            }
            Some(_) => {}
        }
    }

    fn sync_at(self: &Arc<Self>, at: Instant) {
        let log = Arc::downgrade(self);
        let sync = move || {
            if let Some(log) = log.upgrade() {
                log.sync_behind();
            }
        };
        self.shared.syncs.submit_at(at, sync);
    }

    /// Syncs what is written while groups go on being written, until what they have written need not be hurried. A failure poisons the
    /// log.
    fn sync_behind(self: &Arc<Self>) {
        loop {
            let mut writer = self.writer();
            let turn = match self.syncing.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(error)) => error.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    // The one before takes longer than the time between two.
                    self.sync_at(Instant::now() + self.shared.options.async_sync);
                    return;
                }
            };
            let Some(Taken { file, segment, end }) = writer.active.as_mut().and_then(take_unsynced) else { return };
            drop(writer);
            let synced = self.settle(self.sync(&*file, &segment.path));
            drop(turn);
            let mut writer = self.writer();
            let Some(active) = writer.active.as_mut().filter(|active| active.segment.epoch == segment.epoch) else { return };
            if synced.is_err() {
                return;
            }
            self.let_go(active, end / LET_GO * LET_GO);
            if !active.unsynced.as_ref().is_some_and(|unsynced| unsynced.is_hurried) {
                return;
            }
        }
    }

    /// Syncs all that is written. Behind it nothing is under way, and what was has not failed.
    pub(super) fn sync_now(&self, writer: &mut Writer) -> Result<(), Failure> {
        let _turn = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Status::Poisoned(reason) = &self.intake().status {
            return Err(Failure::Uncertain(reason.clone()));
        }
        let Some(active) = &mut writer.active else { return Ok(()) };
        if let Some(Taken { file, segment, .. }) = take_unsynced(active) {
            self.sync(&*file, &segment.path)?;
            self.let_go_synced(active);
        }
        Ok(())
    }

    /// Lets go of what is written, now that all of it is synced.
    pub(super) fn let_go_synced(&self, active: &mut Active) {
        self.let_go(active, active.end / LET_GO * LET_GO);
    }

    /// Lets the system use the memory of what has been written below `until`, and synced. Recent messages are in this process's memory,
    /// and a second copy of them would only take the place of other things; fresh memory for it costs more than the write itself on
    /// machines whose memory is handed out when it is touched. Where somebody reads what has left our memory, the copy is kept.
    pub(super) fn let_go(&self, active: &mut Active, until: u64) {
        if until <= active.let_go {
            return;
        }
        let from = std::mem::replace(&mut active.let_go, until);
        if !self.is_read_cold.swap(false, Relaxed)
            && let Ok(file) = self.open_segment(&active.segment)
        {
            file.let_go(from..until);
        }
    }
}

fn take_unsynced(active: &mut Active) -> Option<Taken> {
    let file = active.unsynced.take()?.file;
    Some(Taken { file, segment: Arc::clone(&active.segment), end: active.end })
}

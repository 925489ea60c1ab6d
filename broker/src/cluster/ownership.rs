//! Which partitions of a queue are ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};

use tokio::sync::Notify;

use super::lease::Lease;

/// No session.
const NONE: i64 = 0;

/// Partitions of one queue that we own, each by the session that made its owner node. A session that is over, or might be, owns
/// nothing, whatever stands here.
#[derive(Debug)]
pub struct Ownership {
    lease: Lease,
    slots: Vec<Slot>,
    /// Told when the last one leaves a partition that is being given up.
    left: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    claimed: AtomicI64,
    /// The session in which an owner node of ours may stand.
    node: AtomicI64,
    /// Of our last claim.
    epoch: AtomicI32,
    /// Nothing new begins in it.
    leaving: AtomicBool,
    /// Puts and pushes under way.
    inside: AtomicU32,
}

/// Proof that a partition was ours. What takes time checks it again before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(i64);

/// Something is under way in a partition that is ours. It is not handed over before this is dropped, unless that takes too long.
#[derive(Debug)]
pub struct Stay {
    ownership: Arc<Ownership>,
    partition: i16,
    held: Held,
}

impl Stay {
    /// Has the partition been ours all the time?
    #[must_use]
    pub fn still(&self) -> bool {
        self.ownership.still(self.partition, self.held)
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(slot) = self.ownership.of(self.partition)
            && slot.inside.fetch_sub(1, Ordering::SeqCst) == 1
            && slot.leaving.load(Ordering::SeqCst)
        {
            self.ownership.left.notify_waiters();
        }
    }
}

impl Ownership {
    #[must_use]
    pub fn new(lease: Lease, partitions: i16) -> Self {
        Self { lease, slots: (0..partitions).map(|_| Slot::default()).collect(), left: Notify::new() }
    }

    fn of(&self, partition: i16) -> Option<&Slot> {
        usize::try_from(partition).ok().and_then(|p| self.slots.get(p))
    }

    /// The partition was claimed by this session.
    pub fn claimed(&self, partition: i16, session: i64) {
        if let Some(slot) = self.of(partition) {
            slot.leaving.store(false, Ordering::SeqCst);
            slot.claimed.store(session, Ordering::Release);
        }
    }

    /// The partition is ours no more.
    pub fn gave_up(&self, partition: i16) {
        if let Some(slot) = self.of(partition) {
            slot.claimed.store(NONE, Ordering::Release);
        }
    }

    /// The session by which it was claimed, be it over or not.
    #[must_use]
    pub fn claim_of(&self, partition: i16) -> Option<i64> {
        self.of(partition).map(|slot| slot.claimed.load(Ordering::Acquire)).filter(|session| *session != NONE)
    }

    /// An owner node of this session is about to be made.
    pub fn claiming(&self, partition: i16, session: i64) {
        if let Some(slot) = self.of(partition) {
            slot.node.store(session, Ordering::Release);
        }
    }

    /// The session in which an owner node of ours may stand.
    #[must_use]
    pub fn node_of(&self, partition: i16) -> Option<i64> {
        self.of(partition).map(|slot| slot.node.load(Ordering::Acquire)).filter(|session| *session != NONE)
    }

    /// No owner node of ours stands any more.
    pub fn node_removed(&self, partition: i16) {
        self.claiming(partition, NONE);
    }

    /// Notes the epoch of a claim. True: nobody else has owned the partition since our last one.
    pub fn note_epoch(&self, partition: i16, epoch: i32) -> bool {
        self.of(partition).is_some_and(|slot| slot.epoch.swap(epoch, Ordering::AcqRel).checked_add(1) == Some(epoch))
    }

    /// Is the partition ours now, for something new?
    #[must_use]
    pub fn held(&self, partition: i16) -> Option<Held> {
        let slot = self.of(partition)?;
        if slot.leaving.load(Ordering::SeqCst) {
            return None;
        }
        self.owned(partition)
    }

    /// Is it ours now, for what was begun before it is given up?
    #[must_use]
    pub fn owned(&self, partition: i16) -> Option<Held> {
        let session = self.claim_of(partition)?;
        (self.lease.session() == Some(session)).then_some(Held(session))
    }

    /// Has it been ours all the time since?
    #[must_use]
    pub fn still(&self, partition: i16, held: Held) -> bool {
        self.owned(partition) == Some(held)
    }

    /// Begins something in a partition that is ours now.
    #[must_use]
    pub fn enter(self: &Arc<Self>, partition: i16) -> Option<Stay> {
        let slot = self.of(partition)?;
        // Counted first: whoever gives the partition up sees us, or we see that.
        slot.inside.fetch_add(1, Ordering::SeqCst);
        let mut stay = Stay { ownership: Arc::clone(self), partition, held: Held(NONE) };
        stay.held = self.held(partition)?;
        Some(stay)
    }

    /// Nothing new begins in the partition any more.
    pub fn leave(&self, partition: i16) {
        if let Some(slot) = self.of(partition) {
            slot.leaving.store(true, Ordering::SeqCst);
        }
    }

    /// Waits until nothing is under way in a partition that is being given up.
    pub async fn left(&self, partition: i16) {
        loop {
            let told = self.left.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.of(partition).is_none_or(|slot| slot.inside.load(Ordering::SeqCst) == 0) {
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hqueue_coordination::embedded::EmbeddedCoordinator;
    use hqueue_storage::disk::RealDisk;

    use super::*;

    #[tokio::test]
    async fn a_partition_is_left_when_nothing_is_under_way_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap();
        let lease = Lease::new(&coordinator);
        let session = lease.session().unwrap();
        let ownership = Arc::new(Ownership::new(lease, 2));
        assert!(ownership.enter(0).is_none(), "not claimed");
        ownership.claimed(0, session);
        let (first, second) = (ownership.enter(0).unwrap(), ownership.enter(0).unwrap());
        ownership.leave(0);
        assert!(ownership.enter(0).is_none() && ownership.held(0).is_none(), "nothing new begins");
        assert!(first.still() && ownership.owned(0).is_some(), "what was begun goes on");
        drop(first);
        assert!(tokio::time::timeout(Duration::from_millis(20), ownership.left(0)).await.is_err());
        let leaving = Arc::clone(&ownership);
        let left = tokio::spawn(async move { leaving.left(0).await });
        drop(second);
        left.await.unwrap();
        ownership.gave_up(0);
        ownership.claimed(0, session);
        assert!(ownership.enter(0).is_some(), "claimed anew");
    }

    #[tokio::test]
    async fn an_epoch_that_was_skipped_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = EmbeddedCoordinator::open(Arc::new(RealDisk), folder.path()).unwrap();
        let ownership = Ownership::new(Lease::new(&coordinator), 1);
        assert!(!ownership.note_epoch(0, 7) && ownership.note_epoch(0, 8) && !ownership.note_epoch(0, 10));
    }
}

//! What the owner of a partition knows of it. Everything here happens under its lock and waits for nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredSlice};
use hqueue_protocol::wire::WireError;
use hqueue_storage::store::{Append, Block, Committed, IdRun, IdRuns, StoreError, TailRead};

use super::gone::Gone;
use super::known::Known;
use super::pending::{Chunk, Pending};
use super::record::Record;
use crate::schema::Anchor;

/// An append of a message that many or more after the last anchor carries one.
const ANCHOR_EVERY: u32 = 256;

/// A clock that steps back by no more is waited for: what arrives meanwhile counts as arriving when it stepped. Milliseconds.
const SMALL_STEP_MS: i64 = 60_000;

/// So much higher is the version of an owner's first record before his rows than what he found: higher than all that the owner before him may
/// still have on its way, who has that one and a few more behind it.
const FIRST_STEP: i64 = 1000;

/// How much of an append goes in one call, and how long all of it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSize {
    pub(super) rows: u32,
    pub(super) bytes: usize,
    pub(super) patience: Duration,
}

/// A partition that is held.
#[derive(Debug)]
pub(super) struct Partition {
    number: i16,
    /// The session in which it was acquired.
    pub(super) session: u64,
    /// New ids are above it.
    floor: Option<MessageId>,
    /// Of the next append: what waits is counted.
    next_number: u64,
    next_bytes: u64,
    committed: Committed,
    committed_bytes: u64,
    largest: u32,
    since_anchor: u32,
    latest_arrival_ms: i64,
    disordered_to: Option<MessageId>,
    pub(super) gone: Gone,
    pending: VecDeque<Arc<Pending>>,
    /// The last id that was handed to HBase.
    sent_to: Option<MessageId>,
    tail: VecDeque<Arc<Block>>,
    /// The tail has every message from here on.
    tail_from: MessageId,
    pub(super) known: Known,
    /// Its record, which is ours, says that rows may follow which it does not know of. A former owner's that says so does not count: his last
    /// word may still be on its way, and has to find a later one.
    pub(super) is_marked: bool,
    /// The record that was found knew less than is known now.
    was_behind: bool,
    /// Some write ended without an answer: it may be carried out later.
    is_uncertain: bool,
    /// It is being given up: nothing more is appended.
    pub(super) is_leaving: bool,
    /// Of the record: it rises.
    record_version: i64,
}

/// What became of appends.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) published: Vec<Arc<Block>>,
    pub(super) answers: Vec<(Arc<Pending>, Result<(), StoreError>)>,
}

/// What a reader has to know.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) committed: Committed,
    pub(super) gone: Gone,
    pub(super) disordered_to: Option<MessageId>,
    pub(super) largest: u32,
    /// Of a message in stored form.
    pub(super) mean_bytes: u64,
    pub(super) total_bytes: u64,
}

impl Partition {
    /// As a record and the rows behind it say.
    pub(super) fn new(number: i16, session: u64, record: Record, floor: Option<MessageId>, record_version: i64) -> Self {
        let floor = floor.max(record.last).max(record.gone.truncated.map(|t| t.to));
        Self {
            number,
            session,
            floor,
            next_number: record.next_number,
            next_bytes: record.bytes,
            committed: Committed { last: record.last, next_number: record.next_number },
            committed_bytes: record.bytes,
            largest: record.largest,
            since_anchor: ANCHOR_EVERY,
            latest_arrival_ms: record.latest_arrival_ms,
            disordered_to: record.disordered_to,
            gone: record.gone,
            pending: VecDeque::new(),
            sent_to: record.last,
            tail: VecDeque::new(),
            tail_from: record.last.map_or(MessageId::MIN, MessageId::successor),
            known: Known::default(),
            is_marked: false,
            was_behind: !record.clean,
            is_uncertain: false,
            is_leaving: false,
            record_version,
        }
    }

    /// The millisecond of the last of `messages` ids that would be given now.
    pub(super) fn would_reach(&self, messages: usize, now_ms: i64) -> i64 {
        let first = MessageId::next(self.floor, now_ms);
        let behind = i64::try_from(messages.saturating_sub(1)).unwrap_or(i64::MAX).saturating_add(first.sequence.into());
        first.timestamp.saturating_add(behind / 32_768)
    }

    /// Gives ids, and cuts the batch into what goes in one call each. `None` if there is nothing in it.
    pub(super) fn append(
        &mut self,
        batch: PutBatch,
        now_ms: i64,
        size: CallSize,
    ) -> Result<Option<(Append, Vec<Chunk>)>, WireError> {
        let topics = batch.topics().clone();
        let (mut ids, floor) = (IdRuns::default(), &mut self.floor);
        let sealed = batch.seal(self.number, || {
            let id = MessageId::next(*floor, now_ms);
            *floor = Some(id);
            note(&mut ids, id);
            id
        });
        let Some(slice) = sealed else { return Ok(None) };
        let arrival_ms = self.arrival(slice.first, now_ms);
        let pieces = pieces(slice.clone(), size, &mut self.largest)?;
        let (pending, done) = Pending::new(self.number, slice, topics, self.next_number, arrival_ms, pieces.len());
        let pending = Arc::new(pending);
        self.pending.push_back(Arc::clone(&pending));
        let deadline = tokio::time::Instant::now() + size.patience;
        let mut chunks = Vec::with_capacity(pieces.len());
        for slice in pieces {
            let anchor = (self.since_anchor >= ANCHOR_EVERY).then_some(Anchor {
                number: self.next_number,
                bytes: self.next_bytes,
                largest: self.largest,
            });
            self.since_anchor = if anchor.is_some() { slice.count } else { self.since_anchor.saturating_add(slice.count) };
            self.next_number += u64::from(slice.count);
            self.next_bytes += slice.bytes.len() as u64;
            chunks.push(Chunk { of: Arc::clone(&pending), slice, anchor, deadline });
        }
        Ok(Some((Append { ids, done }, chunks)))
    }

    /// When an append with this first id arrives.
    fn arrival(&mut self, first: MessageId, now_ms: i64) -> i64 {
        let back_ms = self.latest_arrival_ms.saturating_sub(now_ms);
        if (1..=SMALL_STEP_MS).contains(&back_ms) {
            return self.latest_arrival_ms;
        }
        if back_ms > SMALL_STEP_MS {
            self.disordered_to = Some(first);
        }
        self.latest_arrival_ms = now_ms;
        now_ms
    }

    /// What `append` gave is on its way to HBase.
    pub(super) fn sent(&mut self, chunks: &[Chunk]) {
        self.sent_to = self.sent_to.max(chunks.last().map(|chunk| chunk.slice.last));
    }

    /// So is what was held back.
    pub(super) fn sent_up_to(&mut self, last: MessageId) {
        self.sent_to = self.sent_to.max(Some(last));
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Settles what is due at the front.
    pub(super) fn settle(&mut self) -> Settled {
        let mut settled = Settled::default();
        while let Some(outcome) = self.pending.front().and_then(|pending| pending.outcome())
            && let Some(pending) = self.pending.pop_front()
        {
            match &outcome {
                Ok(()) => settled.published.push(self.publish(&pending)),
                Err(_) => self.is_uncertain = true,
            }
            settled.answers.push((pending, outcome));
        }
        settled
    }

    fn publish(&mut self, pending: &Pending) -> Arc<Block> {
        let slice = &pending.slice;
        let block = Arc::new(Block {
            partition: self.number,
            number: pending.number,
            arrival_ms: pending.arrival_ms,
            first: slice.first,
            last: slice.last,
            count: slice.count,
            topics: pending.topics.clone(),
            parts: vec![slice.clone()],
        });
        let next_number = pending.number + u64::from(slice.count);
        self.committed = Committed { last: Some(slice.last), next_number };
        self.committed_bytes += slice.bytes.len() as u64;
        self.tail.push_back(Arc::clone(&block));
        block
    }

    /// Lets go of a block of the tail, and of those before it.
    pub(super) fn evict(&mut self, number: u64) {
        while self.tail.front().is_some_and(|block| block.number <= number)
            && let Some(block) = self.tail.pop_front()
        {
            self.tail_from = block.last.successor();
        }
    }

    /// What will not be answered by HBase any more.
    pub(super) fn abandon(&mut self) -> VecDeque<Arc<Pending>> {
        std::mem::take(&mut self.pending)
    }

    pub(super) const fn committed(&self) -> Committed {
        self.committed
    }

    pub(super) fn raise_ids(&mut self, floor: MessageId) {
        self.floor = self.floor.max(Some(floor));
    }

    pub(super) fn view(&self) -> View {
        View {
            committed: self.committed,
            gone: self.gone.clone(),
            disordered_to: self.disordered_to,
            largest: self.largest,
            mean_bytes: self.committed_bytes.checked_div(self.committed.next_number).unwrap_or(0),
            total_bytes: self.committed_bytes,
        }
    }

    pub(super) fn read_tail(&self, from: MessageId, max_bytes: usize, cut_ms: i64) -> TailRead {
        if self.committed.last.is_none_or(|last| last < from) {
            return TailRead::End;
        }
        if from < self.tail_from {
            return TailRead::Cold;
        }
        let begin = self.tail.partition_point(|block| block.last < from);
        let (mut blocks, mut bytes) = (Vec::new(), 0usize);
        for block in self.tail.range(begin..) {
            bytes = bytes.saturating_add(block.byte_len());
            let is_gone = self.gone.why(block.last, block.arrival_ms, cut_ms).is_some();
            if is_gone || (!blocks.is_empty() && bytes > max_bytes) {
                break;
            }
            blocks.push(Arc::clone(block));
        }
        // What is gone is told by a read.
        if blocks.is_empty() { TailRead::Cold } else { TailRead::Blocks(blocks) }
    }

    /// All visible blocks from `from` on, if memory has all of them.
    pub(super) fn in_memory(&self, from: MessageId, cut_ms: i64) -> Option<Vec<Arc<Block>>> {
        let from = self.gone.begin(from);
        if self.committed.last.is_none_or(|last| last < from) {
            return Some(Vec::new());
        }
        let begin = self.tail.partition_point(|block| block.last < from);
        let is_gone = |block: &Block| self.gone.why(block.last, block.arrival_ms, cut_ms).is_some();
        // What lies below the tail may be gone too, if its first block is.
        let is_whole = from >= self.tail_from || (self.disordered_to.is_none() && self.tail.front().is_some_and(|b| is_gone(b)));
        is_whole.then(|| self.tail.range(begin..).filter(|block| !is_gone(block)).cloned().collect())
    }

    /// Everything that was handed to HBase is gone. Appends that wait stay.
    pub(super) fn truncation(&self) -> Option<super::gone::Truncated> {
        let number = self.pending.front().map_or(self.next_number, |pending| pending.number);
        self.sent_to.map(|to| super::gone::Truncated { to, number })
    }

    /// The same when nothing is on its way: also what a former owner may still write is gone.
    pub(super) fn truncation_of_all(&self) -> Option<super::gone::Truncated> {
        self.floor.map(|to| super::gone::Truncated { to, number: self.next_number })
    }

    pub(super) fn truncate(&mut self, truncated: super::gone::Truncated) {
        self.gone.truncated = Some(truncated);
        self.gone.expired.retain(|step| step.to > truncated.to);
        self.tail.clear();
        self.tail_from = truncated.to.successor();
        self.since_anchor = ANCHOR_EVERY;
        if self.disordered_to.is_some_and(|to| to <= truncated.to) {
            self.disordered_to = None;
        }
    }

    /// The record for the next owner, with its version. `clean`: nothing is on its way.
    pub(super) fn record(&mut self, clean: bool) -> (Record, i64) {
        let step = if clean || self.is_marked { 1 } else { FIRST_STEP };
        self.record_version = self.record_version.max(self.floor.map_or(0, |floor| floor.timestamp)).saturating_add(step);
        let record = Record {
            clean: clean && self.pending.is_empty() && !self.is_uncertain,
            last: self.committed.last,
            next_number: self.committed.next_number,
            bytes: self.committed_bytes,
            largest: self.largest,
            latest_arrival_ms: self.latest_arrival_ms,
            disordered_to: self.disordered_to,
            gone: self.gone.clone(),
        };
        (record, self.record_version)
    }

    /// Is there anything that the next owner would not know?
    pub(super) fn has_news(&self) -> bool {
        self.is_marked || self.was_behind || !self.gone.expired.is_empty()
    }
}

/// Adds an id that follows those noted already.
fn note(runs: &mut IdRuns, id: MessageId) {
    match runs.0.last_mut() {
        Some(run) if run.first.timestamp == id.timestamp && run.count < u16::MAX => run.count += 1,
        _ => runs.0.push(IdRun { first: id, count: 1 }),
    }
}

/// Cuts an append into what goes in one call each, and notes the largest message.
fn pieces(slice: StoredSlice, size: CallSize, largest: &mut u32) -> Result<Vec<StoredSlice>, WireError> {
    for message in slice.messages() {
        *largest = (*largest).max(u32::try_from(message?.raw.len()).unwrap_or(u32::MAX));
    }
    let mut pieces = Vec::new();
    let mut rest = Some(slice);
    while let Some(slice) = rest {
        let (front, behind) = slice.split_front(size.rows, size.bytes)?;
        pieces.push(front);
        rest = behind;
    }
    Ok(pieces)
}

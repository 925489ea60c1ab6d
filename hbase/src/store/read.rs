//! Reading what memory does not hold.
//!
//! A message's running number is not stored with it. It is known for places where a reader stopped, it follows from an anchor on the same
//! page, and from the end of the partition; otherwise the next anchor is looked for, and the rows up to it are counted.
//!
//! Arrivals rise with the ids unless the clock was set back by more than a minute. While they do, what has expired is the beginning, and
//! HBase passes over it by the time of its cells. Otherwise every row is looked at.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::{Block, Cursor, Missing, MissingReason, ReadBatch, StoreError, TailRead};

use super::known::Place;
use super::page::{KEYS_PER_CALL, Page, Range, Which};
use super::partition::View;
use super::queue::{HBaseQueue, note_expired};
use super::rows::{MessageRow, stored};
use crate::gateway::Column;
use crate::schema::MESSAGE;

/// Every message has it.
pub(super) const MESSAGE_COLUMN: Column<'static> = Column { family: MESSAGE, qualifier: None };

/// A row that can be shown, and its number.
struct Numbered<'a> {
    row: &'a MessageRow,
    number: u64,
}

impl HBaseQueue {
    /// From memory where it has what is wanted, else from HBase.
    pub(super) async fn read(&self, partition: i16, from: MessageId, max_bytes: usize) -> Result<ReadBatch, StoreError> {
        let cut_ms = self.cut_ms();
        let in_memory = self.with(partition, |held| {
            note_expired(held, cut_ms);
            let TailRead::Blocks(blocks) = held.read_tail(from, max_bytes, cut_ms) else { return None };
            let last = blocks.last()?;
            let next = last.last.successor();
            held.known.note(next, Place { number: last.number + u64::from(last.count), before_ms: last.arrival_ms });
            let at_end = held.committed().last == Some(last.last);
            Some(ReadBatch { blocks, next: Cursor::at(next), at_end, missing: Vec::new() })
        })?;
        match in_memory {
            Some(found) => Ok(found),
            None => self.read_cold(partition, from, max_bytes).await,
        }
    }

    async fn read_cold(&self, partition: i16, from: MessageId, max_bytes: usize) -> Result<ReadBatch, StoreError> {
        let (view, cut_ms) = self.view(partition)?;
        let place = self.with(partition, |held| held.known.at(from))?;
        let mut found = Found::new(from, place.map(|place| place.number), &view);
        let Some(last) = view.committed.last.filter(|last| *last >= from) else { return Ok(found.end(from)) };
        let begin = view.gone.begin(from);
        if begin > last {
            return Ok(found.end(last.successor()));
        }
        let in_order = view.disordered_to.is_none_or(|to| begin >= to);
        let not_before_ms = in_order.then_some(cut_ms).filter(|cut| *cut > 0);
        let range = Range { from: begin, to: last, rows: 1, not_before_ms };
        let page = self.page(partition, range, &view, max_bytes).await?;
        let Some(first) = page.rows.first() else { return Ok(found.end(last.successor())) };
        let straight_on = place.filter(|place| begin == from && (!in_order || place.before_ms >= cut_ms.max(1)));
        let number = match straight_on.map(|place| place.number).or_else(|| number_on(&page, &view)) {
            Some(number) => number,
            None => self.number_of(partition, first.id, &view).await?,
        };
        let stopped = found.take(partition, &page, number, cut_ms, max_bytes);
        if let Some(place) = found.place {
            self.with(partition, |held| held.known.note(found.next, place))?;
        }
        if page.is_last && !stopped {
            let next = found.next.max(last.successor());
            return Ok(found.end(next));
        }
        Ok(found.more())
    }

    /// The number of the row with this id, which is there.
    pub(super) async fn number_of(&self, partition: i16, id: MessageId, view: &View) -> Result<u64, StoreError> {
        let last = view.committed.last.unwrap_or(MessageId::MIN);
        let anchor = self.anchor(partition, (id, last), Which::First).await?;
        let (behind, number) = anchor.map_or((last.successor(), view.committed.next_number), |(id, anchor)| (id, anchor.number));
        let count = self.count_rows(partition, (id, behind), None, &[MESSAGE_COLUMN], |_| true).await?;
        Ok(number.saturating_sub(count))
    }

    /// Counts rows from the first id to before the second that have one of the columns.
    pub(super) async fn count_rows(
        &self,
        partition: i16,
        (from, behind): (MessageId, MessageId),
        not_before_ms: Option<i64>,
        columns: &[Column<'_>],
        counts: impl Fn(&MessageRow) -> bool,
    ) -> Result<u64, StoreError> {
        let mut range = Range { from, to: behind, rows: KEYS_PER_CALL, not_before_ms };
        let mut count = 0;
        loop {
            let page = self.keys(partition, range, columns).await?;
            count += page.rows.iter().filter(|row| row.id < behind && counts(row)).count() as u64;
            match page.rows.last() {
                Some(row) if !page.is_last => range.from = row.id.successor(),
                _ => return Ok(count),
            }
        }
    }
}

/// The number of a page's first row, if something on the page tells it.
fn number_on(page: &Page, view: &View) -> Option<u64> {
    let by_anchor = page.rows.iter().zip(0u64..).find_map(|(row, n)| row.anchor.map(|anchor| anchor.number.saturating_sub(n)));
    by_anchor.or_else(|| page.is_last.then(|| view.committed.next_number.saturating_sub(page.rows.len() as u64)))
}

/// What a read has found so far.
struct Found<'a> {
    view: &'a View,
    blocks: Vec<Arc<Block>>,
    missing: Vec<Missing>,
    next: MessageId,
    /// The number that the next message would have if nothing had gone.
    expected: Option<u64>,
    /// Where the reader stops.
    place: Option<Place>,
}

impl<'a> Found<'a> {
    fn new(from: MessageId, expected: Option<u64>, view: &'a View) -> Self {
        Self { view, blocks: Vec::new(), missing: Vec::new(), next: from, expected, place: None }
    }

    /// Takes the rows that can be shown, up to `max_bytes`. True: there are more on the page.
    fn take(&mut self, partition: i16, page: &Page, number: u64, cut_ms: i64, max_bytes: usize) -> bool {
        let mut next_number = number;
        let mut run: Vec<Numbered<'_>> = Vec::new();
        let mut bytes = 0usize;
        for row in &page.rows {
            let number = row.anchor.map_or(next_number, |anchor| anchor.number.max(next_number));
            next_number = number + 1;
            if self.view.gone.why(row.id, row.arrival_ms, cut_ms).is_some() {
                // `note_gap` tells of it at the next one that is there.
                self.passed(&mut run, partition, row, number);
                continue;
            }
            let breaks = run.last().is_some_and(|last| last.row.arrival_ms != row.arrival_ms || last.number + 1 != number);
            if breaks {
                self.block(partition, &mut run);
            }
            let is_first = self.blocks.is_empty() && run.is_empty();
            bytes = bytes.saturating_add(row.byte_len());
            if !is_first && bytes > max_bytes {
                self.block(partition, &mut run);
                return true;
            }
            self.note_gap(number);
            self.expected = Some(number + 1);
            self.next = row.id.successor();
            self.place = Some(Place { number: number + 1, before_ms: row.arrival_ms });
            run.push(Numbered { row, number });
        }
        self.block(partition, &mut run);
        false
    }

    /// A row that is gone lies between two that are not, or before the first.
    fn passed(&mut self, run: &mut Vec<Numbered<'_>>, partition: i16, row: &MessageRow, number: u64) {
        self.block(partition, run);
        self.next = row.id.successor();
        self.place = Some(Place { number: number + 1, before_ms: row.arrival_ms });
        if self.expected.is_none() {
            self.expected = Some(number);
        }
    }

    fn block(&mut self, partition: i16, run: &mut Vec<Numbered<'_>>) {
        let (Some(first), Some((slice, topics))) = (run.first(), stored(partition, run.iter().map(|n| n.row))) else { return };
        let block = Block {
            partition,
            number: first.number,
            arrival_ms: first.row.arrival_ms,
            first: slice.first,
            last: slice.last,
            count: slice.count,
            topics,
            parts: vec![slice],
        };
        self.blocks.push(Arc::new(block));
        run.clear();
    }

    /// The next message that is there has this number: tells of those that should have come before.
    fn note_gap(&mut self, number: u64) {
        let Some(expected) = self.expected.filter(|expected| *expected < number) else { return };
        let truncated = self.view.gone.truncated.map_or(0, |t| t.number.min(number).saturating_sub(expected));
        for (why, messages) in [(MissingReason::Truncated, truncated), (MissingReason::Expired, number - expected - truncated)] {
            match self.missing.last_mut() {
                _ if messages == 0 => {}
                Some(last) if last.why == why => last.messages += messages,
                _ => self.missing.push(Missing { why, messages }),
            }
        }
        self.expected = Some(number);
    }

    fn end(mut self, next: MessageId) -> ReadBatch {
        let next = self.next.max(next);
        self.note_gap(self.view.committed.next_number);
        ReadBatch { blocks: self.blocks, next: Cursor::at(next), at_end: true, missing: self.missing }
    }

    fn more(self) -> ReadBatch {
        ReadBatch { blocks: self.blocks, next: Cursor::at(self.next), at_end: false, missing: self.missing }
    }
}

//! Counting and statistics.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::TopicTable;
use hqueue_storage::store::{Block, Count, PartitionStatistics, StoreError};

use super::known::Place;
use super::page::{KEYS_PER_CALL, Range};
use super::partition::View;
use super::queue::{HBaseQueue, note_expired};
use super::read::MESSAGE_COLUMN;
use super::rows::MessageRow;
use crate::gateway::Column;
use crate::schema::MESSAGE;

/// Statistics add up the sizes of so many messages; the bytes of more are told by their mean.
const ADDED_UP: u64 = 1000;

/// The first message that can be seen.
struct First {
    id: MessageId,
    number: u64,
}

impl HBaseQueue {
    pub(super) async fn count(
        &self,
        partition: i16,
        from: MessageId,
        topics: &[Vec<u8>],
        look_at_most: u64,
    ) -> Result<Count, StoreError> {
        let cut_ms = self.cut_ms();
        let in_memory = self.with(partition, |held| {
            note_expired(held, cut_ms);
            held.in_memory(from, cut_ms)
        })?;
        if let Some(blocks) = in_memory {
            return Ok(count_blocks(&blocks, from, topics, look_at_most));
        }
        let (view, cut_ms) = self.view(partition)?;
        let all = self.count_all(partition, from, &view, cut_ms).await?;
        if topics.is_empty() {
            return Ok(Count { messages: all, exact: true });
        }
        if all > look_at_most {
            return Ok(Count { messages: all, exact: false });
        }
        let columns: Vec<_> = topics.iter().map(|topic| Column { family: MESSAGE, qualifier: Some(topic) }).collect();
        let messages = self.count_visible(partition, from, &view, cut_ms, &columns).await?;
        Ok(Count { messages, exact: true })
    }

    async fn count_all(&self, partition: i16, from: MessageId, view: &View, cut_ms: i64) -> Result<u64, StoreError> {
        let begin = view.gone.begin(from);
        if view.disordered_to.is_some_and(|to| begin < to) {
            return self.count_visible(partition, from, view, cut_ms, &[MESSAGE_COLUMN]).await;
        }
        let first = self.first_visible(partition, from, view, cut_ms).await?;
        Ok(first.map_or(0, |first| view.committed.next_number.saturating_sub(first.number)))
    }

    /// Row by row.
    async fn count_visible(
        &self,
        partition: i16,
        from: MessageId,
        view: &View,
        cut_ms: i64,
        columns: &[Column<'_>],
    ) -> Result<u64, StoreError> {
        let Some(last) = view.committed.last else { return Ok(0) };
        let is_visible = |row: &MessageRow| view.gone.why(row.id, row.arrival_ms, cut_ms).is_none();
        let not_before_ms = Some(cut_ms).filter(|cut| *cut > 0);
        self.count_rows(partition, (view.gone.begin(from), last.successor()), not_before_ms, columns, is_visible).await
    }

    async fn first_visible(
        &self,
        partition: i16,
        from: MessageId,
        view: &View,
        cut_ms: i64,
    ) -> Result<Option<First>, StoreError> {
        let Some(last) = view.committed.last else { return Ok(None) };
        let not_before_ms = Some(cut_ms).filter(|cut| *cut > 0);
        let mut range = Range { from: view.gone.begin(from), to: last, rows: 1, not_before_ms };
        loop {
            let page = self.keys(partition, range, &[MESSAGE_COLUMN]).await?;
            if let Some(row) = page.rows.iter().find(|row| view.gone.why(row.id, row.arrival_ms, cut_ms).is_none()) {
                let known = self.with(partition, |held| held.known.at(row.id))?;
                if let Some(place) = known {
                    return Ok(Some(First { id: row.id, number: place.number }));
                }
                let number = self.number_of(partition, row.id, view).await?;
                // When the message before it arrived is not known: no reader takes that for straight on.
                let place = Place { number, before_ms: i64::MIN };
                self.with(partition, |held| held.known.note(row.id, place))?;
                return Ok(Some(First { id: row.id, number }));
            }
            match page.rows.last() {
                Some(row) if !page.is_last => range = Range { from: row.id.successor(), rows: KEYS_PER_CALL, ..range },
                _ => return Ok(None),
            }
        }
    }

    pub(super) async fn statistics(&self, partition: i16) -> Result<PartitionStatistics, StoreError> {
        let cut_ms = self.cut_ms();
        let in_memory = self.with(partition, |held| {
            note_expired(held, cut_ms);
            held.in_memory(MessageId::MIN, cut_ms)
        })?;
        if let Some(blocks) = in_memory {
            return Ok(sum(&blocks));
        }
        let (view, cut_ms) = self.view(partition)?;
        let messages = self.count_all(partition, MessageId::MIN, &view, cut_ms).await?;
        if messages <= ADDED_UP || view.disordered_to.is_some() {
            return self.add_up(partition, &view, cut_ms).await;
        }
        let first = self.first_visible(partition, MessageId::MIN, &view, cut_ms).await?;
        let mean = view.mean_bytes;
        Ok(PartitionStatistics {
            first: first.map(|first| first.id),
            last: view.committed.last,
            messages,
            bytes: mean.saturating_mul(messages).min(view.total_bytes),
        })
    }

    async fn add_up(&self, partition: i16, view: &View, cut_ms: i64) -> Result<PartitionStatistics, StoreError> {
        let mut found = PartitionStatistics::default();
        let Some(last) = view.committed.last else { return Ok(found) };
        let not_before_ms = Some(cut_ms).filter(|cut| *cut > 0);
        let mut range = Range { from: view.gone.begin(MessageId::MIN), to: last, rows: KEYS_PER_CALL, not_before_ms };
        loop {
            let page = self.sizes(partition, range).await?;
            for row in page.rows.iter().filter(|row| view.gone.why(row.id, row.arrival_ms, cut_ms).is_none()) {
                found.first.get_or_insert(row.id);
                found.last = Some(row.id);
                found.messages += 1;
                found.bytes += row.byte_len() as u64;
            }
            match page.rows.last() {
                Some(row) if !page.is_last => range.from = row.id.successor(),
                _ => return Ok(found),
            }
        }
    }
}

fn sum(blocks: &[Arc<Block>]) -> PartitionStatistics {
    let mut sum = PartitionStatistics::default();
    for block in blocks {
        sum.first.get_or_insert(block.first);
        sum.last = Some(block.last);
        sum.messages += u64::from(block.count);
        sum.bytes += block.byte_len() as u64;
    }
    sum
}

fn is_wanted(topic: &[u8], wanted: &[Vec<u8>]) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| **one == *topic)
}

/// Counts in blocks of which only the first may begin below `from`.
fn count_blocks(blocks: &[Arc<Block>], from: MessageId, topics: &[Vec<u8>], look_at_most: u64) -> Count {
    let mut left_to_look = look_at_most;
    let mut sum = Count { messages: 0, exact: true };
    for block in blocks {
        let is_whole = from <= block.first;
        let count = u64::from(block.count);
        let by_table = match &block.topics {
            _ if topics.is_empty() => Some(count),
            TopicTable::Few(known) => {
                Some(known.iter().filter(|(topic, _)| is_wanted(topic, topics)).map(|(_, count)| u64::from(*count)).sum())
            }
            TopicTable::Many => None,
        };
        match by_table {
            Some(counted) if is_whole || counted == 0 => sum.messages += counted,
            // Where a partition is entered costs nothing that counts.
            _ if topics.is_empty() || count <= left_to_look => {
                left_to_look = left_to_look.saturating_sub(count);
                let messages = block.parts.iter().flat_map(|part| part.messages()).filter_map(Result::ok);
                sum.messages += messages.filter(|m| m.id >= from && is_wanted(m.topic, topics)).count() as u64;
            }
            upper_bound => {
                let at_or_above = if is_whole {
                    count
                } else {
                    let messages = block.parts.iter().flat_map(|part| part.messages()).filter_map(Result::ok);
                    messages.filter(|m| m.id >= from).count() as u64
                };
                sum.messages += upper_bound.unwrap_or(count).min(at_or_above);
                sum.exact = false;
            }
        }
    }
    sum
}

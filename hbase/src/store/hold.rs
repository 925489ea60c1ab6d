//! Acquiring partitions, giving them up, and the records of what lasts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use hqueue_protocol::id::MessageId;
use hqueue_storage::marks::Mark;
use hqueue_storage::store::StoreError;
use tokio::time::timeout;
use uuid::Uuid;

use super::ids::{floor_of, reserve_to};
use super::page::{KEYS_PER_CALL, Range, Which};
use super::partition::Partition;
use super::queue::HBaseQueue;
use super::record::{self, FAMILY, QUALIFIER, Record};
use super::shared::{Shared, failed};
use crate::gateway::{Cell, Column, PutCall, Scan, Values, rows};
use crate::table;

/// Partitions whose rows are looked for at a time.
const AT_A_TIME: usize = 8;
/// Records in a call.
const RECORDS_PER_CALL: u32 = 1000;
/// How long a partition that is given up waits for answers of HBase. Whoever puts has been waited for before.
const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// A record and its version.
type Kept = (Record, i64);

impl HBaseQueue {
    /// Acquires a partition in the session that is held now.
    pub(super) async fn acquire(self: &Arc<Self>, partition: i16) -> Result<(), StoreError> {
        let mark = self.session(partition)?;
        // Behind the claim: whoever held the partition before can reserve nothing more for it.
        let highest_ms = self.highest().await?;
        let kept = self.records(partition, partition).await?.pop().map(|(_, kept)| kept);
        self.take_over(partition, mark, highest_ms, kept).await
    }

    /// Acquires every partition, as the only broker there is.
    pub(super) async fn acquire_all(self: &Arc<Self>) -> Result<(), StoreError> {
        let mark = self.session(0)?;
        let highest_ms = self.highest().await?;
        let mut kept: Vec<Option<Kept>> = (0..self.spec.partitions).map(|_| None).collect();
        for (partition, found) in self.records(0, self.spec.partitions - 1).await? {
            if let Some(place) = usize::try_from(partition).ok().and_then(|p| kept.get_mut(p)) {
                *place = Some(found);
            }
        }
        let all = (0..self.spec.partitions).zip(kept).map(|(partition, kept)| self.take_over(partition, mark, highest_ms, kept));
        let mut all = stream::iter(all).buffer_unordered(AT_A_TIME);
        while let Some(taken) = all.next().await {
            taken?;
        }
        Ok(())
    }

    fn session(&self, partition: i16) -> Result<Mark, StoreError> {
        self.shared.marks.current().ok_or(StoreError::NotHeld { partition, reason: "there is no session" })
    }

    async fn highest(&self) -> Result<i64, StoreError> {
        self.shared.marks.highest().await.map_err(|error| reserving(&error.reason))
    }

    async fn take_over(&self, partition: i16, mark: Mark, highest_ms: i64, kept: Option<Kept>) -> Result<(), StoreError> {
        // Without a record nothing was written, or it is lost, or HBase's own tools have made the table: rows are looked for.
        let (mut record, version) = kept.unwrap_or_default();
        if !record.clean {
            self.recount(partition, &mut record).await?;
        }
        self.hold(partition, Some(Partition::new(partition, mark.session, record, floor_of(highest_ms), version)));
        Ok(())
    }

    /// Finds and counts the rows that a record does not know of.
    async fn recount(&self, partition: i16, record: &mut Record) -> Result<(), StoreError> {
        let known_to = record.last.max(record.gone.truncated.map(|truncated| truncated.to));
        let begin = known_to.map_or(MessageId::MIN, MessageId::successor);
        let mut range = Range { from: begin, to: MessageId::MAX, rows: KEYS_PER_CALL, not_before_ms: None };
        if let Some((id, anchor)) = self.anchor(partition, (begin, MessageId::MAX), Which::Last).await? {
            range.from = id;
            record.next_number = record.next_number.max(anchor.number);
            record.bytes = record.bytes.max(anchor.bytes);
            record.largest = record.largest.max(anchor.largest);
        }
        let mut before_ms = record.latest_arrival_ms;
        loop {
            let page = self.sizes(partition, range).await?;
            for row in &page.rows {
                record.last = Some(row.id);
                record.next_number += 1;
                record.bytes += row.byte_len() as u64;
                record.largest = record.largest.max(u32::try_from(row.byte_len()).unwrap_or(u32::MAX));
                if row.arrival_ms < before_ms {
                    record.disordered_to = Some(row.id);
                }
                before_ms = row.arrival_ms;
            }
            match page.rows.last() {
                Some(row) if !page.is_last => range.from = row.id.successor(),
                _ => break,
            }
        }
        record.latest_arrival_ms = before_ms;
        Ok(())
    }

    /// Gives a partition up when all that is on its way has been answered, or after [`RELEASE_PATIENCE`]: then the next owner looks for
    /// the last rows. In another session than it was acquired in it is just let go: somebody else may have it, and his records count.
    pub(super) async fn release(self: &Arc<Self>, partition: i16) -> Result<(), StoreError> {
        let session = self.shared.marks.current().map(|mark| mark.session);
        let Ok(is_ours) = self.with(partition, |held| {
            held.is_leaving = true;
            session == Some(held.session)
        }) else {
            return Ok(());
        };
        let end = async {
            self.nothing_on_its_way(partition).await;
            self.keep([partition].into_iter(), true).await
        };
        let kept = if is_ours { timeout(RELEASE_PATIENCE, end).await } else { Ok(Ok(())) };
        self.hold(partition, None);
        kept.unwrap_or_else(|_| {
            let reason = format!("not within {RELEASE_PATIENCE:?}");
            Err(StoreError::Remote { what: "waiting for HBase to answer all puts", reason, retryable: true })
        })
    }

    async fn nothing_on_its_way(&self, partition: i16) {
        loop {
            let told = self.idle.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            let is_idle = self.lanes.get(self.lane_of(partition)).is_none_or(super::lane::Lane::is_idle);
            if is_idle || !self.with(partition, |held| held.has_pending()).unwrap_or(false) {
                return;
            }
            told.await;
        }
    }

    /// Says of partitions that rows may follow their records, before the first one does.
    pub(super) async fn mark_partitions(&self, partitions: impl Iterator<Item = i16> + Clone) -> Result<(), StoreError> {
        let is_unmarked = |partition: &i16| self.with(*partition, |held| !held.is_marked).unwrap_or(false);
        if !partitions.clone().any(|partition| is_unmarked(&partition)) {
            return Ok(());
        }
        let unmarked: std::collections::BTreeSet<i16> = partitions.filter(is_unmarked).collect();
        self.keep(unmarked.iter().copied(), false).await?;
        for partition in unmarked {
            let _ = self.with(partition, |held| held.is_marked = true);
        }
        Ok(())
    }

    /// Writes the records of partitions that are held.
    pub(super) async fn keep(&self, partitions: impl Iterator<Item = i16>, clean: bool) -> Result<(), StoreError> {
        let _one_at_a_time = self.recording.lock().await;
        let mut call = PutCall::new(&self.shared.records, 1000);
        let mut rows = 0;
        for partition in partitions {
            let Ok((record, version)) = self.with(partition, |held| held.record(clean)) else { continue };
            let value = record.encode();
            let cell = Cell { family: FAMILY, qualifier: QUALIFIER, value: &value };
            call.row(&record::key(self.identity.incarnation, partition), version, std::iter::once(cell));
            rows += 1;
            if rows == RECORDS_PER_CALL {
                let full = std::mem::replace(&mut call, PutCall::new(&self.shared.records, 1000));
                self.put_records(full).await?;
                rows = 0;
            }
        }
        if rows > 0 { self.put_records(call).await } else { Ok(()) }
    }

    async fn put_records(&self, call: PutCall) -> Result<(), StoreError> {
        let shared = &self.shared;
        let written = shared.gateways.repeat(PutCall::METHOD, call.finish(), shared.write_deadline()).await;
        written.map(|_| ()).map_err(failed("writing what is known of partitions to HBase"))
    }

    /// Removes the records of all partitions: the table that they speak of is gone.
    pub(super) async fn forget(shared: &Shared, incarnation: Uuid, partitions: i16) -> Result<(), StoreError> {
        let keys: Vec<Vec<u8>> = (0..partitions).map(|partition| record::key(incarnation, partition)).collect();
        for keys in keys.chunks(RECORDS_PER_CALL as usize) {
            let deleted = table::delete_rows(&shared.gateways, &shared.records, keys, shared.write_deadline()).await;
            deleted.map_err(failed("removing what is known of partitions from HBase"))?;
        }
        Ok(())
    }

    /// The records of partitions `from` to `to`.
    async fn records(&self, from: i16, to: i16) -> Result<Vec<(i16, Kept)>, StoreError> {
        let what = "reading what is known of partitions from HBase";
        let shared = &self.shared;
        let columns = [Column { family: FAMILY, qualifier: Some(QUALIFIER) }];
        let stop = [&record::key(self.identity.incarnation, to)[..], &[0]].concat();
        let mut start = record::key(self.identity.incarnation, from);
        let mut found = Vec::new();
        loop {
            let scan = Scan {
                start: &start,
                stop: &stop,
                columns: &columns,
                not_before_ms: None,
                values: Values::Whole,
                limit: RECORDS_PER_CALL,
                reversed: false,
            };
            let body = shared.gateways.repeat(Scan::METHOD, scan.args(&shared.records), shared.read_deadline()).await;
            let page = rows(&body.map_err(failed(what))?).map_err(failed(what))?;
            for row in &page {
                let cell = row.cells.first();
                let record = cell.and_then(|cell| Record::decode(&cell.value)).ok_or_else(|| unreadable(row.key.len()))?;
                found.extend(record::partition_of(&row.key).map(|p| (p, (record, cell.map_or(0, |cell| cell.timestamp)))));
            }
            match page.last() {
                Some(last) if page.len() >= RECORDS_PER_CALL as usize => start = [&last.key[..], &[0]].concat(),
                _ => return Ok(found),
            }
        }
    }

    /// Reserves ids for an append that found none.
    pub(super) fn ready(self: &Arc<Self>, partition: i16, messages: usize) -> Option<BoxFuture<'_, Result<(), StoreError>>> {
        let now_ms = self.shared.clock.now_ms();
        let (session, reach_ms) = self.with(partition, |held| (held.session, held.would_reach(messages, now_ms))).ok()?;
        let mark = self.shared.marks.current().filter(|mark| mark.session == session)?;
        if reach_ms < mark.below_ms {
            return None;
        }
        Some(Box::pin(async move {
            let reserved = self.shared.marks.reserve(reserve_to(reach_ms, now_ms)).await;
            reserved.map(|_| ()).map_err(|error| reserving(&error.reason))
        }))
    }
}

fn reserving(reason: &str) -> StoreError {
    StoreError::Remote { what: "reserving ids", reason: reason.to_owned(), retryable: true }
}

fn unreadable(bytes: usize) -> StoreError {
    let reason =
        format!("a record of hqueue:partitions cannot be read (row of {bytes} bytes): was it written by a later version?");
    StoreError::Remote { what: "reading what is known of partitions from HBase", reason, retryable: false }
}

//! Some rows of a partition, as one call to HBase gives them.

use hqueue_protocol::id::MessageId;
use hqueue_storage::store::StoreError;

use super::partition::View;
use super::queue::HBaseQueue;
use super::rows::MessageRow;
use super::shared::failed;
use crate::gateway::{Column, Scan, Values, rows};
use crate::schema::{ANCHOR, Anchor, HEADERS, INDEX, MESSAGE, parse_row_key, row_key, row_key_behind};

/// Rows of a page.
const MOST_ROWS: u64 = 1000;
/// Rows whose values are not wanted, in one call.
pub(super) const KEYS_PER_CALL: u32 = 1000;
/// No page may be larger if every message in it were as large as the largest of the partition: gateways hold a page in memory. Bytes.
const SAFE_BYTES: u64 = 64 << 20;
/// What is asked for at a time at most. Bytes.
const PAGE_BYTES: u64 = 8 << 20;

/// Which rows are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) from: MessageId,
    /// The last one.
    pub(super) to: MessageId,
    pub(super) rows: u32,
    /// Older rows are passed over. Milliseconds.
    pub(super) not_before_ms: Option<i64>,
}

/// Which anchor is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) rows: Vec<MessageRow>,
    /// There are no more in the range.
    pub(super) is_last: bool,
}

const EVERYTHING: [Column<'static>; 3] = [
    Column { family: MESSAGE, qualifier: None },
    Column { family: HEADERS, qualifier: None },
    Column { family: INDEX, qualifier: None },
];

impl HBaseQueue {
    /// Rows with all that belongs to them, of about `bytes` bytes in all.
    pub(super) async fn page(&self, partition: i16, range: Range, view: &View, bytes: usize) -> Result<Page, StoreError> {
        let bytes = (bytes as u64).min(PAGE_BYTES);
        let mean_rows = (bytes / view.mean_bytes.max(1)).saturating_add(1).min(MOST_ROWS);
        let is_safe = mean_rows.saturating_mul(view.largest.into()) <= SAFE_BYTES || mean_rows == 1;
        let rows = if is_safe { mean_rows } else { self.measured(partition, range, mean_rows, bytes).await? };
        let rows = u32::try_from(rows).unwrap_or(1);
        self.scan(partition, Range { rows, ..range }, &EVERYTHING, Values::Whole).await
    }

    /// How many rows have `bytes` bytes: at least one, `most` at most.
    async fn measured(&self, partition: i16, range: Range, most: u64, bytes: u64) -> Result<u64, StoreError> {
        let sizes = self.sizes(partition, Range { rows: u32::try_from(most).unwrap_or(1), ..range }).await?;
        let (mut rows, mut sum) = (0, 0u64);
        for row in &sizes.rows {
            sum = sum.saturating_add(row.byte_len() as u64);
            if rows > 0 && sum > bytes {
                break;
            }
            rows += 1;
        }
        Ok(rows.max(1))
    }

    /// Rows with the sizes of their values in place of these.
    pub(super) async fn sizes(&self, partition: i16, range: Range) -> Result<Page, StoreError> {
        self.scan(partition, range, &EVERYTHING, Values::Lengths).await
    }

    /// Rows that have one of the columns, without their values.
    pub(super) async fn keys(&self, partition: i16, range: Range, columns: &[Column<'_>]) -> Result<Page, StoreError> {
        self.scan(partition, range, columns, Values::None).await
    }

    async fn scan(&self, partition: i16, range: Range, columns: &[Column<'_>], values: Values) -> Result<Page, StoreError> {
        if range.from > range.to {
            return Ok(Page { rows: Vec::new(), is_last: true });
        }
        let (start, stop) = (row_key(partition, range.from), row_key_behind(partition, range.to));
        let scan = Scan {
            start: &start,
            stop: &stop,
            columns,
            not_before_ms: range.not_before_ms,
            values,
            limit: range.rows,
            reversed: false,
        };
        let found = self.run(&scan, partition).await?;
        let is_last = found.0 < range.rows as usize || found.1.last().is_some_and(|row| row.id >= range.to);
        Ok(Page { rows: found.1, is_last })
    }

    /// The first anchor in a range, or the last one.
    pub(super) async fn anchor(
        &self,
        partition: i16,
        (from, to): (MessageId, MessageId),
        which: Which,
    ) -> Result<Option<(MessageId, Anchor)>, StoreError> {
        let what = "looking for an anchor in HBase";
        let (first, behind) = (row_key(partition, from), row_key_behind(partition, to));
        let (start, stop): (&[u8], &[u8]) = match which {
            Which::First => (&first, &behind),
            Which::Last => (&behind, &first),
        };
        let columns = [Column { family: INDEX, qualifier: Some(ANCHOR) }];
        let reversed = which == Which::Last;
        let scan = Scan { start, stop, columns: &columns, not_before_ms: None, values: Values::Whole, limit: 1, reversed };
        let shared = &self.shared;
        let body = shared.gateways.repeat(Scan::METHOD, scan.args(&self.rows_table), shared.read_deadline()).await;
        let found = rows(&body.map_err(failed(what))?).map_err(failed(what))?;
        let Some(row) = found.first() else { return Ok(None) };
        let id = parse_row_key(&row.key).filter(|(of, _)| *of == partition).map(|(_, id)| id);
        Ok(id.zip(row.cells.first().and_then(|cell| Anchor::decode(&cell.value))))
    }

    /// The number of rows that came, and those that are messages.
    async fn run(&self, scan: &Scan<'_>, partition: i16) -> Result<(usize, Vec<MessageRow>), StoreError> {
        let what = "reading from HBase";
        let shared = &self.shared;
        let body = shared
            .gateways
            .repeat(Scan::METHOD, scan.args(&self.rows_table), shared.read_deadline())
            .await
            .map_err(failed(what))?;
        shared.count(|c| &c.reads, 1);
        shared.count(|c| &c.read_bytes, body.len() as u64);
        let found = rows(&body).map_err(failed(what))?;
        let messages = found.iter().filter_map(|row| MessageRow::read(partition, row, scan.values)).collect();
        Ok((found.len(), messages))
    }
}

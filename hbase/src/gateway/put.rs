//! The arguments of `putMultiple`, written straight from what is put.
//!
//! ```text
//! 1: table   2: list of TPut { 1: row   2: list of TColumnValue { 1: family  2: qualifier  3: value }   3: timestamp of all of them }
//! ```

use bytes::Bytes;
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encode, Kind};

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) family: &'a [u8],
    pub(crate) qualifier: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Rows for one table.
#[derive(Debug)]
pub(crate) struct PutCall {
    out: Vec<u8>,
    /// Where the number of rows belongs.
    count_at: usize,
    rows: u32,
}

impl PutCall {
    pub(crate) const METHOD: &'static str = "putMultiple";

    pub(crate) fn new(table: &[u8], capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        Binary::write_field(&mut out, Kind::String, 1, 0);
        Binary::write_string(&mut out, table);
        Binary::write_field(&mut out, Kind::List, 2, 1);
        Binary::write_list(&mut out, Kind::Struct, 0);
        let count_at = out.len() - 4;
        Self { out, count_at, rows: 0 }
    }

    /// Adds a row whose cells carry `timestamp`, in milliseconds: what is put twice is the same both times.
    pub(crate) fn row<'a>(&mut self, key: &[u8], timestamp: i64, cells: impl Iterator<Item = Cell<'a>>) {
        let out = &mut self.out;
        Binary::write_field(out, Kind::String, 1, 0);
        Binary::write_string(out, key);
        Binary::write_field(out, Kind::List, 2, 1);
        Binary::write_list(out, Kind::Struct, 0);
        let count_at = out.len() - 4;
        let mut count = 0u32;
        for Cell { family, qualifier, value } in cells {
            for (id, bytes) in [(1, family), (2, qualifier), (3, value)] {
                Binary::write_field(out, Kind::String, id, 0);
                Binary::write_string(out, bytes);
            }
            Binary::write_end(out);
            count += 1;
        }
        set_count(out, count_at, count);
        Binary::write_field(out, Kind::I64, 3, 2);
        Binary::write_number(out, Kind::I64, timestamp);
        Binary::write_end(out);
        self.rows += 1;
    }

    pub(crate) fn finish(mut self) -> Bytes {
        set_count(&mut self.out, self.count_at, self.rows);
        Binary::write_end(&mut self.out);
        self.out.into()
    }
}

fn set_count(out: &mut [u8], at: usize, count: u32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&count.to_be_bytes());
    }
}

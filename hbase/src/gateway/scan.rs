//! The arguments of a scan.
//!
//! ```text
//! TScan { 1: first row  2: row to stop before  3: list of TColumn { 1: family  2: qualifier }  4: caching  6: TTimeRange { 1: from  2: to }
//!         7: filter  11: reversed  15: limit  18: filter in HBase's own form }
//! ```

use bytes::Bytes;
use hqueue_protocol::wire::binary::Binary;
use hqueue_protocol::wire::{Encode, Kind};

/// What is wanted of each row: a family, or one column of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'a> {
    pub(crate) family: &'a [u8],
    pub(crate) qualifier: Option<&'a [u8]>,
}

/// What is wanted of each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Whole,
    /// Nothing: for counting.
    None,
    /// Its length, in four bytes (BE).
    Lengths,
}

/// HBase's `KeyOnlyFilter` with lengths for values, which its language of filters cannot say: a protobuf message of its class (1) and
/// of its own message (2), which has one flag (1).
const LENGTHS: &[u8] = b"\x0a\x2corg.apache.hadoop.hbase.filter.KeyOnlyFilter\x12\x02\x08\x01";

/// What to scan.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) start: &'a [u8],
    /// Not scanned itself.
    pub(crate) stop: &'a [u8],
    pub(crate) columns: &'a [Column<'a>],
    /// Cells that are older are passed over. Milliseconds.
    pub(crate) not_before_ms: Option<i64>,
    pub(crate) values: Values,
    pub(crate) limit: u32,
    /// From `start` down to `stop`, which is not scanned itself.
    pub(crate) reversed: bool,
}

impl Scan<'_> {
    pub(crate) const METHOD: &'static str = "getScannerResults";

    /// Arguments that have HBase open the scanner, give up to `limit` rows and close it.
    pub(crate) fn args(&self, table: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(200);
        let limit = self.limit.into();
        Binary::write_field(&mut out, Kind::String, 1, 0);
        Binary::write_string(&mut out, table);
        Binary::write_field(&mut out, Kind::Struct, 2, 1);
        for (id, row) in [(1, self.start), (2, self.stop)] {
            Binary::write_field(&mut out, Kind::String, id, 0);
            Binary::write_string(&mut out, row);
        }
        self.write_columns(&mut out);
        Binary::write_field(&mut out, Kind::I32, 4, 3);
        Binary::write_number(&mut out, Kind::I32, limit);
        if let Some(from) = self.not_before_ms {
            Binary::write_field(&mut out, Kind::Struct, 6, 4);
            for (id, time) in [(1, from.max(0)), (2, i64::MAX)] {
                Binary::write_field(&mut out, Kind::I64, id, 0);
                Binary::write_number(&mut out, Kind::I64, time);
            }
            Binary::write_end(&mut out);
        }
        match self.values {
            Values::Whole => {}
            Values::None => {
                Binary::write_field(&mut out, Kind::String, 7, 4);
                Binary::write_string(&mut out, b"KeyOnlyFilter()");
            }
            Values::Lengths => {
                Binary::write_field(&mut out, Kind::String, 18, 4);
                Binary::write_string(&mut out, LENGTHS);
            }
        }
        if self.reversed {
            Binary::write_bool_field(&mut out, true, 11, 7);
        }
        Binary::write_field(&mut out, Kind::I32, 15, 7);
        Binary::write_number(&mut out, Kind::I32, limit);
        Binary::write_end(&mut out);
        Binary::write_field(&mut out, Kind::I32, 3, 2);
        Binary::write_number(&mut out, Kind::I32, limit);
        Binary::write_end(&mut out);
        out.into()
    }

    fn write_columns(&self, out: &mut Vec<u8>) {
        Binary::write_field(out, Kind::List, 3, 2);
        Binary::write_list(out, Kind::Struct, u32::try_from(self.columns.len()).unwrap_or(u32::MAX));
        for column in self.columns {
            Binary::write_field(out, Kind::String, 1, 0);
            Binary::write_string(out, column.family);
            if let Some(qualifier) = column.qualifier {
                Binary::write_field(out, Kind::String, 2, 1);
                Binary::write_string(out, qualifier);
            }
            Binary::write_end(out);
        }
    }
}

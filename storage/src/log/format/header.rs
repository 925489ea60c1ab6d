//! The header of a segment file. It is durable before the first block is written and before the file has the name of a segment.
//!
//! ```text
//! offset bytes
//!      0     8  magic "HQSEGM2\n": the 2 is the version
//!      8     4  CRC32C of bytes 12 to 127
//!     12     4  CRC32C of the table
//!     16    16  uid of the queue
//!     32     8  epoch
//!     40     8  when it was made, ms since 1970 UTC
//!     48     8  offset of the first block
//!     56     8  epoch of the segment before; 0: there is none
//!     64     8  offset at which the blocks of the segment before end
//!     72     8  arrival of the last block before this segment, ms since 1970 UTC
//!     80     8  segments of a lower epoch are gone
//!     88     8  epoch and
//!     96     8  offset of the last block that arrived, by the clock, before its predecessor; 0: there is none
//!    104     8  length of the file when it came into this use: what lies below may be bytes of an earlier one
//!    112     4  entries of the table
//!    116    12  zeros
//!    128     …  the table of partitions, those without a message ever left out
//!      …     …  zeros up to the first block, at a multiple of 4096
//! ```

use uuid::Uuid;

use super::bytes::Taker;
use super::table::{ENTRY_LEN, PartitionMark};

const MAGIC: [u8; 8] = *b"HQSEGM2\n";

/// Bytes before the table.
pub(in crate::log) const FIXED_LEN: usize = 128;

/// Blocks begin at a multiple of it; what disks write at once.
pub(in crate::log) const PAGE: u64 = 4096;

/// No header is longer: that of 32,767 partitions fits. Bytes.
pub(in crate::log) const MAX_LEN: u64 = 2 << 20;

/// Before the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct SegmentHeader {
    pub(in crate::log) uid: Uuid,
    pub(in crate::log) epoch: u64,
    pub(in crate::log) created_ms: i64,
    /// Set by [`SegmentHeader::encode`].
    pub(in crate::log) data_start: u64,
    pub(in crate::log) previous: Option<Previous>,
    /// Segments of a lower epoch are gone.
    pub(in crate::log) floor_epoch: u64,
    /// Where the clock last stepped back.
    pub(in crate::log) last_step: LogPosition,
    /// Bytes of the file below may be of an earlier use.
    pub(in crate::log) used_len: u64,
    /// Set by [`SegmentHeader::encode`].
    pub(in crate::log) partitions: u32,
    table_crc: u32,
}

/// How the segment before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Previous {
    pub(in crate::log) epoch: u64,
    pub(in crate::log) end: u64,
    pub(in crate::log) last_arrival_ms: i64,
}

/// A place in the log of a queue. Zero lies before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::log) struct LogPosition {
    pub(in crate::log) epoch: u64,
    pub(in crate::log) offset: u64,
}

impl SegmentHeader {
    /// A header of what is not told by the table.
    pub(in crate::log) fn new(uid: Uuid, epoch: u64, created_ms: i64, previous: Option<Previous>, floor_epoch: u64) -> Self {
        let (last_step, used_len) = (LogPosition::default(), 0);
        let (data_start, partitions, table_crc) = (0, 0, 0);
        Self { uid, epoch, created_ms, data_start, previous, floor_epoch, last_step, used_len, partitions, table_crc }
    }

    /// The whole header up to the first block, with the marks of `partitions` in their order.
    pub(in crate::log) fn encode(&mut self, partitions: impl Iterator<Item = (i16, PartitionMark)>) -> Vec<u8> {
        let mut out = vec![0; FIXED_LEN];
        self.partitions = 0;
        for (partition, mark) in partitions {
            mark.encode(partition, &mut out);
            self.partitions += 1;
        }
        self.table_crc = crc32c::crc32c(out.get(FIXED_LEN..).unwrap_or_default());
        self.data_start = (out.len() as u64).next_multiple_of(PAGE);
        out.resize(usize::try_from(self.data_start).unwrap_or(usize::MAX), 0);
        let fixed = self.encode_fixed();
        if let Some(place) = out.get_mut(..FIXED_LEN) {
            place.copy_from_slice(&fixed);
        }
        out
    }

    fn encode_fixed(&self) -> Vec<u8> {
        let previous = self.previous.unwrap_or(Previous { epoch: 0, end: 0, last_arrival_ms: 0 });
        let mut rest = self.table_crc.to_be_bytes().to_vec();
        rest.extend_from_slice(self.uid.as_bytes());
        for number in [self.epoch, self.created_ms.cast_unsigned(), self.data_start, previous.epoch, previous.end] {
            rest.extend_from_slice(&number.to_be_bytes());
        }
        rest.extend_from_slice(&previous.last_arrival_ms.to_be_bytes());
        rest.extend_from_slice(&self.floor_epoch.to_be_bytes());
        rest.extend_from_slice(&self.last_step.epoch.to_be_bytes());
        rest.extend_from_slice(&self.last_step.offset.to_be_bytes());
        rest.extend_from_slice(&self.used_len.to_be_bytes());
        rest.extend_from_slice(&self.partitions.to_be_bytes());
        rest.resize(FIXED_LEN - 12, 0);
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&crc32c::crc32c(&rest).to_be_bytes());
        out.extend_from_slice(&rest);
        out
    }

    /// Reads what stands before the table. `None` if it is damaged, or none.
    pub(in crate::log) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut taker = Taker(bytes.get(..FIXED_LEN)?);
        let (magic, crc) = (taker.take::<8>()?, taker.u32()?);
        if magic != MAGIC || crc != crc32c::crc32c(taker.0) {
            return None;
        }
        let table_crc = taker.u32()?;
        let uid = Uuid::from_bytes(taker.take()?);
        let (epoch, created_ms, data_start) = (taker.u64()?, taker.i64()?, taker.u64()?);
        let previous = Previous { epoch: taker.u64()?, end: taker.u64()?, last_arrival_ms: taker.i64()? };
        let found = Self {
            uid,
            epoch,
            created_ms,
            data_start,
            previous: (previous.epoch != 0).then_some(previous),
            floor_epoch: taker.u64()?,
            last_step: LogPosition { epoch: taker.u64()?, offset: taker.u64()? },
            used_len: taker.u64()?,
            partitions: taker.u32()?,
            table_crc,
        };
        (found.table_end() <= found.data_start && found.data_start <= MAX_LEN).then_some(found)
    }

    fn table_end(&self) -> u64 {
        FIXED_LEN as u64 + u64::from(self.partitions) * ENTRY_LEN as u64
    }

    /// Bytes of the table, which begins at [`FIXED_LEN`].
    pub(in crate::log) fn table_len(&self) -> usize {
        usize::try_from(self.partitions).unwrap_or(usize::MAX).saturating_mul(ENTRY_LEN)
    }

    fn is_table(&self, table: &[u8]) -> bool {
        table.len() == self.table_len() && crc32c::crc32c(table) == self.table_crc
    }

    /// Reads what the table says of one partition, without the thousands of others. `None` if the table is damaged.
    pub(in crate::log) fn decode_entry(&self, table: &[u8], partition: i16) -> Option<PartitionMark> {
        if !self.is_table(table) {
            return None;
        }
        let (entries, _) = table.as_chunks::<ENTRY_LEN>();
        let of = |entry: &[u8; ENTRY_LEN]| Taker(entry).i16();
        match entries.binary_search_by_key(&Some(partition), of) {
            Ok(n) => PartitionMark::decode(&mut Taker(entries.get(n)?)).map(|(_, mark)| mark),
            Err(_) => Some(PartitionMark::default()),
        }
    }

    /// Reads the table. `None` if it is damaged.
    pub(in crate::log) fn decode_table(&self, table: &[u8]) -> Option<Vec<(i16, PartitionMark)>> {
        if !self.is_table(table) {
            return None;
        }
        table.chunks_exact(ENTRY_LEN).map(|entry| PartitionMark::decode(&mut Taker(entry))).collect()
    }
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::id::MessageId;
    use proptest::prelude::*;

    use super::super::table::Trim;
    use super::*;
    use crate::store::{Committed, MissingReason};

    fn mark(n: u64) -> PartitionMark {
        let id = |n: u64| (!n.is_multiple_of(3)).then(|| MessageId::new(n as i64 & i64::MAX, n as i16));
        PartitionMark {
            committed: Committed { last: id(n), next_number: n },
            bytes: n.wrapping_mul(7),
            trim: Trim {
                number: n / 2,
                last: id(n / 2),
                bytes: n.wrapping_mul(3),
                why: [MissingReason::Expired, MissingReason::Truncated, MissingReason::Dropped][n as usize % 3],
            },
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            ids: (u128, u64, i64), previous in proptest::option::of((1..u64::MAX, any::<u64>(), any::<i64>())),
            rest: (u64, u64, u64, u64), marks in proptest::collection::btree_map(0..i16::MAX, any::<u64>(), 0..200),
        ) {
            let previous = previous.map(|(epoch, end, last_arrival_ms)| Previous { epoch, end, last_arrival_ms });
            let mut header = SegmentHeader::new(Uuid::from_u128(ids.0), ids.1, ids.2, previous, rest.0);
            header.used_len = rest.1;
            header.last_step = LogPosition { epoch: rest.2, offset: rest.3 };
            let marks: Vec<_> = marks.into_iter().map(|(partition, n)| (partition, mark(n))).collect();
            let bytes = header.encode(marks.iter().copied());
            prop_assert_eq!(bytes.len() as u64, header.data_start);
            prop_assert_eq!(header.data_start % PAGE, 0);
            let found = SegmentHeader::decode(&bytes).unwrap();
            prop_assert_eq!(found, header);
            let table = &bytes[FIXED_LEN..][..found.table_len()];
            for partition in marks.iter().flat_map(|(p, _)| [*p, p.wrapping_add(1)]) {
                let wanted = marks.iter().find(|(p, _)| *p == partition).map(|(_, mark)| *mark).unwrap_or_default();
                prop_assert_eq!(found.decode_entry(table, partition), Some(wanted));
            }
            prop_assert_eq!(found.decode_table(table), Some(marks));
        }

        #[test]
        fn a_changed_bit_is_found(at in 0..FIXED_LEN + 3 * ENTRY_LEN, bit in 0..8) {
            let mut header = SegmentHeader::new(Uuid::from_u128(1), 2, 3, None, 0);
            let mut bytes = header.encode((0..3).map(|p| (p, mark(p as u64))));
            bytes[at] ^= 1u8 << bit;
            let table = |h: SegmentHeader| h.decode_table(&bytes[FIXED_LEN..][..h.table_len()]);
            prop_assert!(SegmentHeader::decode(&bytes).is_none_or(|h| table(h).is_none()));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = SegmentHeader::decode(&bytes);
        }
    }

    #[test]
    fn the_header_of_every_partition_fits() {
        let mut header = SegmentHeader::new(Uuid::nil(), 1, 0, None, 0);
        let bytes = header.encode((0..i16::MAX).map(|p| (p, mark(1))));
        assert!(bytes.len() as u64 <= MAX_LEN, "{}", bytes.len());
        assert!(SegmentHeader::decode(&bytes).is_some());
    }
}

//! What has to last although all rows of a partition may go: one row of the table `hqueue:partitions`.
//!
//! ```text
//! row         incarnation of the queue's table (16 bytes)  partition (2 bytes BE)
//! s:s         1  version
//!             1  flags: 1 clean, 2 there is a last id, 4 something was truncated, 8 arrivals are out of order
//!             8 + 2  last id              8  number of the next message     8  bytes of all messages so far
//!             4  largest message          8  latest arrival
//!             8 + 2  out of order up to   8 + 2 + 8  truncated up to, number behind it
//!             1  steps of expiry, each 8 + 2 + 8: up to which id, what arrived before when
//! ```
//! All numbers are big-endian. The cell's timestamp rises with every writing of a partition, over owners too (it is taken from ids). Each
//! owner writes a record before its first row, with a far higher one, so that a record of a former owner that comes late changes nothing.
//!
//! **Clean** says that nothing was written behind the last id: it is taken back before the first row of an owner, and given when it ends
//! with every write answered. Without it, or without a record, the rows behind the last id are looked for, and counted.

use hqueue_protocol::id::MessageId;
use uuid::Uuid;

use super::gone::{Expired, Gone, Truncated};

const VERSION: u8 = 1;
const CLEAN: u8 = 1;
const HAS_LAST: u8 = 2;
const HAS_TRUNCATED: u8 = 4;
const HAS_DISORDER: u8 = 8;

/// Family and qualifier of the record.
pub(super) const FAMILY: &[u8] = b"s";
pub(super) const QUALIFIER: &[u8] = b"s";

/// What is known of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) clean: bool,
    pub(super) last: Option<MessageId>,
    pub(super) next_number: u64,
    pub(super) bytes: u64,
    pub(super) largest: u32,
    pub(super) latest_arrival_ms: i64,
    /// Below this id arrivals are not in order.
    pub(super) disordered_to: Option<MessageId>,
    pub(super) gone: Gone,
}

/// The row of a partition.
pub(super) fn key(incarnation: Uuid, partition: i16) -> Vec<u8> {
    [&incarnation.as_bytes()[..], &partition.to_be_bytes()].concat()
}

/// The partition of a row.
pub(super) fn partition_of(key: &[u8]) -> Option<i16> {
    let (_, partition) = key.split_at_checked(16)?;
    Some(i16::from_be_bytes(partition.try_into().ok()?))
}

fn put_id(out: &mut Vec<u8>, id: MessageId) {
    out.extend_from_slice(&id.timestamp.to_be_bytes());
    out.extend_from_slice(&id.sequence.to_be_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    fn id(&mut self) -> Option<MessageId> {
        let timestamp = self.i64()?;
        Some(MessageId::new(timestamp, self.take().map(i16::from_be_bytes)?))
    }
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut flags = if self.clean { CLEAN } else { 0 };
        for (is_there, flag) in [
            (self.last.is_some(), HAS_LAST),
            (self.gone.truncated.is_some(), HAS_TRUNCATED),
            (self.disordered_to.is_some(), HAS_DISORDER),
        ] {
            flags |= if is_there { flag } else { 0 };
        }
        let mut out = vec![VERSION, flags];
        put_id(&mut out, self.last.unwrap_or(MessageId::MIN));
        out.extend_from_slice(&self.next_number.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.largest.to_be_bytes());
        out.extend_from_slice(&self.latest_arrival_ms.to_be_bytes());
        put_id(&mut out, self.disordered_to.unwrap_or(MessageId::MIN));
        let truncated = self.gone.truncated.unwrap_or(Truncated { to: MessageId::MIN, number: 0 });
        put_id(&mut out, truncated.to);
        out.extend_from_slice(&truncated.number.to_be_bytes());
        out.push(u8::try_from(self.gone.expired.len()).unwrap_or(u8::MAX));
        for step in &self.gone.expired {
            put_id(&mut out, step.to);
            out.extend_from_slice(&step.before_ms.to_be_bytes());
        }
        out
    }

    /// `None`: this is no record, or one of a later version.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        if from.u8()? != VERSION {
            return None;
        }
        let flags = from.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let last = from.id()?;
        let (next_number, bytes) = (from.u64()?, from.u64()?);
        let largest = from.take().map(u32::from_be_bytes)?;
        let latest_arrival_ms = from.i64()?;
        let disordered_to = from.id()?;
        let truncated = Truncated { to: from.id()?, number: from.u64()? };
        let steps = from.u8()?;
        let step = |from: &mut Reader<'_>| Some(Expired { to: from.id()?, before_ms: from.i64()? });
        let expired = (0..steps).map(|_| step(&mut from)).collect::<Option<_>>()?;
        Some(Self {
            clean: has(CLEAN),
            last: has(HAS_LAST).then_some(last),
            next_number,
            bytes,
            largest,
            latest_arrival_ms,
            disordered_to: has(HAS_DISORDER).then_some(disordered_to),
            gone: Gone { truncated: has(HAS_TRUNCATED).then_some(truncated), expired },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_go_both_ways() {
        let id = |ms| MessageId::new(ms, 9);
        let mut gone = Gone { truncated: Some(Truncated { to: id(3), number: 4 }), expired: Vec::new() };
        gone.note_expired(id(10), 500);
        gone.note_expired(id(20), 50);
        let full = Record {
            clean: true,
            last: Some(id(77)),
            next_number: 1 << 50,
            bytes: 1 << 60,
            largest: 4 << 20,
            latest_arrival_ms: 1_700_000_000_000,
            disordered_to: Some(id(5)),
            gone,
        };
        for record in [full, Record::default()] {
            let bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            (0..bytes.len()).for_each(|cut| assert_eq!(Record::decode(&bytes[..cut]), None));
        }
    }

    #[test]
    fn rows_name_their_partition() {
        let key = key(Uuid::new_v4(), 258);
        assert_eq!((key.len(), partition_of(&key)), (18, Some(258)));
        assert_eq!(partition_of(b"short"), None);
    }
}

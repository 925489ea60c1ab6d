//! What a segment's header says of the partitions, as they were when the segment began.
//!
//! ```text
//! an entry, in the order of partitions:
//!      0     2  partition
//!      2     8  running number of the next message
//!     10     8  bytes of all its messages so far
//!     18    10  last id; timestamp -1: there never was a message
//!     28     8  trim: messages with a lower number are gone
//!     36    10  the last id that is gone; timestamp -1: none
//!     46     8  bytes of all messages that are gone
//!     54     1  why: 0 expired, 1 truncated, 2 dropped to make room
//! ```

use hqueue_protocol::id::MessageId;

use super::bytes::{Taker, put_id};
use crate::store::{Committed, MissingReason};

/// Bytes of an entry.
pub(in crate::log) const ENTRY_LEN: usize = 55;

/// A partition at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::log) struct PartitionMark {
    pub(in crate::log) committed: Committed,
    /// Bytes of all messages that were ever committed.
    pub(in crate::log) bytes: u64,
    pub(in crate::log) trim: Trim,
}

/// The front of a partition that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Trim {
    /// Messages with a lower running number are gone.
    pub(in crate::log) number: u64,
    /// The highest id among them.
    pub(in crate::log) last: Option<MessageId>,
    /// Bytes of all of them.
    pub(in crate::log) bytes: u64,
    pub(in crate::log) why: MissingReason,
}

impl Default for Trim {
    fn default() -> Self {
        Self { number: 0, last: None, bytes: 0, why: MissingReason::Expired }
    }
}

impl PartitionMark {
    /// Bytes of the messages that are there.
    pub(in crate::log) fn live_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.trim.bytes)
    }

    pub(in crate::log) fn encode(&self, partition: i16, out: &mut Vec<u8>) {
        out.extend_from_slice(&partition.to_be_bytes());
        out.extend_from_slice(&self.committed.next_number.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        put_id(out, self.committed.last.unwrap_or(NONE));
        self.trim.encode(out);
    }

    pub(in crate::log) fn decode(taker: &mut Taker<'_>) -> Option<(i16, Self)> {
        let partition = taker.i16()?;
        let next_number = taker.u64()?;
        let bytes = taker.u64()?;
        let last = some_id(taker.id()?);
        Some((partition, Self { committed: Committed { last, next_number }, bytes, trim: Trim::decode(taker)? }))
    }
}

impl Trim {
    pub(in crate::log) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_be_bytes());
        put_id(out, self.last.unwrap_or(NONE));
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.push(match self.why {
            MissingReason::Expired | MissingReason::Damaged => 0,
            MissingReason::Truncated => 1,
            MissingReason::Dropped => 2,
        });
    }

    pub(in crate::log) fn decode(taker: &mut Taker<'_>) -> Option<Self> {
        let number = taker.u64()?;
        let last = some_id(taker.id()?);
        let bytes = taker.u64()?;
        let why = match taker.u8()? {
            1 => MissingReason::Truncated,
            2 => MissingReason::Dropped,
            _ => MissingReason::Expired,
        };
        Some(Self { number, last, bytes, why })
    }
}

const NONE: MessageId = MessageId::new(-1, 0);

fn some_id(id: MessageId) -> Option<MessageId> {
    (id != NONE).then_some(id)
}

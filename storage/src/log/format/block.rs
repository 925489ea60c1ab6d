//! A block: what one partition contributed to one group.
//!
//! ```text
//! offset bytes
//!      0     4  magic "HQB1"
//!      4     4  CRC32C of the place (queue uid, segment epoch, offset of the block in its file) and of bytes 8 to the body
//!      8     8  epoch of the segment
//!     16     1  kind: 1 messages, 2 control record
//!     17     1  flags: bit 0, the topics are noted
//!     18     2  length of this header: here the body begins
//!     20     4  length of the body
//!     24     4  CRC32C of the body
//!     28     4  distance from the first block of the group, in bytes
//!     32     8  number of the group: rises with every group that was tried to be written
//!     40     2  partition; -1 in control records
//!     42     4  messages
//!     46     8  running number of the first message
//!     54     8  bytes of all earlier blocks' bodies of the partition
//!     62    10  first id: timestamp, sequence
//!     72    10  last id
//!     82     8  arrival, ms since 1970 UTC
//!     90     …  topics, if they are noted: how many (1), then for each its length (2), its bytes, its messages (4)
//!      …     …  body: the messages in stored form, or the control record
//! ```
//! The place is part of the first CRC, so that the bytes of a block pass for one nowhere else: not in another epoch of the file, and
//! not inside a message that happens to carry a copy of a log file.

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{MAX_TOPICS, TopicTable};
use uuid::Uuid;

use super::bytes::{Taker, put_id};
use super::table::Trim;
use crate::store::MissingReason;

pub(in crate::log) const MAGIC: [u8; 4] = *b"HQB1";

/// Bytes of a header without topics.
pub(in crate::log) const FIXED_LEN: usize = 90;

/// No header is longer. Topics that would make it longer are not noted.
pub(in crate::log) const MAX_HEADER_LEN: usize = 8192;

/// Control records belong to no partition.
pub(in crate::log) const NO_PARTITION: i16 = -1;

const TOPICS_NOTED: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) enum Kind {
    Messages,
    Control,
}

/// All of a header but what depends on the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::log) struct BlockHeader {
    pub(in crate::log) kind: Kind,
    pub(in crate::log) header_len: usize,
    pub(in crate::log) body_len: u32,
    pub(in crate::log) body_crc: u32,
    pub(in crate::log) in_group: u32,
    pub(in crate::log) group: u64,
    pub(in crate::log) partition: i16,
    pub(in crate::log) count: u32,
    pub(in crate::log) number: u64,
    pub(in crate::log) bytes_before: u64,
    pub(in crate::log) first: MessageId,
    pub(in crate::log) last: MessageId,
    pub(in crate::log) arrival_ms: i64,
    pub(in crate::log) topics: TopicTable,
}

impl BlockHeader {
    /// Bytes of header and body.
    pub(in crate::log) fn total_len(&self) -> u64 {
        self.header_len as u64 + u64::from(self.body_len)
    }

    /// The running number behind the last message.
    pub(in crate::log) fn end_number(&self) -> u64 {
        self.number.saturating_add(u64::from(self.count))
    }

    /// The front of the partition, if it is gone up to the end of this block.
    pub(in crate::log) fn trim_behind(&self, why: MissingReason) -> Trim {
        let bytes = self.bytes_before.saturating_add(u64::from(self.body_len));
        Trim { number: self.end_number(), last: Some(self.last), bytes, why }
    }
}

/// Which file of which queue, in which of its uses: what every block's CRC begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Place {
    epoch: u64,
    seed: u32,
}

impl Place {
    pub(in crate::log) fn new(uid: Uuid, epoch: u64) -> Self {
        Self { epoch, seed: crc32c::crc32c_append(crc32c::crc32c(uid.as_bytes()), &epoch.to_be_bytes()) }
    }

    fn crc(&self, offset: u64, rest: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.seed, &offset.to_be_bytes()), rest)
    }

    /// Appends the header of a block that will stand at `offset`. `header.header_len` is not used: it follows from the topics.
    pub(in crate::log) fn encode(&self, header: &BlockHeader, offset: u64, out: &mut Vec<u8>) {
        let start = out.len();
        let topics = encode_topics(&header.topics);
        let header_len = FIXED_LEN + topics.as_ref().map_or(0, Vec::len);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.push(match header.kind {
            Kind::Messages => 1,
            Kind::Control => 2,
        });
        out.push(if topics.is_some() { TOPICS_NOTED } else { 0 });
        out.extend_from_slice(&u16::try_from(header_len).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(&header.body_len.to_be_bytes());
        out.extend_from_slice(&header.body_crc.to_be_bytes());
        out.extend_from_slice(&header.in_group.to_be_bytes());
        out.extend_from_slice(&header.group.to_be_bytes());
        out.extend_from_slice(&header.partition.to_be_bytes());
        out.extend_from_slice(&header.count.to_be_bytes());
        out.extend_from_slice(&header.number.to_be_bytes());
        out.extend_from_slice(&header.bytes_before.to_be_bytes());
        put_id(out, header.first);
        put_id(out, header.last);
        out.extend_from_slice(&header.arrival_ms.to_be_bytes());
        out.extend_from_slice(&topics.unwrap_or_default());
        let crc = self.crc(offset, out.get(start + 8..).unwrap_or_default());
        if let Some(place) = out.get_mut(start + 4..start + 8) {
            place.copy_from_slice(&crc.to_be_bytes());
        }
    }

    /// Reads the header of the block at `offset`; `bytes` begin there and may go on behind it.
    pub(in crate::log) fn decode(&self, bytes: &[u8], offset: u64) -> Decoded {
        let Some(header_len) = self.claimed_len(bytes) else { return Decoded::NoBlock };
        let Some(all) = bytes.get(..header_len) else { return Decoded::Longer(header_len) };
        decode_all(all, |stored, rest| stored == self.crc(offset, rest)).map_or(Decoded::NoBlock, Decoded::Block)
    }

    /// Of the block at `offset`, only what is needed to pass it: partition (`NO_PARTITION` for control records) and length with its
    /// body. `None` if it is none, or if more bytes are needed to tell.
    pub(in crate::log) fn pass(&self, bytes: &[u8], offset: u64) -> Option<(i16, u64)> {
        let header_len = self.claimed_len(bytes)?;
        let header = bytes.get(..header_len)?;
        let mut taker = Taker(header.get(4..)?);
        if taker.u32()? != self.crc(offset, taker.0) {
            return None;
        }
        let body_len = Taker(header.get(20..)?).u32()?;
        let partition = Taker(header.get(40..)?).i16()?;
        Some((partition, header_len as u64 + u64::from(body_len)))
    }

    /// Do these bytes begin like a block of this epoch, whatever their CRC says?
    pub(in crate::log) fn looks_like_block(&self, bytes: &[u8]) -> bool {
        self.claimed_len(bytes).is_some()
    }

    fn claimed_len(&self, bytes: &[u8]) -> Option<usize> {
        let mut taker = Taker(bytes);
        let magic = taker.take::<4>()?;
        taker.u32()?;
        let epoch = taker.u64()?;
        taker.u16()?;
        let header_len = usize::from(taker.u16()?);
        let is_one = magic == MAGIC && epoch == self.epoch && (FIXED_LEN..=MAX_HEADER_LEN).contains(&header_len);
        is_one.then_some(header_len)
    }
}

/// What stands at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::log) enum Decoded {
    Block(BlockHeader),
    /// So many bytes are needed to tell.
    Longer(usize),
    /// No block of this place, or a damaged one.
    NoBlock,
}

fn decode_all(all: &[u8], crc_fits: impl FnOnce(u32, &[u8]) -> bool) -> Option<BlockHeader> {
    let mut taker = Taker(all);
    taker.take::<4>()?;
    let crc = taker.u32()?;
    if !crc_fits(crc, taker.0) {
        return None;
    }
    taker.u64()?;
    let kind = match taker.u8()? {
        1 => Kind::Messages,
        2 => Kind::Control,
        _ => return None,
    };
    let flags = taker.u8()?;
    let header_len = usize::from(taker.u16()?);
    let header = BlockHeader {
        kind,
        header_len,
        body_len: taker.u32()?,
        body_crc: taker.u32()?,
        in_group: taker.u32()?,
        group: taker.u64()?,
        partition: taker.i16()?,
        count: taker.u32()?,
        number: taker.u64()?,
        bytes_before: taker.u64()?,
        first: taker.id()?,
        last: taker.id()?,
        arrival_ms: taker.i64()?,
        topics: if flags & TOPICS_NOTED == 0 { TopicTable::Many } else { decode_topics(&mut taker)? },
    };
    Some(header)
}

/// Bytes of the header of a block with these topics.
pub(in crate::log) fn header_len(topics: &TopicTable) -> usize {
    FIXED_LEN + topics_len(topics).unwrap_or(0)
}

/// Bytes of the topics in a header; `None` if they are not noted: too many, or too long ones.
fn topics_len(topics: &TopicTable) -> Option<usize> {
    let TopicTable::Few(known) = topics else { return None };
    let len = 1 + known.iter().map(|(topic, _)| 2 + topic.len() + 4).sum::<usize>();
    (FIXED_LEN + len <= MAX_HEADER_LEN && known.len() <= MAX_TOPICS).then_some(len)
}

/// `None` if they are not noted.
fn encode_topics(topics: &TopicTable) -> Option<Vec<u8>> {
    let TopicTable::Few(known) = topics else { return None };
    let mut out = Vec::with_capacity(topics_len(topics)?);
    out.push(u8::try_from(known.len()).ok()?);
    for (topic, count) in known {
        out.extend_from_slice(&u16::try_from(topic.len()).ok()?.to_be_bytes());
        out.extend_from_slice(topic);
        out.extend_from_slice(&count.to_be_bytes());
    }
    Some(out)
}

fn decode_topics(taker: &mut Taker<'_>) -> Option<TopicTable> {
    let count = usize::from(taker.u8()?);
    if count > MAX_TOPICS {
        return None;
    }
    let mut known: Vec<(Box<[u8]>, u32)> = Vec::with_capacity(count);
    for _ in 0..count {
        let len = usize::from(taker.u16()?);
        known.push((taker.slice(len)?.into(), taker.u32()?));
    }
    Some(TopicTable::Few(known))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> Place {
        Place::new(Uuid::from_u128(7), 3)
    }

    fn topic_tables() -> impl Strategy<Value = TopicTable> {
        let topic = (proptest::collection::vec(any::<u8>(), 1..256), any::<u32>());
        let few = proptest::collection::vec(topic, 0..=MAX_TOPICS)
            .prop_map(|known| TopicTable::Few(known.into_iter().map(|(topic, n)| (topic.into(), n)).collect()));
        prop_oneof![4 => few, 1 => Just(TopicTable::Many)]
    }

    fn headers() -> impl Strategy<Value = BlockHeader> {
        let kind = prop_oneof![Just(Kind::Messages), Just(Kind::Control)];
        let lens = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u64>());
        let run = (any::<i16>(), any::<u32>(), any::<u64>(), any::<u64>());
        let ids = (any::<i64>(), any::<i16>(), any::<i64>(), any::<i16>(), any::<i64>());
        (kind, lens, run, ids, topic_tables()).prop_map(|(kind, lens, run, ids, topics)| BlockHeader {
            kind,
            header_len: header_len(&topics),
            body_len: lens.0,
            body_crc: lens.1,
            in_group: lens.2,
            group: lens.3,
            partition: run.0,
            count: run.1,
            number: run.2,
            bytes_before: run.3,
            first: MessageId::new(ids.0, ids.1),
            last: MessageId::new(ids.2, ids.3),
            arrival_ms: ids.4,
            topics,
        })
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded_at_its_place_and_nowhere_else(header in headers(), offset: u64, other: u64, behind: Vec<u8>) {
            let mut bytes = Vec::new();
            place().encode(&header, offset, &mut bytes);
            prop_assert_eq!(bytes.len(), header.header_len);
            bytes.extend_from_slice(&behind);
            prop_assert_eq!(place().pass(&bytes, offset), Some((header.partition, header.total_len())));
            prop_assert_eq!(place().decode(&bytes, offset), Decoded::Block(header));
            prop_assume!(other != offset);
            prop_assert_eq!(place().decode(&bytes, other), Decoded::NoBlock);
            prop_assert_eq!(Place::new(Uuid::from_u128(7), 4).decode(&bytes, offset), Decoded::NoBlock);
            prop_assert_eq!(Place::new(Uuid::from_u128(8), 3).decode(&bytes, offset), Decoded::NoBlock);
        }

        #[test]
        fn a_changed_or_cut_header_is_no_block(header in headers(), at: prop::sample::Index, bit in 0..8) {
            let mut bytes = Vec::new();
            place().encode(&header, 0, &mut bytes);
            let at = at.index(bytes.len());
            prop_assert!(!matches!(place().decode(&bytes[..at], 0), Decoded::Block(_)));
            bytes[at] ^= 1u8 << bit;
            prop_assert!(!matches!(place().decode(&bytes, 0), Decoded::Block(_)));
            prop_assert_eq!(place().pass(&bytes, 0), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(mut bytes: Vec<u8>, offset: u64) {
            let _ = place().decode(&bytes, offset);
            bytes.splice(0..0, MAGIC);
            let _ = place().decode(&bytes, offset);
            let _ = decode_all(&bytes, |_, _| true);
        }
    }

    #[test]
    fn topics_too_long_to_note_are_not_noted() {
        let long = TopicTable::Few(vec![(vec![1; 9000].into(), 1)]);
        assert_eq!(encode_topics(&long), None);
    }
}

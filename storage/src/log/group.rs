//! A group: what has gathered for one write, as blocks.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::BytesMut;
use hqueue_protocol::stored::{StoredSlice, TopicTable};

use super::format::block::{BlockHeader, FIXED_LEN, Kind, NO_PARTITION, Place, header_len};
use super::format::header::LogPosition;
use super::intake::WaitingPart;
use super::segment::SegmentIndex;
use crate::disk::zeros;
use crate::store::Block;

/// No batch is added to a block that has so many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Shorter batches are put together, so that a thousand small puts do not keep a thousand small pieces of memory.
const SMALL_BYTES: usize = 4096;

/// Some blocks in the order in which they stand on the disk, and their bytes around the messages.
#[derive(Debug, Default)]
pub(super) struct Group {
    blocks: Vec<GroupBlock>,
    headers: Vec<u8>,
    len: u64,
}

#[derive(Debug)]
struct GroupBlock {
    header: BlockHeader,
    header_end: usize,
    at: LogPosition,
    /// `None` for a control record.
    block: Option<Arc<Block>>,
    control: Vec<u8>,
}

/// What a partition contributes, before it has a place.
#[derive(Debug)]
pub(super) struct Contribution {
    pub(super) partition: i16,
    count: u32,
    bytes: usize,
    topics: TopicTable,
    parts: Vec<StoredSlice>,
    /// Small batches that follow one another.
    joining: Option<(StoredSlice, BytesMut)>,
}

/// Where a partition stands when a block of it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) number: u64,
    pub(super) bytes_before: u64,
}

/// Puts batches together to blocks: those of one partition in their order, about 1 MiB a block, no batch divided.
pub(super) fn contributions(mut waiting: Vec<WaitingPart>) -> (Vec<Contribution>, Vec<super::intake::Answer>) {
    // Stable: the order within a partition stays.
    waiting.sort_by_key(|part| part.partition);
    let mut made: Vec<Contribution> = Vec::new();
    let mut answers = Vec::with_capacity(waiting.len());
    for part in waiting {
        answers.push(part.answer);
        match made.last_mut() {
            Some(open) if open.partition == part.partition && open.bytes < BLOCK_BYTES => open.add(part.slice, &part.topics),
            _ => {
                let mut open = Contribution::new(part.partition);
                open.add(part.slice, &part.topics);
                made.push(open);
            }
        }
    }
    made.iter_mut().for_each(Contribution::end_joining);
    (made, answers)
}

impl Contribution {
    fn new(partition: i16) -> Self {
        Self { partition, count: 0, bytes: 0, topics: TopicTable::default(), parts: Vec::new(), joining: None }
    }

    fn add(&mut self, slice: StoredSlice, topics: &TopicTable) {
        self.count += slice.count;
        self.bytes += slice.bytes.len();
        self.topics.merge(topics);
        if slice.bytes.len() >= SMALL_BYTES {
            self.end_joining();
            self.parts.push(slice);
            return;
        }
        match &mut self.joining {
            Some((run, bytes)) => {
                bytes.extend_from_slice(&slice.bytes);
                run.count += slice.count;
                run.last = slice.last;
            }
            None => {
                let bytes = BytesMut::from(&slice.bytes[..]);
                self.joining = Some((slice, bytes));
            }
        }
    }

    fn end_joining(&mut self) {
        if let Some((run, bytes)) = self.joining.take() {
            self.parts.push(StoredSlice { bytes: bytes.freeze(), ..run });
        }
    }

    /// Bytes on the disk.
    pub(super) fn disk_len(&self) -> u64 {
        (header_len(&self.topics) + self.bytes) as u64
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn byte_len(&self) -> usize {
        self.bytes
    }
}

impl Group {
    /// Adds a block at the end of the group, which begins at `start`.
    pub(super) fn add(
        &mut self,
        place: &Place,
        start: LogPosition,
        made: Contribution,
        standing: Standing,
        arrival_ms: i64,
        group: u64,
    ) {
        let (Some(first), Some(last)) = (made.parts.first().map(|p| p.first), made.parts.last().map(|p| p.last)) else { return };
        let body_crc = made.parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, &part.bytes));
        let header = BlockHeader {
            kind: Kind::Messages,
            header_len: header_len(&made.topics),
            body_len: u32::try_from(made.bytes).unwrap_or(u32::MAX),
            body_crc,
            in_group: 0,
            group,
            partition: made.partition,
            count: made.count,
            number: standing.number,
            bytes_before: standing.bytes_before,
            first,
            last,
            arrival_ms,
            topics: made.topics.clone(),
        };
        let block = Block {
            partition: made.partition,
            number: standing.number,
            arrival_ms,
            first,
            last,
            count: made.count,
            topics: made.topics,
            parts: made.parts,
        };
        self.push(place, start, header, Some(Arc::new(block)), Vec::new());
    }

    /// Adds a control record.
    pub(super) fn add_control(&mut self, place: &Place, start: LogPosition, body: Vec<u8>, arrival_ms: i64, group: u64) {
        let id = hqueue_protocol::id::MessageId::MIN;
        let header = BlockHeader {
            kind: Kind::Control,
            header_len: FIXED_LEN,
            body_len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            body_crc: crc32c::crc32c(&body),
            in_group: 0,
            group,
            partition: NO_PARTITION,
            count: 0,
            number: 0,
            bytes_before: 0,
            first: id,
            last: id,
            arrival_ms,
            topics: TopicTable::Many,
        };
        self.push(place, start, header, None, body);
    }

    fn push(&mut self, place: &Place, start: LogPosition, header: BlockHeader, block: Option<Arc<Block>>, control: Vec<u8>) {
        let in_group = self.len;
        self.len += header.total_len();
        let header = BlockHeader { in_group: u32::try_from(in_group).unwrap_or(u32::MAX), ..header };
        let at = LogPosition { offset: start.offset + in_group, ..start };
        place.encode(&header, at.offset, &mut self.headers);
        self.blocks.push(GroupBlock { header, header_end: self.headers.len(), at, block, control });
    }

    /// Gives all blocks another place.
    pub(super) fn move_to(&mut self, place: &Place, start: LogPosition) {
        self.headers.clear();
        for entry in &mut self.blocks {
            entry.at = LogPosition { offset: start.offset + u64::from(entry.header.in_group), ..start };
            place.encode(&entry.header, entry.at.offset, &mut self.headers);
            entry.header_end = self.headers.len();
        }
    }

    /// Bytes on the disk.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// All bytes in order, and behind them `padding` zeros.
    pub(super) fn slices(&self, padding: u64) -> Vec<IoSlice<'_>> {
        let parts: usize = self.blocks.iter().map(|b| 2 + b.block.as_ref().map_or(0, |block| block.parts.len())).sum();
        let mut slices = Vec::with_capacity(parts + 1);
        let mut header_start = 0;
        for entry in &self.blocks {
            slices.push(IoSlice::new(self.headers.get(header_start..entry.header_end).unwrap_or_default()));
            header_start = entry.header_end;
            slices.push(IoSlice::new(&entry.control));
            if let Some(block) = &entry.block {
                slices.extend(block.parts.iter().map(|part| IoSlice::new(&part.bytes)));
            }
        }
        slices.extend(zeros(padding));
        slices
    }

    /// The blocks of messages and where they stand.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (&Arc<Block>, LogPosition)> {
        self.blocks.iter().filter_map(|entry| entry.block.as_ref().map(|block| (block, entry.at)))
    }

    /// Notes the blocks in an index.
    pub(super) fn note_in(&self, index: &mut SegmentIndex) {
        self.blocks.iter().filter(|entry| entry.block.is_some()).for_each(|entry| index.note(&entry.header, entry.at));
    }
}

//! Where in a window the blocks of each partition begin, so that of a thousand partitions only the first to come by goes along all
//! blocks.

use super::format::block::Place;
use super::source::WINDOW;

/// The blocks that begin in some stretch of one window.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// A block begins here: what is before is not known.
    start: u64,
    /// What begins here is not known any more: the next window, or something that is no block.
    end: u64,
    /// Partition and offset in the window of each block between, in order.
    blocks: Vec<(i16, u32)>,
}

impl Directory {
    /// Goes along the blocks from `start` on, where one begins. `window` is the window that holds it, `limit` the end of what may be
    /// looked at.
    pub(super) fn build(window: &[u8], place: &Place, start: u64, limit: u64) -> Self {
        let begin = start - start % WINDOW;
        let limit = limit.min(begin + window.len() as u64);
        let mut blocks = Vec::new();
        let mut at = start;
        while at < limit {
            let within = usize::try_from(at - begin).unwrap_or(usize::MAX);
            let Some((partition, len)) = place.pass(window.get(within..).unwrap_or_default(), at) else { break };
            blocks.push((partition, u32::try_from(within).unwrap_or(u32::MAX)));
            at = at.saturating_add(len);
        }
        blocks.sort_unstable();
        blocks.shrink_to_fit();
        Self { start, end: at, blocks }
    }

    /// What is before is not known.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Where a reader of the partition goes on that has come to the block at `offset`: to its next block, or to where the directory
    /// ends. `None` if the directory does not know that place.
    pub(super) fn next(&self, partition: i16, offset: u64) -> Option<u64> {
        if !(self.start..self.end).contains(&offset) {
            return None;
        }
        let within = u32::try_from(offset % WINDOW).ok()?;
        let next = self.blocks.partition_point(|block| *block < (partition, within));
        let found = self.blocks.get(next).filter(|(p, _)| *p == partition);
        Some(found.map_or(self.end, |(_, within)| offset - offset % WINDOW + u64::from(*within)))
    }

    /// Memory in bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.blocks.len() * size_of::<(i16, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::id::MessageId;
    use hqueue_protocol::stored::TopicTable;
    use uuid::Uuid;

    use super::super::format::block::{BlockHeader, Kind};
    use super::*;

    #[test]
    fn a_reader_goes_from_block_to_block_of_its_partition() {
        let place = Place::new(Uuid::nil(), 1);
        let begin = 3 * WINDOW;
        let mut window = vec![0; 1000];
        let mut offsets = Vec::new();
        for n in 0..30_i16 {
            let at = begin + window.len() as u64;
            let id = MessageId::MIN;
            let header = BlockHeader {
                kind: Kind::Messages,
                header_len: 0,
                body_len: 10,
                body_crc: 0,
                in_group: 0,
                group: 1,
                partition: n % 7 % 3,
                count: 1,
                number: 0,
                bytes_before: 0,
                first: id,
                last: id,
                arrival_ms: 0,
                topics: TopicTable::Many,
            };
            place.encode(&header, at, &mut window);
            window.extend_from_slice(&[7; 10]);
            offsets.push((header.partition, at));
        }
        let end = begin + window.len() as u64;
        window.extend_from_slice(b"HQB1 and what is no block");
        let directory = Directory::build(&window, &place, offsets[2].1, u64::MAX);
        for (n, (_, at)) in offsets.iter().enumerate() {
            for partition in 0..4 {
                let next = offsets[n..].iter().find(|(p, _)| *p == partition).map_or(end, |(_, at)| *at);
                assert_eq!(directory.next(partition, *at), (n >= 2).then_some(next));
            }
        }
        assert_eq!(directory.next(0, end), None);
        assert_eq!(Directory::build(&window, &place, offsets[2].1, offsets[9].1).next(5, offsets[2].1), Some(offsets[9].1));
    }
}

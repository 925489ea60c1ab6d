//! The bytes of a journal. Numbers are big-endian.
//!
//! ```text
//! file    = header block*
//!
//! header    0   8  magic "HQJOURN\n"
//!           8   4  version, 1
//!          12   8  epoch: random, another one in each file, so that bytes of another file never pass for ours
//!          20   4  CRC32C of the bytes before
//!
//! block     0   4  magic "HQJB"
//!           4   8  epoch of the file
//!          12   8  number: 0 for the first block, rising by one, so that a block that is missing shows
//!          20   4  count of records
//!          24   4  length of the body in bytes, at most MAX_BATCH_BYTES
//!          28   4  CRC32C of the body
//!          32   4  CRC32C of the bytes before
//!          36   …  body
//!
//! body    = record*
//! record    0   4  length in bytes
//!           4   …  what the caller keeps
//! ```
//! A block is what one append wrote. A block without records says that everything before it is whole: one is written when a journal
//! is opened and one when it is closed.

use std::ops::Range;

/// The records of one append take at most so much, each with 4 bytes for its length. Bytes.
pub const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

pub(super) const FILE_HEADER_LEN: usize = 24;
pub(super) const BLOCK_HEADER_LEN: usize = 36;
const VERSION: u32 = 1;
const FILE_MAGIC: &[u8; 8] = b"HQJOURN\n";
const BLOCK_MAGIC: &[u8; 4] = b"HQJB";

/// Records of one append, in the order in which they come back.
#[derive(Clone, Debug, Default)]
pub struct RecordBatch {
    body: Vec<u8>,
    count: u32,
}

impl RecordBatch {
    /// Adds a record made of `parts`, one behind the other.
    pub fn push(&mut self, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        // A record of 4 GiB makes the batch too large to be appended, whatever its length field says.
        self.body.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        parts.iter().for_each(|part| self.body.extend_from_slice(part));
        self.count += 1;
    }

    /// Bytes that count for [`MAX_BATCH_BYTES`].
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.body.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn clear(&mut self) {
        self.body.clear();
        self.count = 0;
    }

    /// As a block, behind what `out` holds.
    pub(super) fn encode(&self, epoch: u64, number: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(BLOCK_MAGIC);
        out.extend_from_slice(&epoch.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&u32::try_from(self.body.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(&crc32c::crc32c(&self.body).to_be_bytes());
        let crc = crc32c::crc32c(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&crc.to_be_bytes());
        out.extend_from_slice(&self.body);
    }
}

/// What a block's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) number: u64,
    count: u32,
    pub(super) body_len: usize,
    body_crc: u32,
}

impl BlockHeader {
    /// `None`: no header of a block of this epoch.
    pub(super) fn decode(bytes: &[u8], epoch: u64) -> Option<Self> {
        let header = bytes.get(..BLOCK_HEADER_LEN)?;
        let intact = header.starts_with(BLOCK_MAGIC)
            && u64_at(header, 4)? == epoch
            && u32_at(header, 32)? == crc32c::crc32c(header.get(..32)?);
        let body_len = u32_at(header, 24)? as usize;
        (intact && body_len <= MAX_BATCH_BYTES).then_some(Self {
            number: u64_at(header, 12)?,
            count: u32_at(header, 20)?,
            body_len,
            body_crc: u32_at(header, 28)?,
        })
    }

    /// The records of the body; `None`: this is not the body that was written.
    pub(super) fn records<'a>(&self, body: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        if crc32c::crc32c(body) != self.body_crc {
            return None;
        }
        let mut records = Vec::new();
        let mut rest = body;
        while !rest.is_empty() {
            let len = u32_at(rest, 0)? as usize;
            records.push(rest.get(4..len.checked_add(4)?)?);
            rest = rest.get(len + 4..)?;
        }
        (records.len() == self.count as usize).then_some(records)
    }
}

/// Where in `bytes` the next header of a block of this epoch begins.
pub(super) fn find_block(bytes: &[u8], epoch: u64) -> Option<usize> {
    (0..bytes.len()).find(|&at| bytes.get(at..).is_some_and(|rest| BlockHeader::decode(rest, epoch).is_some()))
}

/// The header of a file.
pub(super) fn encode_file_header(epoch: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(FILE_HEADER_LEN);
    header.extend_from_slice(FILE_MAGIC);
    header.extend_from_slice(&VERSION.to_be_bytes());
    header.extend_from_slice(&epoch.to_be_bytes());
    let crc = crc32c::crc32c(&header);
    header.extend_from_slice(&crc.to_be_bytes());
    header
}

/// The epoch in the header of a file, or why it is none.
pub(super) fn decode_file_header(bytes: &[u8]) -> Result<u64, String> {
    let fields = || Some((u32_at(bytes, 8)?, u64_at(bytes, 12)?, u32_at(bytes, 20)?, bytes.get(..20)?));
    let Some((version, epoch, crc, covered)) = fields() else {
        return Err(format!("{} bytes are too few for a header", bytes.len()));
    };
    if !bytes.starts_with(FILE_MAGIC) {
        return Err("it does not begin like a journal".to_owned());
    }
    if crc != crc32c::crc32c(covered) {
        return Err("the checksum of the header is wrong".to_owned());
    }
    if version != VERSION {
        return Err(format!("it has format version {version}, this program reads {VERSION}"));
    }
    Ok(epoch)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(field(bytes, at..at + 4)?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(field(bytes, at..at + 8)?))
}

fn field<const N: usize>(bytes: &[u8], range: Range<usize>) -> Option<[u8; N]> {
    bytes.get(range)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(records: &[Vec<u8>], epoch: u64, number: u64) -> Vec<u8> {
        let mut batch = RecordBatch::default();
        records.iter().for_each(|record| batch.push(&[record]));
        let mut bytes = Vec::new();
        batch.encode(epoch, number, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn a_block_comes_back_as_it_was(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            epoch: u64,
            number: u64,
        ) {
            let bytes = block(&records, epoch, number);
            let header = BlockHeader::decode(&bytes, epoch).unwrap();
            prop_assert_eq!(header.number, number);
            prop_assert_eq!(header.body_len, bytes.len() - BLOCK_HEADER_LEN);
            prop_assert_eq!(header.records(&bytes[BLOCK_HEADER_LEN..]).unwrap(), records);
            prop_assert!(BlockHeader::decode(&bytes, epoch ^ 1).is_none());
        }

        #[test]
        fn a_changed_bit_is_noticed(at: prop::sample::Index, bit in 0..8u8) {
            let mut bytes = block(&[b"one".to_vec(), b"two".to_vec()], 7, 3);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let header = BlockHeader::decode(&bytes, 7);
            prop_assert!(header.and_then(|header| header.records(&bytes[BLOCK_HEADER_LEN..]).map(|_| ())).is_none());
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_file_header(&bytes);
            prop_assert!(BlockHeader::decode(&bytes, 0).is_none());
            let trusting = BlockHeader { number: 0, count: 1, body_len: bytes.len(), body_crc: crc32c::crc32c(&bytes) };
            let _ = trusting.records(&bytes);
        }
    }

    #[test]
    fn a_file_header_comes_back_and_says_what_is_wrong() {
        let good = encode_file_header(99);
        assert_eq!(good.len(), FILE_HEADER_LEN);
        assert_eq!(decode_file_header(&good), Ok(99));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(decode_file_header(&bad).is_err());
            assert!(decode_file_header(&good[..at]).unwrap_err().contains("too few"));
        }
    }

    #[test]
    fn a_block_is_found_behind_damage() {
        let bytes = [b"HQJB and no block".to_vec(), block(&[], 5, 2), vec![0; 9]].concat();
        assert_eq!(find_block(&bytes, 5), Some(17));
        assert_eq!(find_block(&bytes, 6), None);
    }
}

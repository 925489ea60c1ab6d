//! The bytes of a segment file. Numbers are big-endian. The index is drawn in `index.rs`.
//!
//! ```text
//! file      = header seal zeros element* , and behind the elements zeros, or bytes of an earlier use, which no checksum fits
//!
//! header    0   8  magic "HQFILEQ\n"                    durable before the file has the name of a segment
//!           8   4  version, 1
//!          12   4  CRC32C of bytes 16 to 47
//!          16   8  number of this file; rises with each, never comes back
//!          24   8  epoch: random, another one in each use of a file
//!          32   8  running number of the first element
//!          40   8  zeros
//!
//! seal    512   4  CRC32C of the epoch and of bytes 516 to 543;   written and synced when the file is full, before the next has
//!         516   4  zeros                                          its name; a sector of its own, so that a torn one spoils
//!         520   8  number of the next file                        nothing else
//!         528   8  end position: behind the last element
//!         536   8  running number of the first element of the next file
//!
//! element   0   4  magic "HQFE"                         the first at 4096
//!           4   4  CRC32C of the epoch, of the offset in the file, and of bytes 8 to 31
//!           8   4  CRC32C of the body
//!          12   4  length of the body in bytes
//!          16   8  running number: 0 for the first of a queue, without a gap, so that one that is missing shows
//!          24   8  bytes of this file that were synced when it was written: what is torn behind them was never synced
//!          32   …  body
//! ```

use std::ops::Range;

const FILE_MAGIC: &[u8; 8] = b"HQFILEQ\n";
const ELEMENT_MAGIC: &[u8; 4] = b"HQFE";
const VERSION: u32 = 1;

const HEADER_LEN: usize = 48;
pub(super) const SEAL_AT: u64 = 512;
pub(super) const SEAL_LEN: usize = 32;
/// Elements begin here: behind the page of header and seal.
pub(super) const DATA_START: u64 = 4096;
pub(super) const ELEMENT_HEADER_LEN: usize = 32;

/// What is known of a file from its beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) number: u64,
    pub(super) epoch: u64,
    pub(super) first_element: u64,
}

impl SegmentHeader {
    /// The first page, without a seal.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::with_capacity(HEADER_LEN);
        [self.number, self.epoch, self.first_element, 0].iter().for_each(|n| rest.extend_from_slice(&n.to_be_bytes()));
        let mut page = FILE_MAGIC.to_vec();
        page.extend_from_slice(&VERSION.to_be_bytes());
        page.extend_from_slice(&crc32c::crc32c(&rest).to_be_bytes());
        page.extend_from_slice(&rest);
        page.resize(usize::try_from(DATA_START).unwrap_or(0), 0);
        page
    }

    /// From the first page, or why that is none.
    pub(super) fn decode(page: &[u8]) -> Result<Self, String> {
        let fields = || Some((u32_at(page, 8)?, u32_at(page, 12)?, page.get(16..HEADER_LEN)?));
        let Some((version, crc, rest)) = fields() else { return Err(format!("{} bytes are too few for a header", page.len())) };
        if !page.starts_with(FILE_MAGIC) {
            return Err("it does not begin like a segment of a file queue".to_owned());
        }
        if version != VERSION {
            return Err(format!("it has format version {version}, this program reads {VERSION}"));
        }
        if crc != crc32c::crc32c(rest) {
            return Err("the checksum of the header is wrong".to_owned());
        }
        let field = |at| u64_at(rest, at).unwrap_or(0);
        Ok(Self { number: field(0), epoch: field(8), first_element: field(16) })
    }
}

/// How a full file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) next_element: u64,
}

impl Seal {
    pub(super) fn encode(&self, epoch: u64) -> [u8; SEAL_LEN] {
        let mut out = [0; SEAL_LEN];
        let fields = [(8, self.next), (16, self.end), (24, self.next_element)];
        fields.iter().for_each(|(at, n)| put(&mut out, *at, &n.to_be_bytes()));
        let crc = seal_crc(epoch, &out);
        put(&mut out, 0, &crc.to_be_bytes());
        out
    }

    /// From the first page. `None`: this use of the file was not sealed.
    pub(super) fn decode(page: &[u8], epoch: u64) -> Option<Self> {
        let at = usize::try_from(SEAL_AT).ok()?;
        let seal = page.get(at..at + SEAL_LEN)?;
        let found = Self { next: u64_at(seal, 8)?, end: u64_at(seal, 16)?, next_element: u64_at(seal, 24)? };
        (u32_at(seal, 0)? == seal_crc(epoch, seal)).then_some(found)
    }
}

fn seal_crc(epoch: u64, seal: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&epoch.to_be_bytes()), seal.get(4..).unwrap_or_default())
}

/// What stands before the bytes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElementHeader {
    pub(super) number: u64,
    pub(super) synced: u64,
    pub(super) body_len: u32,
    body_crc: u32,
}

impl ElementHeader {
    /// `body` has at most `max_element_bytes`, which is far less than 4 GiB.
    pub(super) fn of(body: &[u8], number: u64, synced: u64) -> Self {
        let body_len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        Self { number, synced, body_len, body_crc: crc32c::crc32c(body) }
    }

    pub(super) fn encode(&self, epoch: u64, offset: u64) -> [u8; ELEMENT_HEADER_LEN] {
        let mut out = [0; ELEMENT_HEADER_LEN];
        put(&mut out, 0, ELEMENT_MAGIC);
        put(&mut out, 8, &self.body_crc.to_be_bytes());
        put(&mut out, 12, &self.body_len.to_be_bytes());
        put(&mut out, 16, &self.number.to_be_bytes());
        put(&mut out, 24, &self.synced.to_be_bytes());
        let crc = element_crc(epoch, offset, &out);
        put(&mut out, 4, &crc.to_be_bytes());
        out
    }

    /// `None`: no element was written here in this use of the file.
    pub(super) fn decode(bytes: &[u8], epoch: u64, offset: u64) -> Option<Self> {
        let header = bytes.get(..ELEMENT_HEADER_LEN)?;
        if !header.starts_with(ELEMENT_MAGIC) || u32_at(header, 4)? != element_crc(epoch, offset, header) {
            return None;
        }
        let (body_crc, body_len) = (u32_at(header, 8)?, u32_at(header, 12)?);
        Some(Self { number: u64_at(header, 16)?, synced: u64_at(header, 24)?, body_len, body_crc })
    }

    /// Header and body. Bytes.
    pub(super) fn total_len(&self) -> u64 {
        ELEMENT_HEADER_LEN as u64 + u64::from(self.body_len)
    }

    /// Is this what was written?
    pub(super) fn is_body(&self, body: &[u8]) -> bool {
        body.len() as u64 == u64::from(self.body_len) && crc32c::crc32c(body) == self.body_crc
    }
}

fn element_crc(epoch: u64, offset: u64, header: &[u8]) -> u32 {
    let place = crc32c::crc32c_append(crc32c::crc32c(&epoch.to_be_bytes()), &offset.to_be_bytes());
    crc32c::crc32c_append(place, header.get(8..ELEMENT_HEADER_LEN).unwrap_or_default())
}

/// Where in `bytes`, which stand at `offset` of the file, the next header of an element begins.
pub(super) fn find_element(bytes: &[u8], epoch: u64, offset: u64) -> Option<(usize, ElementHeader)> {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= ELEMENT_HEADER_LEN) {
        match ElementHeader::decode(rest, epoch, offset + at as u64) {
            Some(header) => return Some((at, header)),
            None => at += 1 + rest.get(1..)?.iter().position(|byte| *byte == ELEMENT_MAGIC[0])?,
        }
    }
    None
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(field(bytes, at..at + 4)?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(field(bytes, at..at + 8)?))
}

fn field<const N: usize>(bytes: &[u8], range: Range<usize>) -> Option<[u8; N]> {
    bytes.get(range)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_and_its_seal_come_back(fields: (u64, u64, u64), seal: (u64, u64, u64)) {
            let header = SegmentHeader { number: fields.0, epoch: fields.1, first_element: fields.2 };
            let mut page = header.encode();
            prop_assert_eq!(page.len() as u64, DATA_START);
            prop_assert_eq!(SegmentHeader::decode(&page), Ok(header));
            prop_assert_eq!(Seal::decode(&page, header.epoch), None);
            let seal = Seal { next: seal.0, end: seal.1, next_element: seal.2 };
            put(&mut page, SEAL_AT as usize, &seal.encode(header.epoch));
            prop_assert_eq!(Seal::decode(&page, header.epoch), Some(seal));
            prop_assert_eq!(Seal::decode(&page, header.epoch ^ 1), None);
            prop_assert_eq!(SegmentHeader::decode(&page), Ok(header));
        }

        #[test]
        fn an_element_comes_back_at_its_place_only(body: Vec<u8>, number: u64, synced: u64, epoch: u64, offset in 0..u64::MAX / 2) {
            let header = ElementHeader::of(&body, number, synced);
            let bytes = [&header.encode(epoch, offset), &body[..]].concat();
            let found = ElementHeader::decode(&bytes, epoch, offset).unwrap();
            prop_assert_eq!(found, header);
            prop_assert_eq!(found.total_len(), bytes.len() as u64);
            prop_assert!(found.is_body(&bytes[ELEMENT_HEADER_LEN..]));
            prop_assert_eq!(ElementHeader::decode(&bytes, epoch ^ 1, offset), None);
            prop_assert_eq!(ElementHeader::decode(&bytes, epoch, offset + 1), None);
        }

        #[test]
        fn a_changed_bit_is_noticed(at: prop::sample::Index, bit in 0..8u8) {
            let body = b"some element";
            let mut bytes = [&ElementHeader::of(body, 3, 4096).encode(7, 5000), &body[..]].concat();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let found = ElementHeader::decode(&bytes, 7, 5000);
            prop_assert!(found.is_none_or(|header| !header.is_body(&bytes[ELEMENT_HEADER_LEN..])));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(SegmentHeader::decode(&bytes).is_err());
            let _ = Seal::decode(&bytes, 0);
            prop_assert_eq!(find_element(&bytes, 0, 0), None);
        }

        #[test]
        fn an_element_is_found_behind_damage(before in prop::collection::vec(prop_oneof![Just(b'H'), any::<u8>()], 0..200)) {
            let header = ElementHeader::of(b"x", 9, 0);
            let bytes = [&before[..], &header.encode(1, 100 + before.len() as u64), b"x"].concat();
            prop_assert_eq!(find_element(&bytes, 1, 100), Some((before.len(), header)));
        }
    }

    #[test]
    fn what_is_wrong_with_a_header_is_said() {
        let good = SegmentHeader { number: 1, epoch: 2, first_element: 3 }.encode();
        let said = |at: usize| {
            let mut bad = good.clone();
            bad[at] ^= 1;
            SegmentHeader::decode(&bad).unwrap_err()
        };
        assert!(said(0).contains("begin"));
        assert_eq!(said(11), "it has format version 0, this program reads 1");
        assert!((12..HEADER_LEN).all(|at| said(at).contains("checksum")));
        assert!(SegmentHeader::decode(&good[..20]).unwrap_err().contains("20 bytes are too few"));
    }
}

//! Reading elements out of a segment file, and finding the next one behind damage.

use std::io;

use super::format::{ELEMENT_HEADER_LEN, ElementHeader, find_element};
use crate::disk::{DiskFile, read_exact_at};

/// So many bytes are read at once. Bytes.
const READ_AHEAD: u64 = 256 << 10;

/// What disks lose at once. Bytes.
const PAGE: usize = 4096;

/// What stands at a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Element {
        header: ElementHeader,
        body: Vec<u8>,
    },
    /// An element was written here, but this is not its body any more.
    BadBody(ElementHeader),
    /// There is no header of an element.
    Nothing,
}

/// A stretch of a segment file in memory. What it has read is not read again: only bytes that do not change any more are asked for.
#[derive(Debug, Default)]
pub(super) struct Window {
    start: u64,
    bytes: Vec<u8>,
    /// Pages that cannot be read count as zeros.
    pub(super) is_tolerant: bool,
}

impl Window {
    pub(super) fn tolerant() -> Self {
        Self { is_tolerant: true, ..Self::default() }
    }

    pub(super) fn forget(&mut self) {
        self.bytes.clear();
    }

    /// The bytes at `offset`, at least `len` unless `end` comes before, and nothing beyond `end`.
    fn fetch(&mut self, file: &dyn DiskFile, offset: u64, len: u64, end: u64) -> io::Result<&[u8]> {
        let until = offset.saturating_add(len).min(end);
        let has = self.start..self.start + self.bytes.len() as u64;
        if !(has.contains(&offset) && until <= has.end) {
            let left = end.saturating_sub(offset);
            // Of no use until all of it is read.
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.resize(usize::try_from(left.min(len.max(READ_AHEAD))).unwrap_or(0), 0);
            match read_exact_at(file, &mut bytes, offset) {
                Err(_) if self.is_tolerant => read_pages(file, &mut bytes, offset),
                Err(_) => {
                    // What cannot be read may be behind what is asked for.
                    bytes.truncate(usize::try_from(left.min(len)).unwrap_or(0));
                    read_exact_at(file, &mut bytes, offset)?;
                }
                Ok(()) => {}
            }
            (self.start, self.bytes) = (offset, bytes);
        }
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(skip..).unwrap_or_default();
        let most = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        Ok(rest.get(..most).unwrap_or(rest))
    }

    /// The header of the element at `offset` of a file whose elements end at `end`.
    pub(super) fn header_at(
        &mut self,
        file: &dyn DiskFile,
        epoch: u64,
        offset: u64,
        end: u64,
    ) -> io::Result<Option<ElementHeader>> {
        let bytes = self.fetch(file, offset, ELEMENT_HEADER_LEN as u64, end)?;
        let header = ElementHeader::decode(bytes, epoch, offset);
        Ok(header.filter(|header| header.total_len() <= end.saturating_sub(offset)))
    }

    pub(super) fn element_at(&mut self, file: &dyn DiskFile, epoch: u64, offset: u64, end: u64) -> io::Result<Found> {
        let Some(header) = self.header_at(file, epoch, offset, end)? else { return Ok(Found::Nothing) };
        let bytes = self.fetch(file, offset, header.total_len(), end)?;
        let body =
            usize::try_from(header.total_len()).ok().and_then(|len| bytes.get(ELEMENT_HEADER_LEN..len)).unwrap_or_default();
        if header.is_body(body) { Ok(Found::Element { header, body: body.to_vec() }) } else { Ok(Found::BadBody(header)) }
    }

    /// The first header of an element at or behind `from`.
    pub(super) fn next_header(
        &mut self,
        file: &dyn DiskFile,
        epoch: u64,
        from: u64,
        end: u64,
    ) -> io::Result<Option<(u64, ElementHeader)>> {
        let mut at = from;
        while at.saturating_add(ELEMENT_HEADER_LEN as u64) <= end {
            let bytes = self.fetch(file, at, READ_AHEAD, end)?;
            if let Some((skipped, header)) = find_element(bytes, epoch, at) {
                at += skipped as u64;
                if header.total_len() <= end - at {
                    return Ok(Some((at, header)));
                }
                at += 1;
            } else {
                // One may begin in the last bytes and go on behind them.
                at += (bytes.len() as u64).saturating_sub(ELEMENT_HEADER_LEN as u64 - 1).max(1);
            }
        }
        Ok(None)
    }
}

/// Reads page by page; those that cannot be read are zeros.
fn read_pages(file: &dyn DiskFile, bytes: &mut [u8], offset: u64) {
    let mut at = offset;
    for page in bytes.chunks_mut(PAGE) {
        if read_exact_at(file, page, at).is_err() {
            page.fill(0);
        }
        at += page.len() as u64;
    }
}

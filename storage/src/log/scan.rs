//! Finding blocks in a segment: at a place, behind damage, and all of them in order.

use std::io;

use bytes::Bytes;

use super::format::block::{BlockHeader, Decoded, Kind, MAGIC, MAX_HEADER_LEN, Place};
use super::source::{Source, WINDOW};

/// Enough for the header of a block of one short topic. Bytes.
const MOST_HEADERS: usize = 256;

/// The header of the block at `offset`, if a block of that place stands there and ends within the source.
pub(super) fn block_at(source: &mut Source<'_>, place: &Place, offset: u64) -> io::Result<Option<BlockHeader>> {
    header_at(source, place, offset, Source::fetch)
}

/// The same for a reader that does not look at what is around it.
pub(super) fn lone_block_at(source: &mut Source<'_>, place: &Place, offset: u64) -> io::Result<Option<BlockHeader>> {
    header_at(source, place, offset, Source::glance)
}

fn header_at<'a>(
    source: &mut Source<'a>,
    place: &Place,
    offset: u64,
    fetch: impl Fn(&mut Source<'a>, u64, usize) -> io::Result<Bytes>,
) -> io::Result<Option<BlockHeader>> {
    let mut wanted = MOST_HEADERS;
    loop {
        let bytes = fetch(source, offset, wanted)?;
        match place.decode(&bytes, offset) {
            Decoded::Longer(len) if len > wanted => wanted = len,
            Decoded::Longer(_) | Decoded::NoBlock => return Ok(None),
            Decoded::Block(header) => {
                let fits = offset.checked_add(header.total_len()).is_some_and(|end| end <= source.end());
                let has_sense = header.kind == Kind::Control || header.count > 0;
                return Ok((fits && has_sense).then_some(header));
            }
        }
    }
}

/// The body of a block; `None` if it is damaged.
pub(super) fn body_of(source: &mut Source<'_>, offset: u64, header: &BlockHeader) -> io::Result<Option<Bytes>> {
    let len = usize::try_from(header.body_len).unwrap_or(usize::MAX);
    let body = source.fetch(offset.saturating_add(header.header_len as u64), len)?;
    Ok((body.len() == len && crc32c::crc32c(&body) == header.body_crc).then_some(body))
}

/// The first block at or behind `from` that begins below `until`: a place to go on behind damage.
pub(super) fn next_block(
    source: &mut Source<'_>,
    place: &Place,
    from: u64,
    until: u64,
) -> io::Result<Option<(u64, BlockHeader)>> {
    let until = until.min(source.end());
    let mut at = from;
    while at < until {
        // To the end of the window, and a little further, for a magic that lies across it.
        let to_end = usize::try_from(WINDOW - at % WINDOW).unwrap_or(0);
        let bytes = source.fetch(at, to_end + MAGIC.len() - 1)?;
        let mut within = 0;
        while let Some(found) = find_magic(bytes.get(within..).unwrap_or_default()) {
            let offset = at + (within + found) as u64;
            if offset >= until {
                return Ok(None);
            }
            if let Some(header) = block_at(source, place, offset)? {
                return Ok(Some((offset, header)));
            }
            within += found + 1;
        }
        if bytes.len() < to_end {
            return Ok(None);
        }
        at += to_end as u64;
    }
    Ok(None)
}

fn find_magic(bytes: &[u8]) -> Option<usize> {
    let [begin, ..] = MAGIC;
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.iter().position(|byte| *byte == begin)?;
        if bytes.get(at..).is_some_and(|rest| rest.starts_with(&MAGIC)) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Bytes of something that begins like a block at `offset`, as far as the source goes; 0 if it does not.
pub(super) fn torn_len(source: &mut Source<'_>, place: &Place, offset: u64) -> io::Result<u64> {
    let bytes = source.fetch(offset, MAX_HEADER_LEN)?;
    Ok(if place.looks_like_block(&bytes) { source.end().saturating_sub(offset) } else { 0 })
}

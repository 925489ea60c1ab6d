//! What an opening finds in the folder.
//!
//! How far the queue was written: after a close the index says it. Else elements are looked for in the last file from the position on
//! that the index knows to be synced.
//!
//! * The process ended, the machine did not: everything that was written is there. An element that is not whole, with others behind it,
//!   is damage; at the very end it is one whose offer never returned, and is cut.
//! * The power failed: of what was not synced anything may be there. An element that is not whole was synced once if a later one says
//!   so: then it is damage. Else it and what is behind it was never synced, and is cut.
//!
//! Damage is left where it is: the reader reports it when it comes there.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::Path;

use super::folder::{self, Listing};
use super::format::{DATA_START, Seal, SegmentHeader};
use super::index::{Index, Position, Positions};
use super::scan::{Found, Window};
use super::shared::{MAX_SPARES, Segment};
use crate::disk::{Disk, DiskFile, read_exact_at, write_all_at, zeros};

/// The queue as it was found.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    pub(super) segments: BTreeMap<u64, Segment>,
    pub(super) spares: Vec<std::path::PathBuf>,
    pub(super) read: Position,
    /// Where the next element goes, if the last file goes on.
    pub(super) write: Option<Position>,
    pub(super) next_segment: u64,
    /// The number of the next element.
    pub(super) next_element: u64,
    /// Elements below are in files: a lower number than `next_element` if some at the end are lost.
    pub(super) last_element: u64,
    /// What the index holds, if it is whole.
    pub(super) index: Option<(u64, Positions)>,
}

/// How the queue was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Closed,
    Killed,
    PowerCut,
}

pub(super) fn recover(disk: &dyn Disk, dir: &Path, boot: &[u8]) -> io::Result<Recovered> {
    let listing = folder::list(disk, dir)?;
    let index = match Index::read(disk, &folder::index_path(dir))? {
        Some(Ok(found)) => Some(found),
        found => {
            let why = found.and_then(Result::err);
            if why.is_some() || !listing.segments.is_empty() {
                let why = why.unwrap_or_else(|| "it is not there".to_owned());
                tracing::error!(dir = %dir.display(), why, "the index of a file queue is lost: what was polled may come again");
            }
            None
        }
    };
    let known = index.clone().map(|(_, known)| known).unwrap_or_default();
    let ending = match () {
        () if known.is_closed => Ending::Closed,
        () if !boot.is_empty() && known.boot == boot => Ending::Killed,
        () => Ending::PowerCut,
    };
    let mut recovery = Recovery { disk, dir, known, ending, found: Recovered { index, ..Recovered::default() } };
    recovery.read_segments(&listing)?;
    recovery.place_reader();
    recovery.found.spares = listing.spares;
    recovery.remove_surplus_spares();
    Ok(recovery.found)
}

struct Recovery<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    known: Positions,
    ending: Ending,
    found: Recovered,
}

impl Recovery<'_> {
    fn read_segments(&mut self, listing: &Listing) -> io::Result<()> {
        self.found.next_segment = listing.highest.max(self.known.read.segment).max(self.known.write.segment) + 1;
        self.found.next_element = self.known.read.element.max(self.known.write.element);
        let last = listing.segments.last().copied();
        for number in listing.segments.iter().copied() {
            if number < self.known.read.segment {
                self.set_aside(number, &folder::spare_path(self.dir, number))?;
            } else {
                self.read_segment(number, Some(number) == last)?;
            }
        }
        Ok(())
    }

    /// Gives a file another name.
    fn set_aside(&self, number: u64, name: &Path) -> io::Result<()> {
        self.disk.rename(&folder::segment_path(self.dir, number), name)
    }

    fn read_segment(&mut self, number: u64, is_last: bool) -> io::Result<()> {
        let path = folder::segment_path(self.dir, number);
        let file = self.disk.open(&path)?;
        let len = file.len()?;
        let mut page = vec![0; usize::try_from(DATA_START.min(len)).unwrap_or(0)];
        read_exact_at(&*file, &mut page, 0)?;
        let header = match SegmentHeader::decode(&page) {
            Ok(header) if header.number == number => header,
            Ok(_) => {
                // It was on its way to another use, and its new name did not come to the disk.
                return self.set_aside(number, &folder::spare_path(self.dir, number));
            }
            Err(why) => {
                let kept = folder::damaged_path(self.dir, number);
                tracing::error!(path = %path.display(), why, kept = %kept.display(), "a segment of a file queue is lost");
                return self.set_aside(number, &kept);
            }
        };
        let seal = Seal::decode(&page, header.epoch).filter(|seal| (DATA_START..=len).contains(&seal.end));
        let end = match seal {
            Some(seal) => Position { segment: number, offset: seal.end, element: seal.next_element },
            None => self.find_end(&*file, &path, &header, len, is_last)?,
        };
        let segment = Segment { epoch: header.epoch, first_element: header.first_element, end: end.offset };
        self.found.segments.insert(number, segment);
        self.found.next_element = self.found.next_element.max(end.element);
        self.found.last_element = end.element;
        // Numbers that are taken already by what was lost, or polled and lost, need a file that says so.
        let goes_on = is_last && seal.is_none() && end.element == self.found.next_element;
        self.found.write = goes_on.then_some(end);
        Ok(())
    }

    /// The end of a file that was not sealed.
    fn find_end(
        &self,
        file: &dyn DiskFile,
        path: &Path,
        header: &SegmentHeader,
        len: u64,
        is_last: bool,
    ) -> io::Result<Position> {
        let start = Position { segment: header.number, offset: DATA_START, element: header.first_element };
        // A file that others follow was full and synced: only damage to its seal leads here.
        let ending = if is_last { self.ending } else { Ending::Killed };
        let known = self.known.write;
        let from = if known.segment == header.number && (DATA_START..=len).contains(&known.offset) { known } else { start };
        if ending == Ending::Closed && from == known {
            return Ok(known);
        }
        let mut search = Search { file, epoch: header.epoch, len, window: Window::tolerant() };
        let end = search.end(from, ending)?;
        if is_last {
            let torn = search.torn_bytes(end.offset)?;
            if torn > 0 {
                let (path, offset) = (path.display(), end.offset);
                tracing::warn!(%path, offset, bytes = torn, "cut the torn end of a file queue: an offer that was never synced");
            }
            confirm(file, from.offset, end.offset, len)?;
        }
        Ok(end)
    }

    /// A read position that is not in any file is at the beginning of the next one.
    fn place_reader(&mut self) {
        let mut read = self.known.read;
        if !self.found.segments.contains_key(&read.segment) {
            let next = self.found.segments.range(read.segment..).next();
            match next {
                Some((number, segment)) => {
                    // Without an index the first element there is the first that is known of.
                    let element = if self.known == Positions::default() { segment.first_element } else { read.element };
                    read = Position { segment: *number, offset: DATA_START, element };
                }
                None => read = Position { segment: self.found.next_segment, offset: DATA_START, ..read },
            }
        }
        self.found.read = read;
    }

    fn remove_surplus_spares(&mut self) {
        while self.found.spares.len() > MAX_SPARES
            && let Some(spare) = self.found.spares.pop()
        {
            if let Err(error) = self.disk.remove_file(&spare) {
                tracing::warn!(path = %spare.display(), %error, "a file that is not needed any more is left behind");
            }
        }
    }
}

/// Looks for the end of a file's elements.
struct Search<'a> {
    file: &'a dyn DiskFile,
    epoch: u64,
    len: u64,
    window: Window,
}

impl Search<'_> {
    fn end(&mut self, from: Position, ending: Ending) -> io::Result<Position> {
        // Below, everything was synced once.
        let synced = if ending == Ending::PowerCut { self.synced(from.offset)? } else { u64::MAX };
        let mut at = from;
        loop {
            let behind = match self.window.element_at(self.file, self.epoch, at.offset, self.len)? {
                Found::Element { header, .. } if header.number >= at.element => {
                    at.offset += header.total_len();
                    at.element = header.number + 1;
                    continue;
                }
                Found::Element { .. } | Found::Nothing => at.offset + 1,
                Found::BadBody(header) => at.offset + header.total_len(),
            };
            let next = if at.offset < synced { self.next_whole(behind)? } else { None };
            let Some(offset) = next else { return Ok(at) };
            at.offset = offset;
        }
    }

    /// How much any element from `from` on knows to be synced.
    fn synced(&mut self, from: u64) -> io::Result<u64> {
        let (mut at, mut synced) = (from, 0);
        while let Some((offset, header)) = self.window.next_header(self.file, self.epoch, at, self.len)? {
            let found = self.window.element_at(self.file, self.epoch, offset, self.len)?;
            if matches!(found, Found::Element { .. }) {
                synced = synced.max(header.synced);
                at = offset + header.total_len();
            } else {
                at = offset + 1;
            }
        }
        Ok(synced)
    }

    /// Where the next whole element begins.
    fn next_whole(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while let Some((offset, _)) = self.window.next_header(self.file, self.epoch, at, self.len)? {
            if matches!(self.window.element_at(self.file, self.epoch, offset, self.len)?, Found::Element { .. }) {
                return Ok(Some(offset));
            }
            at = offset + 1;
        }
        Ok(None)
    }

    /// Bytes behind the end that were to become elements.
    fn torn_bytes(&mut self, end: u64) -> io::Result<u64> {
        let mut torn = 0;
        let mut at = end;
        while let Some((offset, header)) = self.window.next_header(self.file, self.epoch, at, self.len)? {
            torn = offset + header.total_len() - end;
            at = offset + 1;
        }
        Ok(torn)
    }
}

/// So many bytes are written again at once.
const CHUNK: u64 = 1 << 20;

/// Writes what was found once more, zeros behind it, and syncs. The sync of what was found may have failed before, with the system's
/// memory showing it all the same; and what was cut must not come back behind what is written next.
fn confirm(file: &dyn DiskFile, from: u64, end: u64, len: u64) -> io::Result<()> {
    let mut at = from;
    while at < end {
        let mut bytes = vec![0; usize::try_from(CHUNK.min(end - at)).unwrap_or(0)];
        if read_exact_at(file, &mut bytes, at).is_ok() {
            write_all_at(file, &mut [IoSlice::new(&bytes)], at)?;
        }
        // What cannot be read is left as it is.
        at += bytes.len() as u64;
    }
    let mut slices: Vec<IoSlice<'_>> = zeros(len.saturating_sub(end)).collect();
    write_all_at(file, &mut slices, end)?;
    file.sync_data()
}

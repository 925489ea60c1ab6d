//! Going through the blocks of a segment when a start does not know where they end.
//!
//! Where no block stands is either the end or damage: if there is a block behind, it is damage, which stays and is passed over. Blocks
//! of groups that failed do not count: groups are numbered, rising with every try, so what was left by an earlier try shows.

use std::io;

use super::format::block::{BlockHeader, Place};
use super::recovery::Ending;
use super::scan::{block_at, body_of, next_block, torn_len};
use super::source::{Source, WINDOW};

/// Behind what is no block, so many bytes are searched for one: more than the longest block takes.
const SEARCHED: u64 = 32 << 20;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Replay {
    /// Blocks end here.
    pub(super) end: u64,
    /// Bytes behind that were to become blocks.
    pub(super) torn_bytes: u64,
    /// Damage between blocks: where, and how many bytes.
    pub(super) holes: Vec<(u64, u64)>,
    /// The whole blocks of the last group: where, and how many bytes.
    pub(super) last_group: Vec<(u64, u64)>,
}

/// Shows every block from `start` on to `visit`. Bytes below `used_len` may be of an earlier use of the file.
pub(super) fn replay(
    source: &mut Source<'_>,
    place: &Place,
    start: u64,
    used_len: u64,
    ending: Ending,
    mut visit: impl FnMut(u64, &BlockHeader),
) -> io::Result<Replay> {
    let mut state = State { at: start, last: LastGroup { start, ..LastGroup::default() }, holes: Vec::new() };
    loop {
        let here = state.block_here(source, place, ending)?;
        if let Some(header) = here {
            state.take(header, &mut visit);
            continue;
        }
        let Some(behind) = state.block_behind(source, place, ending)? else { break };
        state.pass_hole(behind, &mut visit);
    }
    let end = state.end_of_last_group(source, ending)?;
    state.last.blocks.retain(|(offset, _)| *offset < end);
    state.holes.retain(|(offset, _)| *offset < end);
    let mut last_group = Vec::with_capacity(state.last.blocks.len());
    for (offset, header) in &state.last.blocks {
        visit(*offset, header);
        if body_of(source, *offset, header)?.is_some() {
            last_group.push((*offset, header.total_len()));
        }
    }
    let torn_bytes = torn_bytes(source, place, end, used_len)?;
    Ok(Replay { end, torn_bytes, holes: state.holes, last_group })
}

/// How far the blocks have been gone through.
struct State {
    at: u64,
    last: LastGroup,
    holes: Vec<(u64, u64)>,
}

/// The blocks of the group that was met last; they are shown when the next one is met.
#[derive(Default)]
struct LastGroup {
    number: u64,
    start: u64,
    blocks: Vec<(u64, BlockHeader)>,
    first_hole: Option<u64>,
}

/// The next whole block behind damage.
struct Behind {
    /// Blocks before it that have lost their messages. Their headers still say which numbers and ids are taken.
    damaged: Vec<(u64, BlockHeader)>,
    offset: u64,
    group: u64,
}

impl State {
    fn block_here(&self, source: &mut Source<'_>, place: &Place, ending: Ending) -> io::Result<Option<BlockHeader>> {
        let header = block_at(source, place, self.at)?.filter(|header| header.group >= self.last.number);
        self.whole(source, self.at, header, ending)
    }

    /// After a power cut any block of the last groups may be torn, so that bodies are looked at too.
    fn whole(
        &self,
        source: &mut Source<'_>,
        offset: u64,
        header: Option<BlockHeader>,
        ending: Ending,
    ) -> io::Result<Option<BlockHeader>> {
        let Some(header) = header else { return Ok(None) };
        let is_whole = ending != Ending::PowerCut || body_of(source, offset, &header)?.is_some();
        Ok(is_whole.then_some(header))
    }

    fn block_behind(&self, source: &mut Source<'_>, place: &Place, ending: Ending) -> io::Result<Option<Behind>> {
        let until = self.at.saturating_add(SEARCHED);
        let mut from = self.at;
        let mut damaged = Vec::new();
        while let Some((offset, header)) = next_block(source, place, from, until)? {
            from = offset + 1;
            if header.group < self.last.number {
                continue;
            }
            if self.whole(source, offset, Some(header.clone()), ending)?.is_some() {
                return Ok(Some(Behind { damaged, offset, group: header.group }));
            }
            damaged.push((offset, header));
        }
        Ok(None)
    }

    fn take(&mut self, header: BlockHeader, visit: &mut impl FnMut(u64, &BlockHeader)) {
        self.enter_group(&header, self.at, visit);
        let offset = self.at;
        self.at += header.total_len();
        self.last.blocks.push((offset, header));
    }

    fn enter_group(&mut self, header: &BlockHeader, offset: u64, visit: &mut impl FnMut(u64, &BlockHeader)) {
        if header.group == self.last.number {
            return;
        }
        self.last.blocks.drain(..).for_each(|(offset, header)| visit(offset, &header));
        self.last.number = header.group;
        self.last.start = offset.saturating_sub(u64::from(header.in_group));
        let inside = self.holes.last().map(|(hole, _)| *hole).filter(|hole| *hole >= self.last.start);
        self.last.first_hole = inside;
    }

    /// Notes the damage before the next block, and goes on there.
    fn pass_hole(&mut self, behind: Behind, visit: &mut impl FnMut(u64, &BlockHeader)) {
        for (offset, header) in behind.damaged {
            let hole = if header.group == self.last.number { self.at } else { offset };
            self.enter_group(&header, offset, visit);
            self.last.first_hole.get_or_insert(hole);
            self.last.blocks.push((offset, header));
        }
        if behind.group == self.last.number {
            self.last.first_hole.get_or_insert(self.at);
        }
        self.holes.push((self.at, behind.offset - self.at));
        self.at = behind.offset;
    }

    /// Where the blocks end, once it is known that nothing comes behind `at`.
    ///
    /// Of the last group nobody knows whether it was synced. A part of it that is no whole block, with nothing behind, was not: it is
    /// cut. With a block behind it was not either if the power was cut, as a disk writes in any order; otherwise it is damage.
    fn end_of_last_group(&self, source: &mut Source<'_>, ending: Ending) -> io::Result<u64> {
        if ending == Ending::PowerCut {
            return Ok(self.last.first_hole.unwrap_or(self.at));
        }
        for (offset, header) in self.last.blocks.iter().rev() {
            if body_of(source, *offset, header)?.is_some() {
                return Ok(offset + header.total_len());
            }
        }
        Ok(if self.last.blocks.is_empty() { self.at } else { self.last.start })
    }
}

/// Bytes behind the end that were to become blocks, as far as that can be told.
fn torn_bytes(source: &mut Source<'_>, place: &Place, end: u64, used_len: u64) -> io::Result<u64> {
    if end < used_len {
        return torn_len(source, place, end);
    }
    // The zeros that a commit puts behind its blocks are no loss.
    let mut torn = 0;
    let mut at = end;
    while at < source.end() {
        let bytes = source.fetch(at, usize::try_from(WINDOW - at % WINDOW).unwrap_or(0))?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            torn = at + last as u64 + 1 - end;
        }
        if bytes.is_empty() {
            break;
        }
        at += bytes.len() as u64;
    }
    Ok(torn)
}

//! The bytes of a simulated file: as they are read now, as they are durable, and the changes between.

use std::io::{self, ErrorKind};
use std::mem;
use std::ops::Range;

use super::PowerCut;

/// What a disk writes at once.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
    /// Changes that a failed sync should have made durable: no later sync will. Still some of them may be found after a power cut, but
    /// not in place of what was synced later.
    lost: Vec<Change>,
    /// Reads of these bytes fail.
    unreadable: Vec<Range<u64>>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Box<[u8]> },
    Len(usize),
}

impl Content {
    fn durable(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), durable: bytes, ..Self::default() }
    }

    pub(super) fn len(&self) -> u64 {
        self.now.len() as u64
    }

    pub(super) fn make_unreadable(&mut self, bytes: Range<u64>) {
        self.unreadable.push(bytes);
    }

    /// Does a read of `len` bytes at `offset` meet none that cannot be read?
    pub(super) fn is_readable(&self, offset: u64, len: usize) -> bool {
        let end = offset.saturating_add(len as u64);
        !self.unreadable.iter().any(|bytes| bytes.start < end && offset < bytes.end)
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        let there = usize::try_from(offset).ok().and_then(|offset| self.now.get(offset..)).unwrap_or_default();
        let n = there.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), there.get(..n)) {
            to.copy_from_slice(from);
        }
        n
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        let Ok(offset) = usize::try_from(offset) else { return };
        put(&mut self.now, offset, bytes);
        self.pending.push(Change::Write { offset, bytes: bytes.into() });
    }

    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| ErrorKind::FileTooLarge)?;
        self.now.resize(len, 0);
        self.pending.push(Change::Len(len));
        Ok(())
    }

    pub(super) fn sync(&mut self, succeeds: bool) {
        if succeeds {
            for change in self.pending.drain(..) {
                self.lost = mem::take(&mut self.lost).into_iter().flat_map(|lost| lost.without(&change)).collect();
                change.apply(&mut self.durable);
            }
        } else {
            self.lost.append(&mut self.pending);
        }
    }

    /// What is found after a power cut.
    pub(super) fn after(&self, how: PowerCut, random: &mut Random) -> Self {
        match how {
            PowerCut::KeepAll => Self::durable(self.now.clone()),
            PowerCut::LoseUnsynced => Self::durable(self.durable.clone()),
            PowerCut::Random(_) => {
                let mut bytes = self.durable.clone();
                self.lost.iter().chain(&self.pending).for_each(|change| change.apply_some(&mut bytes, random));
                Self::durable(bytes)
            }
        }
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => put(to, *offset, bytes),
            Self::Len(len) => to.resize(*len, 0),
        }
    }

    /// What is left of this change once `later` is durable.
    fn without(self, later: &Self) -> impl Iterator<Item = Self> {
        let (before, behind) = match (&self, later) {
            // The length that is synced is the last one.
            (Self::Len(_), _) => (None, None),
            (Self::Write { offset, bytes }, Self::Len(len)) => (Self::part(*offset, bytes, 0, *len), None),
            (Self::Write { offset, bytes }, Self::Write { offset: from, bytes: over }) => {
                (Self::part(*offset, bytes, 0, *from), Self::part(*offset, bytes, from + over.len(), usize::MAX))
            }
        };
        before.into_iter().chain(behind)
    }

    /// Of the bytes written at `offset` those at `from..to`, if there are any.
    fn part(offset: usize, bytes: &[u8], from: usize, to: usize) -> Option<Self> {
        let start = from.saturating_sub(offset);
        let part = bytes.get(start..to.saturating_sub(offset).min(bytes.len())).filter(|part| !part.is_empty())?;
        Some(Self::Write { offset: offset + start, bytes: part.into() })
    }

    fn apply_some(&self, to: &mut Vec<u8>, random: &mut Random) {
        let Self::Write { offset, bytes } = self else {
            if random.one_in(2) {
                self.apply(to);
            }
            return;
        };
        let how = random.below(5);
        if how == 0 && to.len() < offset + bytes.len() {
            // The length came to the disk, the bytes did not.
            to.resize(offset + bytes.len(), 0);
        }
        let until = match how {
            0 | 1 => 0,
            2 => random.below(bytes.len() as u64 + 1),
            _ => u64::MAX,
        };
        let mut at = 0;
        while at < bytes.len() && (at as u64) < until {
            let end = bytes.len().min((offset + at) / SECTOR * SECTOR + SECTOR - offset);
            if how != 4 || random.one_in(2) {
                put(to, offset + at, bytes.get(at..end).unwrap_or_default());
            }
            at = end;
        }
    }
}

fn put(to: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if to.len() < offset + bytes.len() {
        to.resize(offset + bytes.len(), 0);
    }
    if let Some(place) = to.get_mut(offset..offset + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Numbers from a seed (SplitMix64): the same ones for the same seed.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).checked_rem(limit).unwrap_or(0)
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

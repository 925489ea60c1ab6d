//! The index: how far the queue has been read and written.
//!
//! A file of two slots, each in a page of its own, written in turn: whatever happens to the one that is being written, the other is
//! whole. The slot with the higher sequence counts.
//!
//! ```text
//! slot  0   8  magic "HQFQIDX\n"
//!       8   4  version, 1
//!      12   4  CRC32C of bytes 16 to 151
//!      16   8  sequence: rises by one with every write
//!      24  24  read position: number of the file, offset in it, running number of the element there (8 each);
//!              what is before it was polled
//!      48  24  write position, likewise; everything before it is synced
//!      72   1  1: closed, the write position is the end. 0: in use, there may be more
//!      73   1  length of the boot id
//!      74  64  boot id of the machine, cut to 64 bytes, zeros behind
//!     138  14  zeros
//! ```

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use super::format::{u32_at, u64_at};
use crate::disk::{Disk, DiskFile, read_file, write_all_at, write_file_atomically};

const MAGIC: &[u8; 8] = b"HQFQIDX\n";
const VERSION: u32 = 1;
const SLOT_LEN: usize = 152;
const PAGE: usize = 4096;
const BOOT_LEN: usize = 64;

/// A place in the queue. Zero lies before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) segment: u64,
    pub(super) offset: u64,
    /// The running number of the element there.
    pub(super) element: u64,
}

/// What the index keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Positions {
    pub(super) read: Position,
    pub(super) write: Position,
    pub(super) is_closed: bool,
    pub(super) boot: Vec<u8>,
}

/// The open index.
#[derive(Debug)]
pub(super) struct Index {
    file: Arc<dyn DiskFile>,
    /// That of the last write that succeeded.
    sequence: u64,
}

impl Index {
    /// What the index holds. `None`: there is no index, or (`Err` inside) what is there cannot be one.
    pub(super) fn read(disk: &dyn Disk, path: &Path) -> io::Result<Option<Result<(u64, Positions), String>>> {
        if !disk.exists(path)? {
            return Ok(None);
        }
        let bytes = match read_file(disk, path, 1 << 20) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Ok(Some(Err("it is too large".to_owned())));
            }
            Err(error) => return Err(error),
        };
        let slots = [bytes.get(..PAGE), bytes.get(PAGE..2 * PAGE)];
        let newest = slots.into_iter().flatten().filter_map(decode).max_by_key(|(sequence, _)| *sequence);
        Ok(Some(newest.ok_or_else(|| "neither of its two slots is whole".to_owned())))
    }

    /// Puts an index with these positions in place of what is there, durably.
    pub(super) fn create(disk: &dyn Disk, path: &Path, positions: &Positions) -> io::Result<Self> {
        let mut bytes = vec![0; 2 * PAGE];
        place(&mut bytes, slot_of(0), &encode(0, positions));
        write_file_atomically(disk, path, &bytes)?;
        Ok(Self { file: disk.open(path)?, sequence: 0 })
    }

    /// One that was read, with what was found. That is written once more: if its sync had failed it would not be durable, and the next
    /// write goes over the slot before it.
    pub(super) fn open(disk: &dyn Disk, path: &Path, sequence: u64, found: &Positions) -> io::Result<Self> {
        let mut index = Self { file: disk.open(path)?, sequence: sequence.saturating_sub(1) };
        if sequence > 0 {
            index.write(found)?;
        }
        Ok(index)
    }

    /// Writes and syncs. After an error either of the positions may be found; trying again is safe, as the slot is written anew.
    pub(super) fn write(&mut self, positions: &Positions) -> io::Result<()> {
        let sequence = self.sequence + 1;
        let at = slot_of(sequence) as u64;
        write_all_at(&*self.file, &mut [IoSlice::new(&encode(sequence, positions))], at)?;
        self.file.sync_data()?;
        self.sequence = sequence;
        Ok(())
    }
}

const fn slot_of(sequence: u64) -> usize {
    if sequence.is_multiple_of(2) { 0 } else { PAGE }
}

fn encode(sequence: u64, positions: &Positions) -> Vec<u8> {
    let mut rest = sequence.to_be_bytes().to_vec();
    for position in [positions.read, positions.write] {
        let fields = [position.segment, position.offset, position.element];
        fields.iter().for_each(|n| rest.extend_from_slice(&n.to_be_bytes()));
    }
    let boot = positions.boot.get(..BOOT_LEN).unwrap_or(&positions.boot);
    rest.push(u8::from(positions.is_closed));
    rest.push(u8::try_from(boot.len()).unwrap_or(0));
    rest.extend_from_slice(boot);
    rest.resize(SLOT_LEN - 16, 0);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&crc32c::crc32c(&rest).to_be_bytes());
    out.extend_from_slice(&rest);
    out
}

fn decode(slot: &[u8]) -> Option<(u64, Positions)> {
    let slot = slot.get(..SLOT_LEN)?;
    if !slot.starts_with(MAGIC) || u32_at(slot, 8)? != VERSION || u32_at(slot, 12)? != crc32c::crc32c(slot.get(16..)?) {
        return None;
    }
    let position =
        |at| Some(Position { segment: u64_at(slot, at)?, offset: u64_at(slot, at + 8)?, element: u64_at(slot, at + 16)? });
    let boot_len = usize::from(*slot.get(73)?);
    let positions = Positions {
        read: position(24)?,
        write: position(48)?,
        is_closed: *slot.get(72)? == 1,
        boot: slot.get(74..74 + boot_len.min(BOOT_LEN))?.to_vec(),
    };
    Some((u64_at(slot, 16)?, positions))
}

fn place(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::{PowerCut, SimulatedDisk, create_dir_durably};

    fn position() -> impl Strategy<Value = Position> {
        any::<(u64, u64, u64)>().prop_map(|(segment, offset, element)| Position { segment, offset, element })
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            read in position(), write in position(), is_closed: bool, sequence: u64, boot in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let positions = Positions { read, write, is_closed, boot };
            let bytes = encode(sequence, &positions);
            prop_assert_eq!(bytes.len(), SLOT_LEN);
            prop_assert_eq!(decode(&bytes), Some((sequence, positions)));
        }

        #[test]
        fn a_changed_bit_is_noticed(at in 0..SLOT_LEN, bit in 0..8u8) {
            let mut bytes = encode(3, &Positions::default());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode(&bytes), None);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decode(&bytes), None);
        }
    }

    #[test]
    fn after_any_cut_the_old_or_the_new_positions_are_found() {
        let path = Path::new("/q/index");
        let at = |element| Positions { read: Position { element, ..Position::default() }, ..Positions::default() };
        for seed in 0..300 {
            let disk = SimulatedDisk::new();
            create_dir_durably(&disk, Path::new("/q")).unwrap();
            let mut index = Index::create(&disk, path, &at(0)).unwrap();
            let mut last = 0;
            disk.cut_power_after(Some(seed % 12));
            while last < 10 && index.write(&at(last + 1)).is_ok() {
                last += 1;
            }
            let after = disk.power_cut(PowerCut::Random(seed));
            let (_, found) = Index::read(&after, path).unwrap().unwrap().unwrap();
            assert!(found == at(last) || found == at(last + 1), "seed {seed}: {found:?} after {last}");
        }
    }
}

//! What a run leaves for the next one: how it ended, and how far the index goes. `<data>/checkpoint`, replaced as a whole.
//!
//! ```text
//!      0     8  magic "HQCKPT1\n"
//!      8     4  CRC32C of all that follows
//!     12    16  generation of the index; zeros: there is none
//!     28     1  1: the store was closed
//!     29     1  length of the boot id, which follows; 0: it is not known
//!      …     …  to the end, for each queue: uid (16), the last epoch that is in the index (8), 1 if the queue was closed (1),
//!               length of the boot id under which it was left open (1), and that
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::disk::{Disk, read_file, write_file_atomically};
use crate::log::format::bytes::Taker;
use crate::log::recovery::Ending;

const MAGIC: &[u8; 8] = b"HQCKPT1\n";

/// No checkpoint is longer: that of a hundred thousand queues fits. Bytes.
const MAX_LEN: u64 = 16 << 20;

/// How a run stands, as the next one will find it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// Which index the entries of `queues` speak of.
    pub(super) generation: Option<Uuid>,
    pub(super) closed: bool,
    pub(super) boot: Option<String>,
    pub(super) queues: BTreeMap<Uuid, QueueMark>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueMark {
    /// Segments up to this epoch are in the index.
    pub(super) indexed_epoch: u64,
    pub(super) left: Left,
}

/// How the last run that had a queue open left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Closed,
    /// Open, under that boot of the machine.
    Open(Option<String>),
}

impl Default for Left {
    fn default() -> Self {
        Self::Open(None)
    }
}

impl Left {
    /// What a run under `boot` has to expect.
    pub(super) fn ending(&self, boot: Option<&str>) -> Ending {
        match self {
            Self::Closed => Ending::Clean,
            Self::Open(left) if left.is_some() && left.as_deref() == boot => Ending::Killed,
            Self::Open(_) => Ending::PowerCut,
        }
    }
}

impl Checkpoint {
    /// What a run finds, which is another one than that which left it: a queue is closed only if the store was.
    pub(super) fn begin_run(mut self, boot: Option<String>) -> Self {
        if !self.closed {
            for mark in self.queues.values_mut().filter(|mark| mark.left == Left::Closed) {
                mark.left = Left::Open(self.boot.clone());
            }
        }
        self.closed = false;
        self.boot = boot;
        self
    }

    /// Did the run end without a close, so that the index may have lost what a power cut takes?
    pub(super) fn lost_power(&self, boot: Option<&str>) -> bool {
        !self.closed && (boot.is_none() || self.boot.as_deref() != boot)
    }

    pub(super) fn path(data: &Path) -> PathBuf {
        data.join("checkpoint")
    }

    /// `None` if there is none, or a damaged one.
    pub(super) fn read(disk: &dyn Disk, data: &Path) -> io::Result<Option<Self>> {
        match read_file(disk, &Self::path(data), MAX_LEN) {
            Ok(bytes) => Ok(Self::decode(&bytes)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::FileTooLarge) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, disk: &dyn Disk, data: &Path) -> io::Result<()> {
        write_file_atomically(disk, &Self::path(data), &self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let mut rest = self.generation.unwrap_or(Uuid::nil()).as_bytes().to_vec();
        rest.push(u8::from(self.closed));
        put_text(&mut rest, self.boot.as_deref());
        for (uid, mark) in &self.queues {
            rest.extend_from_slice(uid.as_bytes());
            rest.extend_from_slice(&mark.indexed_epoch.to_be_bytes());
            rest.push(u8::from(mark.left == Left::Closed));
            let boot = if let Left::Open(boot) = &mark.left { boot.as_deref() } else { None };
            put_text(&mut rest, boot);
        }
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&crc32c::crc32c(&rest).to_be_bytes());
        out.extend_from_slice(&rest);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut taker = Taker(bytes);
        if taker.take::<8>()? != *MAGIC || taker.u32()? != crc32c::crc32c(taker.0) {
            return None;
        }
        let generation = Some(Uuid::from_bytes(taker.take()?)).filter(|generation| !generation.is_nil());
        let mut found = Self { generation, closed: taker.u8()? == 1, boot: take_text(&mut taker)?, queues: BTreeMap::new() };
        while !taker.0.is_empty() {
            let uid = Uuid::from_bytes(taker.take()?);
            let indexed_epoch = taker.u64()?;
            let closed = taker.u8()? == 1;
            let boot = take_text(&mut taker)?;
            let left = if closed { Left::Closed } else { Left::Open(boot) };
            found.queues.insert(uid, QueueMark { indexed_epoch, left });
        }
        Some(found)
    }
}

fn put_text(out: &mut Vec<u8>, text: Option<&str>) {
    let text = text.filter(|text| text.len() <= usize::from(u8::MAX)).unwrap_or_default();
    out.push(u8::try_from(text.len()).unwrap_or(0));
    out.extend_from_slice(text.as_bytes());
}

/// An empty text stands for none.
fn take_text(taker: &mut Taker<'_>) -> Option<Option<String>> {
    let len = usize::from(taker.u8()?);
    let text = String::from_utf8(taker.slice(len)?.to_vec()).ok()?;
    Some((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lefts() -> impl Strategy<Value = Left> {
        prop_oneof![Just(Left::Closed), proptest::option::of("[a-z]{1,40}").prop_map(Left::Open)]
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            head: (u128, bool), boot in proptest::option::of("[a-z]{1,40}"),
            queues in proptest::collection::btree_map(any::<u128>(), (any::<u64>(), lefts()), 0..20),
        ) {
            let queues = queues.into_iter().map(|(uid, (indexed_epoch, left))| (Uuid::from_u128(uid), QueueMark { indexed_epoch, left }));
            let generation = Some(Uuid::from_u128(head.0)).filter(|generation| !generation.is_nil());
            let checkpoint = Checkpoint { generation, closed: head.1, boot, queues: queues.collect() };
            prop_assert_eq!(Checkpoint::decode(&checkpoint.encode()), Some(checkpoint));
        }

        #[test]
        fn a_changed_bit_is_found(at: prop::sample::Index, bit in 0..8) {
            let queues = BTreeMap::from([(Uuid::from_u128(3), QueueMark { indexed_epoch: 7, left: Left::Closed })]);
            let mut bytes = Checkpoint { queues, ..Checkpoint::default() }.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= 1u8 << bit;
            prop_assert_eq!(Checkpoint::decode(&bytes), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = Checkpoint::decode(&bytes);
        }
    }

    #[test]
    fn how_a_queue_was_left_is_remembered_over_runs_that_do_not_open_it() {
        let uid = Uuid::from_u128(1);
        let queues = BTreeMap::from([(uid, QueueMark { indexed_epoch: 7, left: Left::Closed })]);
        let boot = |text: &str| Some(text.to_owned());
        let closed = Checkpoint { closed: true, boot: boot("a"), queues, ..Checkpoint::default() };
        let ending = |checkpoint: &Checkpoint, boot| checkpoint.queues[&uid].left.ending(Some(boot));

        let second = closed.begin_run(boot("a"));
        assert_eq!(ending(&second, "a"), Ending::Clean);
        // The second run is killed, the third closed: the queue may have been open in the second.
        assert!(!second.lost_power(Some("a")) && second.lost_power(Some("b")) && second.lost_power(None));
        let third = second.begin_run(boot("a"));
        assert_eq!(ending(&third, "a"), Ending::Killed);
        let fourth = Checkpoint { closed: true, ..third }.begin_run(boot("b"));
        assert_eq!(ending(&fourth, "b"), Ending::PowerCut);
    }
}

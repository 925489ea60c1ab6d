//! What is to go wrong on a simulated disk.

use std::io;

/// `EIO`, `ENOSPC`, `EMFILE` of Linux.
const INPUT_OUTPUT: i32 = 5;
const NO_SPACE: i32 = 28;
const TOO_MANY_OPEN_FILES: i32 = 24;

/// The faults that are set, and how far their counts have come.
#[derive(Debug, Default)]
pub(super) struct Faults {
    operations: u64,
    /// Operations left; 0 and the power is off.
    left: Option<u64>,
    off: bool,
    free_bytes: Option<u64>,
    writes: Countdown,
    syncs: Countdown,
    refuse_opens: bool,
    write_limit: Option<usize>,
}

/// Some calls go well, then some fail.
#[derive(Debug, Default)]
struct Countdown {
    well: u64,
    failing: u64,
}

impl Countdown {
    fn fails(&mut self) -> bool {
        if self.failing == 0 {
            return false;
        }
        if self.well > 0 {
            self.well -= 1;
            return false;
        }
        self.failing -= 1;
        true
    }
}

impl Faults {
    pub(super) fn cut_now(&mut self) {
        self.off = true;
    }

    pub(super) fn set_cut(&mut self, operations: Option<u64>) {
        self.left = operations;
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn set_free_bytes(&mut self, bytes: Option<u64>) {
        self.free_bytes = bytes;
    }

    pub(super) fn fail_writes(&mut self, well: u64, failing: u64) {
        self.writes = Countdown { well, failing };
    }

    pub(super) fn fail_syncs(&mut self, well: u64, failing: u64) {
        self.syncs = Countdown { well, failing };
    }

    pub(super) fn refuse_opens(&mut self, refuse: bool) {
        self.refuse_opens = refuse;
    }

    pub(super) fn set_write_limit(&mut self, bytes: Option<usize>) {
        self.write_limit = bytes;
    }

    /// Is there power?
    pub(super) fn power(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// May a file descriptor be had?
    pub(super) fn open(&self) -> io::Result<()> {
        self.power()?;
        if self.refuse_opens { Err(io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES)) } else { Ok(()) }
    }

    /// Counts an operation. An error if the power fails during it.
    pub(super) fn operation(&mut self) -> io::Result<()> {
        self.operations += 1;
        if let Some(left) = &mut self.left {
            self.off |= *left == 0;
            *left = left.saturating_sub(1);
        }
        self.power()
    }

    /// Counts a write.
    pub(super) fn write(&mut self) -> io::Result<()> {
        self.power()?;
        if self.writes.fails() { Err(io::Error::from_raw_os_error(INPUT_OUTPUT)) } else { Ok(()) }
    }

    /// What a read of bytes that cannot be read ends in.
    pub(super) fn unreadable() -> io::Error {
        io::Error::from_raw_os_error(INPUT_OUTPUT)
    }

    /// Counts a sync.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.syncs.fails() { Err(io::Error::from_raw_os_error(INPUT_OUTPUT)) } else { Ok(()) }
    }

    /// As many of `bytes` as one write takes and the disk has room for.
    pub(super) fn admit<'a>(&mut self, bytes: &'a [u8], offset: u64, len: u64) -> io::Result<&'a [u8]> {
        let mut taken = bytes.len().min(self.write_limit.unwrap_or(usize::MAX));
        if let Some(free) = &mut self.free_bytes {
            let room = len.saturating_add(*free).saturating_sub(offset);
            taken = taken.min(usize::try_from(room).unwrap_or(usize::MAX));
            if taken == 0 && !bytes.is_empty() {
                return Err(io::Error::from_raw_os_error(NO_SPACE));
            }
            *free = free.saturating_sub((offset + taken as u64).saturating_sub(len));
        }
        Ok(bytes.get(..taken).unwrap_or(bytes))
    }

    /// Gives back space.
    pub(super) fn free(&mut self, bytes: u64) {
        if let Some(free) = &mut self.free_bytes {
            *free = free.saturating_add(bytes);
        }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.free_bytes.unwrap_or(1 << 50)
    }
}

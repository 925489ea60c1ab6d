//! The file that is written.

use std::io::{self, IoSlice};
use std::sync::Arc;

use super::error::{FileQueueError, is_no_space};
use super::folder;
use super::shared::Shared;
use crate::disk::{DiskFile, write_all_at, zeros};

/// A file grows by so many zeros at most: a sync that has to note a new length takes twice as long.
const GROWTH: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// The file that is written.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) number: u64,
    pub(super) epoch: u64,
    /// Elements end here.
    pub(super) end: u64,
    /// Bytes of the file that are there already.
    pub(super) file_len: u64,
}

impl Active {
    /// Writes `pieces`, of `len` bytes in all, at the end.
    pub(super) fn write<'a, P: Iterator<Item = &'a [u8]>>(
        &mut self,
        pieces: &dyn Fn() -> P,
        len: u64,
        shared: &Shared,
    ) -> Result<(), FileQueueError> {
        let end = self.end + len;
        let grown = if end > self.file_len { self.grown_len(end, shared.options.segment_bytes) } else { self.file_len };
        let write = |until: u64| {
            let mut slices: Vec<IoSlice<'_>> = pieces().map(IoSlice::new).collect();
            slices.extend(zeros(until - end));
            write_all_at(&*self.file, &mut slices, self.end)
        };
        let mut until = if end > self.file_len { grown } else { end };
        let mut done = write(until);
        if until > end && done.as_ref().is_err_and(is_no_space) {
            // There may be room without the zeros.
            until = end;
            done = write(until);
        }
        match done {
            Ok(()) => {
                self.file_len = self.file_len.max(until);
                Ok(())
            }
            Err(error) if is_no_space(&error) => Err(self.take_back(len, shared, &error)),
            Err(error) => Err(shared.poison("write", &error)),
        }
    }

    /// Up to twice what it holds, in whole pages.
    fn grown_len(&self, end: u64, segment_bytes: u64) -> u64 {
        (end + end.min(GROWTH)).next_multiple_of(PAGE).min(segment_bytes).max(end)
    }

    /// Some of what did not fit may be there, and some of it whole: it must not come back.
    fn take_back(&mut self, len: u64, shared: &Shared, why: &io::Error) -> FileQueueError {
        let failure = shared.failure("write", &folder::segment_path(&shared.dir, self.number), why);
        let clear = || {
            let file_len = self.file.len()?;
            let until = file_len.min(self.end + len);
            let mut slices: Vec<IoSlice<'_>> = zeros(until.saturating_sub(self.end)).collect();
            write_all_at(&*self.file, &mut slices, self.end)?;
            self.file.sync_data()?;
            Ok(file_len)
        };
        match clear() {
            Ok(file_len) => {
                self.file_len = file_len;
                failure
            }
            Err(error) => shared.poison("take back what did not fit", &error),
        }
    }
}

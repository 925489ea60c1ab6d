//! Writing a journal file from its beginning, under a name of its own, and putting it in place of the old one.

use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::format::{RecordBatch, encode_file_header};
use crate::disk::{Disk, DiskFile, write_all_at};

/// A block of a snapshot holds about so much. Bytes.
const BLOCK_BYTES: usize = 1024 * 1024;

/// Takes the records that a journal is to begin with.
#[derive(Debug)]
pub struct Snapshot<'a> {
    file: &'a dyn DiskFile,
    epoch: u64,
    number: u64,
    end: u64,
    batch: RecordBatch,
    bytes: Vec<u8>,
    failed: Option<io::Error>,
}

impl Snapshot<'_> {
    /// Adds a record made of `parts`, one behind the other.
    pub fn push(&mut self, parts: &[&[u8]]) {
        self.batch.push(parts);
        if self.batch.byte_len() >= BLOCK_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.batch.encode(self.epoch, self.number, &mut self.bytes);
            self.batch.clear();
            self.number += 1;
        }
        if self.failed.is_some() {
            return self.bytes.clear();
        }
        match write_all_at(self.file, &mut [IoSlice::new(&self.bytes)], self.end) {
            Ok(()) => self.end += self.bytes.len() as u64,
            Err(error) => self.failed = Some(error),
        }
        self.bytes.clear();
    }
}

/// A file that begins with a snapshot, synced, under its temporary name.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) epoch: u64,
    pub(super) end: u64,
    pub(super) next_number: u64,
}

/// The name that a new file has until it is whole.
pub(super) fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Writes and syncs a file under the temporary name of `path`. After an error what is there under that name is of no use.
pub(super) fn write_snapshot(disk: &dyn Disk, path: &Path, fill: &mut dyn FnMut(&mut Snapshot<'_>)) -> io::Result<Written> {
    let temporary = temporary_name(path);
    remove_if_there(disk, &temporary)?;
    let file = disk.create(&temporary)?;
    let (epoch, _) = Uuid::new_v4().as_u64_pair();
    let mut snapshot = Snapshot {
        file: &*file,
        epoch,
        number: 0,
        end: 0,
        batch: RecordBatch::default(),
        bytes: encode_file_header(epoch),
        failed: None,
    };
    fill(&mut snapshot);
    snapshot.flush();
    let Snapshot { end, number, failed, .. } = snapshot;
    failed.map_or(Ok(()), Err)?;
    file.sync_data()?;
    Ok(Written { epoch, end, next_number: number, file })
}

/// Removes a file; one that is not there is no error.
pub(super) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

mod appends;
mod damage;
mod faults;
mod power;
mod rewriting;

use std::path::Path;
use std::sync::Arc;

use super::{Journal, JournalError, RecordBatch};
use crate::disk::{Disk, SimulatedDisk, read_file, write_all_at};

const DIR: &str = "/data/meta";
const FILE: &str = "/data/meta/journal";

/// Opens the journal of a disk, and returns its records as well.
fn open(disk: &SimulatedDisk) -> Result<(Journal, Vec<String>), JournalError> {
    let mut records = Vec::new();
    let journal = Journal::open(Arc::new(disk.clone()), Path::new(DIR), "journal", &mut |record| {
        records.push(String::from_utf8(record.to_vec()).map_err(|error| error.to_string())?);
        Ok(())
    })?;
    Ok((journal, records))
}

fn records_of(disk: &SimulatedDisk) -> Vec<String> {
    open(disk).unwrap().1
}

fn batch(records: &[&str]) -> RecordBatch {
    let mut batch = RecordBatch::default();
    records.iter().for_each(|record| batch.push(&[record.as_bytes()]));
    batch
}

fn bytes_of(disk: &SimulatedDisk) -> Vec<u8> {
    read_file(disk, Path::new(FILE), 1 << 30).unwrap()
}

/// A disk with only this journal file.
fn disk_with(bytes: &[u8]) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    let file = disk.create(Path::new(FILE)).unwrap();
    write_all_at(&*file, &mut [std::io::IoSlice::new(bytes)], 0).unwrap();
    disk
}

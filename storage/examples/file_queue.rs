//! A spool: one thread takes orders, another works them off; both may be killed at any time.
//!
//! `cargo run -p hqueue-storage --example file_queue [FOLDER]`; run it again with the same folder and it goes on where it was.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread;

use hqueue_storage::file_queue::{FileQueue, FileQueueError, FileQueueOptions, FileQueueReader, SyncWhen};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("hqueue-spool"), PathBuf::from);
    let worked_off = run(&folder, 1000)?;
    println!("{worked_off} orders worked off; the spool is in {}", folder.display());
    Ok(())
}

/// Takes `orders` orders while another thread works them off. Returns how many that were, with those left from the time before.
pub fn run(folder: &Path, orders: u32) -> Outcome<u32> {
    // An order that was taken is on the disk. One that was worked off is noted a little later: after a crash the last few come again.
    let options = FileQueueOptions { offers: SyncWhen::Each, ..FileQueueOptions::default() };
    let queue = FileQueue::open_with(folder, options)?;
    println!("{} orders are left from the time before", queue.len());
    let (mut writer, mut reader) = queue.split();
    let worker = thread::spawn(move || work_off(&mut reader));
    for number in 0..orders {
        writer.offer(format!("order {number}").as_bytes())?;
    }
    // The worker ends when everything is worked off.
    drop(writer);
    worker.join().map_err(|_| "the worker has met a bug")?
}

fn work_off(reader: &mut FileQueueReader) -> Outcome<u32> {
    let mut count = 0;
    loop {
        match reader.poll_until_end() {
            Ok(Some(_order)) => count += 1,
            Ok(None) => {
                reader.sync()?;
                return Ok(count);
            }
            // They cannot be brought back. What comes behind them is there.
            Err(lost @ (FileQueueError::Damaged { .. } | FileQueueError::Missing { .. })) => eprintln!("{lost}"),
            Err(error) => return Err(error.into()),
        }
    }
}

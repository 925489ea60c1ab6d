//! The file system as the log and the journal see it: [`RealDisk`] is the machine's, [`SimulatedDisk`] one in memory whose power can
//! be cut and whose calls can be made to fail.
//!
//! # What a disk promises
//! * What was written to a file is read back at once, but survives a power cut only once [`DiskFile::sync_data`] has succeeded after it.
//! * A file or folder that was created, renamed or removed is so after a power cut only once [`Disk::sync_dir`] has succeeded on the
//!   folder that holds its name. A rename within a folder is atomic.
//! * After a `sync_data` that failed nobody knows which of the bytes written since the last one that succeeded are there, and trying
//!   again tells nothing.

mod real;
mod simulated;
mod whole;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use real::RealDisk;
pub use simulated::{PowerCut, SimulatedDisk};
pub use whole::{create_dir_durably, read_exact_at, read_file, write_all_at, write_file_atomically, zeros};

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: OsString,
    pub is_dir: bool,
}

/// A file system.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Creates an empty file for reading and writing; `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that is there for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file or folder another name, in place of what may have that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Whoever has it open may go on using it.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// What is in a folder, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;

    /// Is there a file or folder of that name?
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Creates a folder and those above it that are missing. See [`create_dir_durably`] for one that survives a power cut.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Removes a folder with everything in it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Opens a folder, to make the names in it durable later, when there may be no file descriptor to be had.
    fn open_dir(&self, dir: &Path) -> io::Result<Arc<dyn DiskDir>>;

    /// Makes the names in a folder durable, not those in the folders below.
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.open_dir(dir)?.sync()
    }

    /// Bytes that may still be written to the disk that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    /// Another text after each start of the machine: while it is the same, everything that was written is there, synced or not.
    /// `None` if that cannot be known.
    fn boot_id(&self) -> Option<String>;

    /// Takes the lock that the file `path` stands for, making the file if it is not there; `WouldBlock` if somebody has it, in this
    /// process or another. It is given up when what is returned is dropped, and when the process ends, however it does.
    fn try_lock(&self, _path: &Path) -> io::Result<Box<dyn DiskLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where in the machine's own file system a library that knows nothing of this trait may keep files which stand for `path`.
    /// `None`: nowhere.
    fn native_path(&self, path: &Path) -> Option<PathBuf>;
}

/// A lock that is held.
pub trait DiskLock: Debug + Send + Sync + 'static {}

/// An open folder.
pub trait DiskDir: Debug + Send + Sync + 'static {
    /// Makes the names in it durable, not those in the folders below.
    fn sync(&self) -> io::Result<()>;
}

/// An open file. Calls may come from several threads at once.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Reads what is at `offset`, maybe less than asked for; 0 only at the end (or for an empty `buffer`).
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes the slices one after the other from `offset` on, maybe fewer bytes than there are. Takes at most [`MAX_SLICES`] slices
    /// into account. [`write_all_at`] writes all of them.
    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;

    /// Makes durable what was written, and the length.
    fn sync_data(&self) -> io::Result<()>;

    /// Says that these bytes, which are durable, are not going to be read soon: whatever keeps them in memory may let go of them.
    fn let_go(&self, _bytes: Range<u64>) {}

    /// Cuts the file, or extends it with zeros. Bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Bytes.
    fn len(&self) -> io::Result<u64>;

    /// Has it no bytes?
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Slices that one write takes at most: `IOV_MAX` of Linux.
pub const MAX_SLICES: usize = 1024;

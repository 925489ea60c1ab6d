//! Why a file queue did not do it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::options::BadFileQueueOption;
use crate::disk::Disk;

/// Each says what happened to the elements that the call was about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileQueueError {
    #[error("the file queue cannot be opened: {0}")]
    BadOption(#[from] BadFileQueueOption),
    /// Nothing was touched.
    #[error("the file queue {dir} is in use, by this process or another")]
    InUse { dir: PathBuf },
    /// Nothing was added.
    #[error("an element of {size} bytes: the limit is {limit}")]
    ElementTooLarge { size: usize, limit: usize },
    /// Nothing was added.
    #[error("elements that take {size} bytes at once, {header} of them for each: the limit is {limit}, what a segment holds", header = super::format::ELEMENT_HEADER_LEN)]
    BatchTooLarge { size: u64, limit: u64 },
    /// Nothing was added.
    #[error(
        "the file queue {dir} is full: with another segment its files would have {size} bytes, the limit is {limit}; polling makes room"
    )]
    Full { dir: PathBuf, size: u64, limit: u64 },
    /// Nothing was changed.
    #[error("no space on the disk of {path}: {free_bytes} bytes free")]
    NoSpace { path: PathBuf, free_bytes: u64 },
    /// An element of an offer that ended so may be there after the next opening, or not. Polling goes on.
    #[error("the file queue {dir} takes nothing more until it is reopened, since an earlier write failed: {reason}")]
    Poisoned { dir: PathBuf, reason: String },
    /// These elements are lost: what the disk holds of them is not what was written. They are passed, the next call goes on behind them.
    #[error("{path} is damaged at byte {offset}: {elements} elements are lost; the next call goes on behind them")]
    Damaged { path: PathBuf, offset: u64, elements: u64 },
    /// The file that held these elements is gone, or its header is damaged. They are passed, the next call goes on behind them.
    #[error("{elements} elements before {path} are lost with the file that held them; the next call goes on behind them")]
    Missing { path: PathBuf, elements: u64 },
    /// `what` was tried with `path`; nothing was removed or passed.
    #[error("{what} {path}: {reason}")]
    Io { what: &'static str, path: PathBuf, reason: String },
}

impl FileQueueError {
    /// May the same call succeed later without anybody's doing but polling?
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::Full { .. } | Self::Damaged { .. } | Self::Missing { .. })
    }

    pub(super) fn io(what: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), reason: error.to_string() }
    }

    /// A failure that has changed nothing.
    pub(super) fn of(disk: &dyn Disk, what: &'static str, path: &Path, error: &io::Error) -> Self {
        if is_no_space(error) {
            let free_bytes = disk.free_bytes(path.parent().unwrap_or(path)).unwrap_or(0);
            return Self::NoSpace { path: path.to_owned(), free_bytes };
        }
        Self::io(what, path, error)
    }
}

/// Is the disk, or what we may have of it, full?
pub(super) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

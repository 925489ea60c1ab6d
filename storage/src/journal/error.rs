use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a journal did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Nothing was changed; the same append works once there is space.
    #[error("no space on the disk of {path}: {free_bytes} bytes free")]
    NoSpace { path: PathBuf, free_bytes: u64 },
    /// What the disk holds is not certain any more.
    #[error("{path} refuses writes until it is reopened, since an earlier write failed: {reason}")]
    Poisoned { path: PathBuf, reason: String },
    /// Something that was synced is not what it was. The file is left as it is.
    #[error("{path} is damaged at byte {offset}: {reason}. Nothing was changed. {}", Remedy { path, offset: *offset })]
    Damaged { path: PathBuf, offset: u64, reason: String },
    #[error("{size} bytes of records at once: the limit is {limit}")]
    TooLarge { size: usize, limit: usize },
    /// `what` was tried with `path`; nothing that was acknowledged is touched by it.
    #[error("{what} {path}: {reason}")]
    Io { what: &'static str, path: PathBuf, reason: String },
}

impl JournalError {
    /// May the same call succeed later without anybody's doing?
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::NoSpace { .. })
    }

    pub(super) fn io(what: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), reason: error.to_string() }
    }
}

/// What to do about damage.
struct Remedy<'a> {
    path: &'a Path,
    offset: u64,
}

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset } = self;
        write!(f, "Put a good copy of the file in its place; or, to give up ")?;
        match offset {
            0 => write!(f, "all that it held, move it away"),
            _ => write!(f, "what was written from that byte on, keep a copy and run: truncate -s {offset} '{}'", path.display()),
        }
    }
}

/// Is the disk, or what we may have of it, full?
pub(super) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

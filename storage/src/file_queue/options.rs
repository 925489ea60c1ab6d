//! Every option of a file queue, with its default and limits.

use std::time::Duration;

use super::format::{DATA_START, ELEMENT_HEADER_LEN};

/// How a [`FileQueue`](super::FileQueue) works. It may differ from one opening to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileQueueOptions {
    /// A segment file has so many bytes at most. Default: 16 MiB; 64 KiB to 1 GiB.
    pub segment_bytes: u64,
    /// A larger element is refused. Default: 4 MiB; it must fit in a segment, of which 4128 bytes are taken.
    pub max_element_bytes: usize,
    /// All files of the queue together have so many bytes at most; an offer beyond is refused as `Full` until something is polled.
    /// Default: no limit but the disk; at least two segments.
    pub max_bytes: Option<u64>,
    /// When what was offered is synced. Default: `Each`.
    pub offers: SyncWhen,
    /// When it is synced that something was polled. Default: at most 100 ms later.
    pub polls: SyncWhen,
}

/// When a change is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWhen {
    /// Before the call returns.
    Each,
    /// So much later at most, whether anything else is called or not; a thread of the queue sees to it. Default for polls: 100 ms; 1 ms
    /// to an hour.
    Within(Duration),
}

/// An option is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} is {value}: it must be {limits}")]
pub struct BadFileQueueOption {
    pub option: &'static str,
    pub value: u64,
    pub limits: String,
}

impl Default for FileQueueOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            max_element_bytes: 4 << 20,
            max_bytes: None,
            offers: SyncWhen::Each,
            polls: SyncWhen::Within(Duration::from_millis(100)),
        }
    }
}

impl FileQueueOptions {
    /// Are all options within their limits?
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), BadFileQueueOption> {
        check("segment_bytes", self.segment_bytes, 64 << 10, 1 << 30)?;
        check("max_element_bytes", self.max_element_bytes as u64, 1, self.batch_limit() - ELEMENT_HEADER_LEN as u64)?;
        check("max_bytes", self.max_bytes.unwrap_or(u64::MAX), self.segment_bytes.saturating_mul(2), u64::MAX)?;
        for (option, when) in [("offers, in ms,", self.offers), ("polls, in ms,", self.polls)] {
            if let SyncWhen::Within(time) = when {
                check(option, u64::try_from(time.as_millis()).unwrap_or(u64::MAX), 1, 3_600_000)?;
            }
        }
        Ok(())
    }

    /// Elements that are offered together take so many bytes at most, each with its header.
    pub(super) fn batch_limit(&self) -> u64 {
        self.segment_bytes.saturating_sub(DATA_START)
    }
}

fn check(option: &'static str, value: u64, least: u64, most: u64) -> Result<(), BadFileQueueOption> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let limits = if most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
    Err(BadFileQueueOption { option, value, limits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_within_the_limits_and_refusals_name_them() {
        let good = FileQueueOptions::default();
        assert_eq!(good.check(), Ok(()));
        let said = |options: FileQueueOptions| options.check().unwrap_err().to_string();
        let small = FileQueueOptions { segment_bytes: 1, ..good.clone() };
        assert_eq!(said(small), "segment_bytes is 1: it must be 65536 to 1073741824");
        let wide = FileQueueOptions { segment_bytes: 1 << 20, max_element_bytes: 1 << 20, ..good.clone() };
        assert_eq!(said(wide), "max_element_bytes is 1048576: it must be 1 to 1044448");
        let full = FileQueueOptions { max_bytes: Some(1), ..good.clone() };
        assert_eq!(said(full), "max_bytes is 1: it must be 33554432 or more");
        let often = FileQueueOptions { polls: SyncWhen::Within(Duration::ZERO), ..good };
        assert_eq!(said(often), "polls, in ms, is 0: it must be 1 to 3600000");
    }
}

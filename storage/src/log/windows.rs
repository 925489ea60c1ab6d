//! The cache of windows: aligned pieces of segment files that the readers of all partitions share, so that a thousand partitions in
//! one log do not become a thousand times as many small reads.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::buffers::{Buffer, Buffers};
use super::counters::Counters;
use super::directory::Directory;
use super::files::FileKey;

/// Windows used last, up to a sum of bytes.
#[derive(Debug)]
pub(super) struct Windows {
    limit_bytes: usize,
    counters: Arc<Counters>,
    buffers: Arc<Buffers>,
    state: Mutex<State>,
}

type WindowKey = (FileKey, u64);

#[derive(Debug, Default)]
struct State {
    windows: HashMap<WindowKey, Window>,
    by_use: BTreeMap<u64, WindowKey>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Window {
    used: u64,
    bytes: Bytes,
    directory: Option<Arc<Directory>>,
}

impl Window {
    fn byte_len(&self) -> usize {
        self.bytes.len() + self.directory.as_ref().map_or(0, |directory| directory.byte_len())
    }
}

impl Windows {
    pub(super) fn new(limit_bytes: usize, counters: Arc<Counters>) -> Self {
        Self { limit_bytes, counters, buffers: Arc::default(), state: Mutex::default() }
    }

    /// The window, from memory if its first `wanted` bytes are there (that of an active segment grows), else by `read`.
    pub(super) fn get(
        &self,
        file: FileKey,
        number: u64,
        wanted: usize,
        read: impl FnOnce() -> io::Result<Bytes>,
    ) -> io::Result<Bytes> {
        let key = (file, number);
        if let Some(window) = self.peek(file, number).filter(|window| window.len() >= wanted) {
            return Ok(window);
        }
        let window = read()?;
        self.counters.read(window.len());
        self.lock().put(key, window.clone(), self.limit_bytes);
        Ok(window)
    }

    /// Memory to read into.
    pub(super) fn buffer(&self, len: usize) -> Buffer {
        Buffers::take(&self.buffers, len)
    }

    /// Counts a read past the windows.
    pub(super) fn count_read(&self, bytes: usize) {
        self.counters.read(bytes);
    }

    /// The window as far as it is in memory.
    pub(super) fn peek(&self, file: FileKey, number: u64) -> Option<Bytes> {
        self.lock().touch((file, number)).map(|window| window.bytes.clone())
    }

    /// What is known of where blocks begin in a window.
    pub(super) fn directory(&self, file: FileKey, number: u64) -> Option<Arc<Directory>> {
        self.lock().touch((file, number))?.directory.clone()
    }

    /// Keeps a directory as long as its window.
    pub(super) fn keep_directory(&self, file: FileKey, number: u64, directory: Arc<Directory>) {
        let mut state = self.lock();
        let mut change = 0;
        if let Some(window) = state.windows.get_mut(&(file, number)) {
            change = directory.byte_len();
            let before = window.directory.replace(directory);
            state.bytes -= before.map_or(0, |before| before.byte_len());
        }
        state.bytes += change;
        state.evict(self.limit_bytes);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn touch(&mut self, key: WindowKey) -> Option<&Window> {
        self.uses += 1;
        let number = self.uses;
        let window = self.windows.get_mut(&key)?;
        let before = std::mem::replace(&mut window.used, number);
        self.by_use.remove(&before);
        self.by_use.insert(number, key);
        Some(window)
    }

    fn put(&mut self, key: WindowKey, bytes: Bytes, limit: usize) {
        self.uses += 1;
        self.bytes += bytes.len();
        self.by_use.insert(self.uses, key);
        if let Some(before) = self.windows.insert(key, Window { used: self.uses, bytes, directory: None }) {
            self.by_use.remove(&before.used);
            self.bytes -= before.byte_len();
        }
        self.evict(limit);
    }

    fn evict(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(window) = self.windows.remove(&oldest) {
                self.bytes -= window.byte_len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileKey = FileKey { log: 1, epoch: 1 };

    fn windows() -> Windows {
        Windows::new(1000, Arc::new(Counters::default()))
    }

    fn len_of(windows: &Windows, number: u64, wanted: usize, read: usize) -> usize {
        windows.get(FILE, number, wanted, || Ok(Bytes::from(vec![0; read]))).unwrap().len()
    }

    #[test]
    fn a_window_is_read_once_and_again_when_more_of_it_is_wanted() {
        let windows = windows();
        assert_eq!(len_of(&windows, 0, 100, 100), 100);
        assert_eq!(len_of(&windows, 0, 100, 999), 100);
        assert_eq!(len_of(&windows, 0, 101, 200), 200);
        assert_eq!(windows.lock().bytes, 200);
    }

    #[test]
    fn the_windows_used_last_stay_within_the_limit() {
        let windows = windows();
        for number in 0..4 {
            len_of(&windows, number, 300, 300);
            len_of(&windows, 0, 300, 300);
        }
        assert_eq!(windows.lock().bytes, 900);
        assert_eq!(len_of(&windows, 0, 1, 1), 300);
        assert_eq!(len_of(&windows, 1, 1, 1), 1);
    }

    #[test]
    fn a_failed_read_leaves_nothing_behind() {
        let windows = windows();
        assert!(windows.get(FILE, 0, 1, || Err(io::ErrorKind::Other.into())).is_err());
        assert_eq!(len_of(&windows, 0, 1, 10), 10);
    }
}

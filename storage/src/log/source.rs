//! Where the bytes of a segment come from when they are read: straight from its file, or through the windows that all readers share.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::buffers::Buffer;
use super::directory::Directory;
use super::files::FileKey;
use super::format::block::Place;
use super::windows::Windows;
use crate::disk::DiskFile;

/// Files are read in pieces that begin at a multiple of it. Bytes.
pub(super) const WINDOW: u64 = 1 << 20;

/// A longer stretch that lies in several windows is read by itself, not put together from them. Bytes.
const PUT_TOGETHER: usize = 64 << 10;

/// A longer stretch of a window that is not in memory is read by itself. Bytes.
const BY_ITSELF: usize = 256 << 10;

/// What a disk that cannot read a window is asked for one by one. Bytes.
const PAGE: usize = 4096;

/// A stretch of one segment file, up to an end.
#[derive(Debug)]
pub(super) struct Source<'a> {
    file: Arc<dyn DiskFile>,
    end: u64,
    cache: Option<(&'a Windows, FileKey)>,
    last: Option<(u64, Bytes)>,
}

impl<'a> Source<'a> {
    /// Reads for itself.
    pub(super) fn plain(file: Arc<dyn DiskFile>, end: u64) -> Self {
        Self { file, end, cache: None, last: None }
    }

    /// Reads through the shared windows. What lies below `end` must not change any more.
    pub(super) fn cached(file: Arc<dyn DiskFile>, end: u64, windows: &'a Windows, key: FileKey) -> Self {
        Self { file, end, cache: Some((windows, key)), last: None }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// `len` bytes from `offset` on; fewer if the source or the file ends before.
    pub(super) fn fetch(&mut self, offset: u64, len: usize) -> io::Result<Bytes> {
        let len = len.min(usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX));
        let within = usize::try_from(offset % WINDOW).unwrap_or(0);
        let size = WINDOW as usize;
        if within + len <= size && !(len >= BY_ITSELF && self.peek(offset / WINDOW, within + len).is_none()) {
            let window = self.window(offset / WINDOW, within + len)?;
            return Ok(window.slice(within.min(window.len())..(within + len).min(window.len())));
        }
        if len > PUT_TOGETHER {
            return self.read_alone(offset, len);
        }
        let front = self.window(offset / WINDOW, size)?;
        let mut whole = BytesMut::with_capacity(len);
        whole.extend_from_slice(front.get(within..).unwrap_or_default());
        if whole.len() == size - within {
            let missing = len - whole.len();
            let back = self.window(offset / WINDOW + 1, missing)?;
            whole.extend_from_slice(back.get(..missing).unwrap_or(&back));
        }
        Ok(whole.freeze())
    }

    /// A few bytes from `offset` on, without a read of the whole window if that is not in memory: for who looks here and there.
    pub(super) fn glance(&mut self, offset: u64, len: usize) -> io::Result<Bytes> {
        let within = usize::try_from(offset % WINDOW).unwrap_or(0);
        let len = len.min(usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX));
        match self.peek(offset / WINDOW, within + len) {
            Some(_) => self.fetch(offset, len),
            None => self.read_alone(offset, len),
        }
    }

    /// Reads a stretch past the windows. What the disk cannot read is missing at its end.
    fn read_alone(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        match read_into(&*self.file, offset, self.buffer(len)) {
            Err(error) if is_unreadable(&error) => Ok(Bytes::new()),
            read => {
                let bytes = read?;
                self.cache.inspect(|(windows, _)| windows.count_read(bytes.len()));
                Ok(bytes)
            }
        }
    }

    /// The window of that number, if it and its first `wanted` bytes are in memory.
    fn peek(&self, number: u64, wanted: usize) -> Option<Bytes> {
        let own = self.last.as_ref().filter(|(n, _)| *n == number).map(|(_, window)| window.clone());
        let found = own.or_else(|| self.cache.and_then(|(windows, key)| windows.peek(key, number)));
        found.filter(|window| window.len() >= wanted)
    }

    /// What is known of where blocks begin in the window around `offset`, where one does; goes along them if nothing is.
    pub(super) fn directory(&mut self, place: &Place, offset: u64) -> io::Result<Option<Arc<Directory>>> {
        let Some((windows, key)) = self.cache else { return Ok(None) };
        let number = offset / WINDOW;
        if let Some(known) = windows.directory(key, number).filter(|known| known.start() <= offset) {
            return Ok(Some(known));
        }
        let within = usize::try_from(offset % WINDOW).unwrap_or(0);
        let window = self.window(number, within + 1)?;
        let built = Arc::new(Directory::build(&window, place, offset, self.end));
        windows.keep_directory(key, number, Arc::clone(&built));
        Ok(Some(built))
    }

    /// The window of that number, with at least its first `wanted` bytes if they are there.
    fn window(&mut self, number: u64, wanted: usize) -> io::Result<Bytes> {
        if let Some((n, window)) = &self.last
            && *n == number
            && window.len() >= wanted
        {
            return Ok(window.clone());
        }
        let window = match self.cache {
            Some((windows, key)) => windows.get(key, number, wanted, || self.read_window(number))?,
            None => self.read_window(number)?,
        };
        self.last = Some((number, window.clone()));
        Ok(window)
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.cache.map_or_else(|| Buffer::new(len), |(windows, _)| windows.buffer(len))
    }

    fn read_window(&self, number: u64) -> io::Result<Bytes> {
        let begin = number.saturating_mul(WINDOW);
        let len = self.end.saturating_sub(begin).min(WINDOW);
        let len = usize::try_from(len).unwrap_or(0);
        match read_into(&*self.file, begin, self.buffer(len)) {
            Err(error) if is_unreadable(&error) => Ok(read_what_can_be_read(&*self.file, begin, len)),
            read => read,
        }
    }
}

/// Fills the buffer; what is read is less if the file ends before.
fn read_into(file: &dyn DiskFile, offset: u64, mut buffer: Buffer) -> io::Result<Bytes> {
    let mut read = 0;
    while let Some(rest) = buffer.as_mut().get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(read);
    Ok(Bytes::from_owner(buffer))
}

/// Does the disk say that it cannot read these bytes, rather than that it cannot read at all at the moment?
fn is_unreadable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// A window in which some pages cannot be read: zeros stand for them, so that what lies in the others is not lost with them.
fn read_what_can_be_read(file: &dyn DiskFile, begin: u64, len: usize) -> Bytes {
    let mut window = BytesMut::zeroed(len);
    for (n, page) in window.chunks_mut(PAGE).enumerate() {
        if let Ok(read) = read_into(file, begin + (n * PAGE) as u64, Buffer::new(page.len()))
            && let Some(place) = page.get_mut(..read.len())
        {
            place.copy_from_slice(&read);
        }
    }
    window.freeze()
}

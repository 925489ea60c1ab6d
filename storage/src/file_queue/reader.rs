//! The end at which elements are taken.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Opened;
use super::error::FileQueueError;
use super::folder;
use super::format::{DATA_START, ElementHeader};
use super::index::Position;
use super::scan::{Found, Window};
use super::shared::{Segment, Shared};
use crate::disk::DiskFile;

/// Takes elements. There is one for a queue; it may be sent to another thread.
#[derive(Debug)]
pub struct FileQueueReader {
    opened: Arc<Opened>,
    /// The next element is here, or behind.
    at: Position,
    file: Option<(u64, Arc<dyn DiskFile>)>,
    window: Window,
    /// The element that is next, and where the one behind it is.
    front: Option<(Vec<u8>, Position)>,
}

/// What there is to be read where the reader is, at one moment.
#[derive(Debug)]
struct View {
    segment: Segment,
    /// The number of the segment behind it.
    next: Option<u64>,
    /// The running number of the first element behind it.
    element_behind: u64,
}

impl FileQueueReader {
    pub(super) fn new(opened: Arc<Opened>, at: Position) -> Self {
        Self { opened, at, file: None, window: Window::default(), front: None }
    }

    /// The next element, removed. `None`: there is none.
    ///
    /// An element is removed for good once [`polls`](super::FileQueueOptions::polls) has made it durable; until then it comes again after
    /// the process or the machine has ended. To lose none in a crash of one's own: [`peek`](Self::peek), work, `poll`.
    ///
    /// # Errors
    /// `Damaged`, `Missing`: those elements are lost, the next call goes on behind them. `Io`: nothing was removed; this is also what
    /// the poll behind one says that could not be made durable.
    pub fn poll(&mut self) -> Result<Option<Vec<u8>>, FileQueueError> {
        if self.shared().state().has_commit_failed {
            self.shared().commit(false)?;
        }
        if !self.find_front()? {
            return Ok(None);
        }
        let Some((element, behind)) = self.front.take() else { return Ok(None) };
        self.at = behind;
        if let Err(error) = self.shared().polled(behind) {
            // It may be removed for good or not. Nobody would ever see it if it were and this said no.
            tracing::warn!(%error, "an element was polled and may come again");
        }
        Ok(Some(element))
    }

    /// As [`poll`](Self::poll), but waits up to `timeout` for an element. Returns at once when there is none and the writer is gone.
    ///
    /// # Errors
    /// Those of `poll`.
    pub fn poll_within(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>, FileQueueError> {
        let until = Instant::now().checked_add(timeout);
        loop {
            if let Some(element) = self.poll()? {
                return Ok(Some(element));
            }
            if !self.wait(until) {
                return self.poll();
            }
        }
    }

    /// The next element, which stays. `None`: there is none.
    ///
    /// # Errors
    /// `Damaged`, `Missing`: those elements are lost, the next call goes on behind them. `Io`: the same call may succeed later.
    pub fn peek(&mut self) -> Result<Option<&[u8]>, FileQueueError> {
        self.find_front()?;
        Ok(self.front.as_ref().map(|(element, _)| &**element))
    }

    /// Removes all elements that are there when it is called, durably.
    ///
    /// # Errors
    /// `Io`, `Poisoned`: after the next opening they may be there again.
    pub fn clear(&mut self) -> Result<(), FileQueueError> {
        let end = {
            let state = self.shared().state();
            let last = state.segments.last_key_value();
            let (segment, offset) = last.map_or((self.at.segment, self.at.offset), |(number, last)| (*number, last.end));
            Position { segment, offset, element: state.next_element.max(self.at.element) }
        };
        self.front = None;
        self.at = end;
        self.window.forget();
        self.shared().state().read = end;
        self.shared().commit_all()
    }

    /// Makes durable what was polled.
    ///
    /// # Errors
    /// `Io`, `Poisoned`: what was polled since the last time may come again.
    pub fn sync(&self) -> Result<(), FileQueueError> {
        self.shared().commit_all()
    }

    /// Gives up what cannot be read: goes on as if the pages that the disk refuses to read were damaged. For a queue whose `poll`
    /// answers `Io` again and again, since a part of the disk is lost.
    ///
    /// # Errors
    /// `Damaged`: so much was given up, the next call of anything goes on behind it. `Io`: it is not a page that cannot be read.
    pub fn give_up_unreadable(&mut self) -> Result<(), FileQueueError> {
        self.window.is_tolerant = true;
        let found = self.find_front().map(drop);
        self.window = Window::default();
        found
    }

    /// Elements in the queue; those that are damaged count until they are passed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    fn shared(&self) -> &Shared {
        &self.opened.shared
    }

    /// Waits for an element. False if none can be waited for any longer.
    fn wait(&self, until: Option<Instant>) -> bool {
        let shared = self.shared();
        let mut state = shared.state();
        while state.next_element <= self.at.element {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if state.is_writer_gone || left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            state = match left {
                Some(left) => shared.offered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => shared.offered.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        true
    }

    /// Reads the element that is next. False if there is none.
    fn find_front(&mut self) -> Result<bool, FileQueueError> {
        while self.front.is_none() {
            let Some(view) = self.view() else { return Ok(false) };
            if view.segment.first_element > self.at.element && self.at.offset == DATA_START {
                return Err(self.pass_missing(view.segment.first_element));
            }
            if self.at.offset < view.segment.end {
                self.read_front(&view)?;
            } else if let Some(next) = view.next {
                self.enter(next);
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The segment in which the next element is, or would be.
    fn view(&mut self) -> Option<View> {
        let (number, view) = {
            let state = self.shared().state();
            let mut from = state.segments.range(self.at.segment..);
            let (number, segment) = from.next()?;
            let next = from.next();
            let element_behind = next.map_or(state.next_element, |(_, next)| next.first_element);
            (*number, View { segment: *segment, next: next.map(|(number, _)| *number), element_behind })
        };
        if number != self.at.segment {
            self.enter(number);
        }
        Some(view)
    }

    /// Goes on at the beginning of a segment.
    fn enter(&mut self, number: u64) {
        self.at = Position { segment: number, offset: DATA_START, ..self.at };
        self.window.forget();
    }

    fn read_front(&mut self, view: &View) -> Result<(), FileQueueError> {
        let segment = &view.segment;
        let path = self.path();
        let file = self.open()?;
        let failed = |error: io::Error| FileQueueError::io("read", &path, &error);
        let (offset, end) = (self.at.offset, segment.end);
        let next = match self.window.element_at(&*file, segment.epoch, offset, end).map_err(failed)? {
            Found::Element { header, body } if header.number == self.at.element => {
                self.front = Some((body, self.behind(offset, &header)));
                return Ok(());
            }
            Found::Element { header, .. } if header.number > self.at.element => Some((offset, header)),
            Found::BadBody(header) if header.number == self.at.element => {
                return Err(self.pass(self.behind(offset, &header)));
            }
            Found::Element { .. } | Found::BadBody(_) | Found::Nothing => self.next_element(&*file, segment).map_err(failed)?,
        };
        let behind = match next {
            Some((offset, header)) => Position { offset, element: header.number, ..self.at },
            None => Position { offset: end, element: view.element_behind.max(self.at.element), ..self.at },
        };
        if behind.element == self.at.element {
            tracing::warn!(path = %self.path().display(), offset, "damaged bytes between the elements of a file queue were passed");
            self.at = behind;
            return Ok(());
        }
        Err(self.pass(behind))
    }

    /// The next header behind damage whose element has not been passed.
    fn next_element(&mut self, file: &dyn DiskFile, segment: &Segment) -> io::Result<Option<(u64, ElementHeader)>> {
        let mut from = self.at.offset + 1;
        while let Some((offset, header)) = self.window.next_header(file, segment.epoch, from, segment.end)? {
            if header.number >= self.at.element {
                return Ok(Some((offset, header)));
            }
            from = offset + 1;
        }
        Ok(None)
    }

    fn behind(&self, offset: u64, header: &ElementHeader) -> Position {
        Position { segment: self.at.segment, offset: offset + header.total_len(), element: header.number + 1 }
    }

    /// Goes on behind elements that are lost.
    fn pass(&mut self, behind: Position) -> FileQueueError {
        let elements = behind.element.saturating_sub(self.at.element);
        let lost = FileQueueError::Damaged { path: self.path(), offset: self.at.offset, elements };
        self.go_on_at(behind);
        lost
    }

    fn pass_missing(&mut self, first: u64) -> FileQueueError {
        let elements = first.saturating_sub(self.at.element);
        let lost = FileQueueError::Missing { path: self.path(), elements };
        self.go_on_at(Position { element: first, ..self.at });
        lost
    }

    fn go_on_at(&mut self, behind: Position) {
        self.at = behind;
        // Not made durable by itself: if it is forgotten, it is reported again.
        self.shared().state().read = behind;
    }

    fn path(&self) -> PathBuf {
        folder::segment_path(&self.shared().dir, self.at.segment)
    }

    fn open(&mut self) -> Result<Arc<dyn DiskFile>, FileQueueError> {
        if let Some((number, file)) = &self.file
            && *number == self.at.segment
        {
            return Ok(Arc::clone(file));
        }
        let path = self.path();
        let file = self.shared().disk.open(&path).map_err(|error| FileQueueError::io("open", &path, &error))?;
        self.file = Some((self.at.segment, Arc::clone(&file)));
        Ok(file)
    }
}

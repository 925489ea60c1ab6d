//! Finds where a message of the buffered transport ends: nothing but its own structure says so.

use super::binary::Binary;
use super::compact::Compact;
use super::walk::Walker;
use super::{Protocol, WireError, header};

/// Steps over one message while its bytes arrive, each byte once however they are cut.
#[derive(Clone, Debug)]
pub struct Delimiter {
    protocol: Protocol,
    max_bytes: usize,
    /// Bytes that are done with; 0 while the header is not complete.
    at: usize,
    walker: Walker,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The message is whole and has so many bytes, header included. What follows belongs to the next.
    Complete(usize),
    /// The message has at least so many bytes in all, more than are there.
    NeedMore { at_least: usize },
}

impl Delimiter {
    /// For one message; one of more than `max_bytes` bytes is refused as soon as that is certain.
    #[must_use]
    pub const fn new(protocol: Protocol, max_bytes: usize) -> Self {
        Self { protocol, max_bytes, at: 0, walker: Walker::new(0) }
    }

    /// Goes on with `bytes`, which hold the message from its first byte on as far as it has arrived: what was there at the last call,
    /// and perhaps more. After an error, or once the message is complete, a new `Delimiter` is needed.
    ///
    /// Checks structure, nesting and sizes, so that what is complete can be stepped over again without surprises.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Progress, WireError> {
        match self.step(bytes) {
            Ok(()) => self.check_size(self.at).map(|()| Progress::Complete(self.at)),
            Err(WireError::Truncated) => {
                let at_least = self.at.max(bytes.len()) + 1;
                self.check_size(at_least).map(|()| Progress::NeedMore { at_least })
            }
            Err(error) => Err(error),
        }
    }

    fn step(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if self.at == 0 {
            (_, self.at) = header::read(self.protocol, bytes)?;
            self.walker.enter_struct()?;
        }
        match self.protocol {
            Protocol::Binary => self.walker.run::<Binary>(bytes, &mut self.at, self.max_bytes),
            Protocol::Compact => self.walker.run::<Compact>(bytes, &mut self.at, self.max_bytes),
        }
    }

    const fn check_size(&self, size: usize) -> Result<(), WireError> {
        if size > self.max_bytes { Err(WireError::TooLarge { size, limit: self.max_bytes }) } else { Ok(()) }
    }
}

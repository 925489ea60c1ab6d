//! A run of messages in stored form.

use bytes::Bytes;

use super::message::{self, StoredMessage};
use crate::id::MessageId;
use crate::wire::WireError;

/// Some whole messages of one partition, in order, as they stand in the log. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSlice {
    pub bytes: Bytes,
    /// Messages in `bytes`, at least one.
    pub count: u32,
    pub first: MessageId,
    pub last: MessageId,
}

impl StoredSlice {
    /// The messages, one after the other. Ends behind the first error.
    pub fn messages(&self) -> impl Iterator<Item = Result<StoredMessage<'_>, WireError>> {
        let mut rest: &[u8] = &self.bytes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let read = message::read(rest);
            rest = read.as_ref().ok().and_then(|m| rest.get(m.raw.len()..)).unwrap_or(&[]);
            Some(read)
        })
    }

    /// Counts and checks messages that came from a disk: `None` if there is none.
    pub fn from_stored(bytes: Bytes) -> Result<Option<Self>, WireError> {
        let mut found = Self { bytes, count: 0, first: MessageId::MAX, last: MessageId::MIN };
        let (mut count, mut first, mut last) = (0, found.first, found.last);
        for message in found.messages() {
            let id = message?.id;
            count += 1;
            first = first.min(id);
            last = last.max(id);
        }
        (found.count, found.first, found.last) = (count, first, last);
        Ok((count > 0).then_some(found))
    }

    /// The messages that `keep` wants, as runs of neighbours. Bytes are shared, not copied.
    pub fn runs(&self, mut keep: impl FnMut(&StoredMessage<'_>) -> bool) -> Result<Vec<Self>, WireError> {
        let mut runs: Vec<Self> = Vec::new();
        let mut at = 0;
        let mut joins = false;
        for message in self.messages() {
            let message = message?;
            let end = at + message.raw.len();
            if keep(&message) {
                match runs.last_mut() {
                    Some(run) if joins => {
                        let begin = at - run.bytes.len();
                        run.bytes = self.bytes.slice(begin..end);
                        run.count += 1;
                        run.last = message.id;
                    }
                    _ => runs.push(Self { bytes: self.bytes.slice(at..end), count: 1, first: message.id, last: message.id }),
                }
                joins = true;
            } else {
                joins = false;
            }
            at = end;
        }
        Ok(runs)
    }

    /// Cuts behind the first `messages` messages and, if `bytes` is reached earlier, behind the last that fits, but behind at least
    /// one. Returns what was cut off at the front; `self` keeps the rest, `None` in its place if nothing is left.
    pub fn split_front(self, messages: u32, bytes: usize) -> Result<(Self, Option<Self>), WireError> {
        if self.count <= messages && self.bytes.len() <= bytes {
            return Ok((self, None));
        }
        let (mut count, mut end, mut last) = (0u32, 0usize, self.first);
        let mut next_first = None;
        for message in self.messages() {
            let message = message?;
            if count > 0 && (count >= messages || end + message.raw.len() > bytes) {
                next_first = Some(message.id);
                break;
            }
            count += 1;
            end += message.raw.len();
            last = message.id;
        }
        let front = Self { bytes: self.bytes.slice(..end), count, first: self.first, last };
        let rest =
            next_first.map(|first| Self { bytes: self.bytes.slice(end..), count: self.count - count, first, last: self.last });
        Ok((front, rest))
    }
}

//! Numbers in bytes, without an index that could be wrong.

use hqueue_protocol::id::MessageId;

/// Takes numbers from the front of some bytes. `None` once they do not suffice.
#[derive(Debug)]
pub(in crate::log) struct Taker<'a>(pub(in crate::log) &'a [u8]);

impl<'a> Taker<'a> {
    pub(in crate::log) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    pub(in crate::log) fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    pub(in crate::log) fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    pub(in crate::log) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(in crate::log) fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    pub(in crate::log) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(in crate::log) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub(in crate::log) fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// Ten bytes: timestamp and sequence.
    pub(in crate::log) fn id(&mut self) -> Option<MessageId> {
        Some(MessageId::new(self.i64()?, self.i16()?))
    }
}

/// Appends an id in ten bytes.
pub(in crate::log) fn put_id(out: &mut Vec<u8>, id: MessageId) {
    out.extend_from_slice(&id.timestamp.to_be_bytes());
    out.extend_from_slice(&id.sequence.to_be_bytes());
}

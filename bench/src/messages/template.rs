//! A put that is encoded once and stamped anew each time it is sent, so that the driver costs the same, and little, on every side.

use super::stamp::{STAMP_BYTES, Stamp};

const TOPIC: u8 = b't';
/// Bytes of an encoded message in front of its value.
const BEFORE_VALUE: usize = 3 + 4 + 1 + 3 + 4;

/// How many messages of which size a put has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutShape {
    pub messages: usize,
    /// [`STAMP_BYTES`] or more.
    pub value_bytes: usize,
}

/// The encoded put of one producer: a head that its side writes, the messages, and a tail.
#[derive(Clone, Debug)]
pub struct PutTemplate {
    frame: Vec<u8>,
    partition_at: usize,
    first_value_at: usize,
    shape: PutShape,
}

impl PutTemplate {
    /// `head` begins with four bytes for the length of what follows them; a big-endian partition stands at `partition_at` in it.
    #[must_use]
    pub fn new(head: &[u8], partition_at: usize, shape: PutShape, tail: &[u8]) -> Self {
        let mut frame = head.to_vec();
        let first_value_at = frame.len() + BEFORE_VALUE;
        let length = u32::try_from(shape.value_bytes).unwrap_or(u32::MAX).to_be_bytes();
        for _ in 0..shape.messages {
            frame.extend_from_slice(&[0x0b, 0, 3, 0, 0, 0, 1, TOPIC, 0x0b, 0, 4]);
            frame.extend_from_slice(&length);
            frame.extend(std::iter::repeat_with(|| fastrand::u8(..)).take(shape.value_bytes));
            frame.push(0);
        }
        frame.extend_from_slice(tail);
        let body = u32::try_from(frame.len().saturating_sub(4)).unwrap_or(u32::MAX);
        if let Some(prefix) = frame.first_chunk_mut() {
            *prefix = body.to_be_bytes();
        }
        Self { frame, partition_at, first_value_at, shape }
    }

    /// The put's bytes for this partition, with the stamps of `first` and the numbers behind it.
    pub fn stamped(&mut self, partition: u16, first: Stamp) -> &[u8] {
        if let Some(place) = self.frame.get_mut(self.partition_at..).and_then(<[u8]>::first_chunk_mut) {
            *place = partition.to_be_bytes();
        }
        let stride = BEFORE_VALUE + self.shape.value_bytes + 1;
        let values = self.frame.get_mut(self.first_value_at..).unwrap_or_default();
        for (number, value) in (first.number..).zip(values.chunks_mut(stride)).take(self.shape.messages) {
            if let Some(head) = value.first_chunk_mut::<STAMP_BYTES>() {
                *head = Stamp { number, ..first }.to_bytes();
            }
        }
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::Values;
    use super::*;

    #[test]
    fn every_message_carries_its_own_number() {
        let shape = PutShape { messages: 3, value_bytes: 40 };
        let mut template = PutTemplate::new(&[0, 0, 0, 0, 9, 9], 4, shape, &[0xee]);
        let first = Stamp { producer: 1, partition: 6, number: 10, sent_ns: 2 };
        let frame = template.stamped(5, first);
        assert_eq!(frame[..6], [0, 0, 0, u8::try_from(frame.len() - 4).unwrap(), 0, 5]);
        assert_eq!(frame.last(), Some(&0xee));
        let values: Vec<_> = Values::new(&frame[6..], 3).map(Result::unwrap).collect();
        assert_eq!(values.len(), 3);
        for (value, number) in values.iter().zip(10..) {
            assert_eq!(value.len(), 40);
            assert_eq!(Stamp::read(value), Some(Stamp { number, ..first }));
        }
    }
}

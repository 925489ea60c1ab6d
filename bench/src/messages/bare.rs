//! The values of a put without any wrapping, for clients that wrap them themselves.

use super::stamp::{STAMP_BYTES, Stamp};
use super::template::PutShape;

/// Values that are made once and stamped anew each time they are sent, as [`super::PutTemplate`] does for whole frames.
#[derive(Clone, Debug)]
pub struct BareValues {
    bytes: Vec<u8>,
    value_bytes: usize,
}

impl BareValues {
    #[must_use]
    pub fn new(shape: PutShape) -> Self {
        let value_bytes = shape.value_bytes.max(STAMP_BYTES);
        let bytes = std::iter::repeat_with(|| fastrand::u8(..)).take(shape.messages * value_bytes).collect();
        Self { bytes, value_bytes }
    }

    /// The values of one put, with the stamps of `first` and the numbers behind it.
    pub fn stamped(&mut self, first: Stamp) -> impl ExactSizeIterator<Item = &[u8]> {
        for (number, value) in (first.number..).zip(self.bytes.chunks_mut(self.value_bytes)) {
            if let Some(head) = value.first_chunk_mut::<STAMP_BYTES>() {
                *head = Stamp { number, ..first }.to_bytes();
            }
        }
        self.bytes.chunks(self.value_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_carries_its_own_number() {
        let mut values = BareValues::new(PutShape { messages: 3, value_bytes: 40 });
        let first = Stamp { producer: 1, partition: 6, number: 10, sent_ns: 2 };
        let stamps: Vec<_> = values.stamped(first).map(|value| (value.len(), Stamp::read(value).unwrap())).collect();
        assert_eq!(stamps, (10..13).map(|number| (40, Stamp { number, ..first })).collect::<Vec<_>>());
    }
}

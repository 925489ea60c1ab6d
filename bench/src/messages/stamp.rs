//! The head of a value: who sent it, and when.

/// Bytes of a stamp; a value has at least so many.
pub const STAMP_BYTES: usize = 22;

/// What a value says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub producer: u32,
    /// Counts through the partitions of all queues.
    pub partition: u16,
    /// Counts from 0 within the producer and the partition.
    pub number: u64,
    /// Nanoseconds since the driver began.
    pub sent_ns: u64,
}

impl Stamp {
    #[must_use]
    pub fn to_bytes(self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        let parts: [&[u8]; 4] = [
            &self.producer.to_be_bytes(),
            &self.partition.to_be_bytes(),
            &self.number.to_be_bytes(),
            &self.sent_ns.to_be_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        bytes
    }

    /// `None`: the value is too short to be one of ours.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let (producer, rest) = value.split_first_chunk()?;
        let (partition, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent_ns, _) = rest.split_first_chunk()?;
        Some(Self {
            producer: u32::from_be_bytes(*producer),
            partition: u16::from_be_bytes(*partition),
            number: u64::from_be_bytes(*number),
            sent_ns: u64::from_be_bytes(*sent_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let stamp = Stamp { producer: 7, partition: 0x0102, number: 1 << 40, sent_ns: u64::MAX };
        let mut value = stamp.to_bytes().to_vec();
        assert_eq!(Stamp::read(&value), Some(stamp));
        value.truncate(STAMP_BYTES - 1);
        assert_eq!(Stamp::read(&value), None);
    }
}

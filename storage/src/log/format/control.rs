//! The body of a control record: what has become of old messages since the segment began.
//!
//! ```text
//!      0     8  segments of a lower epoch are gone
//!      8     …  to the end, for each partition whose front is gone further than its header said:
//!               partition (2), trim (8 number, 10 last id, 8 bytes, 1 why)
//! ```

use super::bytes::Taker;
use super::table::Trim;

/// What a control record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::log) struct Control {
    /// Segments of a lower epoch are gone.
    pub(in crate::log) floor_epoch: u64,
    pub(in crate::log) trims: Vec<(i16, Trim)>,
}

impl Control {
    pub(in crate::log) fn encode(&self) -> Vec<u8> {
        let mut out = self.floor_epoch.to_be_bytes().to_vec();
        for (partition, trim) in &self.trims {
            out.extend_from_slice(&partition.to_be_bytes());
            trim.encode(&mut out);
        }
        out
    }

    pub(in crate::log) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut taker = Taker(bytes);
        let mut found = Self { floor_epoch: taker.u64()?, trims: Vec::new() };
        while !taker.0.is_empty() {
            found.trims.push((taker.i16()?, Trim::decode(&mut taker)?));
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use hqueue_protocol::id::MessageId;
    use proptest::prelude::*;

    use super::*;
    use crate::store::MissingReason;

    fn trims() -> impl Strategy<Value = (i16, Trim)> {
        let why = prop_oneof![Just(MissingReason::Truncated), Just(MissingReason::Expired), Just(MissingReason::Dropped),];
        (any::<i16>(), any::<(u64, u64)>(), proptest::option::of((0..i64::MAX, any::<i16>())), why).prop_map(
            |(partition, (number, bytes), last, why)| {
                (partition, Trim { number, last: last.map(|(t, s)| MessageId::new(t, s)), bytes, why })
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(floor_epoch: u64, trims in proptest::collection::vec(trims(), 0..20)) {
            let control = Control { floor_epoch, trims };
            prop_assert_eq!(Control::decode(&control.encode()), Some(control));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = Control::decode(&bytes);
        }
    }
}

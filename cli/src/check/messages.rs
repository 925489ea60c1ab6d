//! The messages of the trials. They are marked, so that a consumer can tell them: topic `hq-check`, and a header of that name.

use std::time::{SystemTime, UNIX_EPOCH};

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredSlice};

/// Topic and header of every message that a check sends.
pub(crate) const MARK: &str = "hq-check";
/// The largest value: calls of many bytes have several messages, as a broker's have.
const MOST_VALUE_BYTES: usize = 1 << 20;
/// More than a message has beside its value.
const BESIDE_VALUE: usize = 128;

/// So many messages of a few bytes.
pub(super) fn small(count: u32) -> Option<StoredSlice> {
    sealed((1..=count).map(|number| format!("test message {number} of {count} of hqueue check").into_bytes()))
}

/// Messages of about so many bytes in all, and no more.
pub(super) fn large(bytes: usize) -> Option<StoredSlice> {
    let count = bytes.div_ceil(MOST_VALUE_BYTES).max(1);
    let size = (bytes / count).saturating_sub(BESIDE_VALUE);
    sealed((0..count).map(|_| vec![b'x'; size]))
}

fn sealed(values: impl Iterator<Item = Vec<u8>>) -> Option<StoredSlice> {
    let mut batch = PutBatch::default();
    values.for_each(|value| batch.push(MARK.as_bytes(), &value, &[(MARK, b"1")]));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut id = MessageId::new(i64::try_from(now).unwrap_or_default(), 0);
    batch.seal(0, || {
        id = id.successor();
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_call_has_nearly_the_bytes_that_are_wanted() {
        for bytes in [1024, 1 << 20, (1 << 20) + 1, 8 << 20, 16_000_000] {
            let slice = large(bytes).unwrap();
            assert!(slice.bytes.len() <= bytes && slice.bytes.len() + 128 * slice.count as usize > bytes, "{bytes}");
        }
    }

    #[test]
    fn every_message_is_marked() {
        let slice = small(100).unwrap();
        assert_eq!((slice.count, slice.messages().count()), (100, 100));
        assert!(slice.messages().all(|message| message.unwrap().topic == MARK.as_bytes()));
        let marks = slice.bytes.windows(MARK.len()).filter(|bytes| *bytes == MARK.as_bytes()).count();
        assert_eq!(marks, 200, "a topic and a header each");
    }
}

//! What a queue is in HBase: a table in the original's schema, readable by HBase's own tools.
//!
//! ```text
//! row key     partition (2 bytes BE)  timestamp (8 BE)  sequence (2 BE)
//! message     qualifier: the topic    value: the value                    every row has exactly one
//! headers     qualifier: the topic    value: a Thrift struct (binary protocol) of the message's fields from 5 on; only if it has any
//! index       qualifier: n            value: an anchor, every thousand rows or so (below)
//! ```
//!
//! Cells carry the time at which the broker took the message, so that HBase's TTL goes by it, and so that a row that is put twice is
//! the same both times.
//!
//! An anchor says what lies before its row: the running number of the message (8 bytes BE), the bytes in stored form of all messages
//! before it (8), the largest message so far (4). With it, the number of any message is found by counting at most so many rows.
//!
//! What lasts although all rows of a partition have gone stands in a table of our own, `hqueue:partitions`: see `store::record`.

use bytes::Bytes;
use hqueue_protocol::id::MessageId;

/// The family of the values.
pub const MESSAGE: &[u8] = b"message";
/// The family of headers, and of fields that a later version may have.
pub const HEADERS: &[u8] = b"headers";
/// The family of anchors.
pub const INDEX: &[u8] = b"index";
/// The qualifier of anchors.
pub const ANCHOR: &[u8] = b"n";

/// Bytes of a row key.
pub const KEY_LEN: usize = 12;

/// The row of a message.
#[must_use]
pub fn row_key(partition: i16, id: MessageId) -> [u8; KEY_LEN] {
    let mut key = [0; KEY_LEN];
    let (p, rest) = key.split_at_mut(2);
    let (timestamp, sequence) = rest.split_at_mut(8);
    p.copy_from_slice(&partition.to_be_bytes());
    timestamp.copy_from_slice(&id.timestamp.to_be_bytes());
    sequence.copy_from_slice(&id.sequence.to_be_bytes());
    key
}

/// The row behind that of a message: a scan that stops before it has the message in it.
#[must_use]
pub fn row_key_behind(partition: i16, id: MessageId) -> [u8; KEY_LEN + 1] {
    let mut key = [0; KEY_LEN + 1];
    if let Some(place) = key.first_chunk_mut() {
        *place = row_key(partition, id);
    }
    key
}

/// Partition and id of a row; `None` if it is none of ours.
#[must_use]
pub fn parse_row_key(key: &[u8]) -> Option<(i16, MessageId)> {
    let key: &[u8; KEY_LEN] = key.try_into().ok()?;
    let [p0, p1, timestamp @ .., s0, s1] = *key;
    let id = MessageId::new(i64::from_be_bytes(timestamp), i16::from_be_bytes([s0, s1]));
    let partition = i16::from_be_bytes([p0, p1]);
    (partition >= 0 && id.timestamp >= 0 && id.sequence >= 0).then_some((partition, id))
}

/// What lies before a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    pub number: u64,
    pub bytes: u64,
    pub largest: u32,
}

impl Anchor {
    #[must_use]
    pub fn encode(&self) -> [u8; 20] {
        let mut out = [0; 20];
        let (number, rest) = out.split_at_mut(8);
        let (bytes, largest) = rest.split_at_mut(8);
        number.copy_from_slice(&self.number.to_be_bytes());
        bytes.copy_from_slice(&self.bytes.to_be_bytes());
        largest.copy_from_slice(&self.largest.to_be_bytes());
        out
    }

    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (number, rest) = value.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let largest = rest.first_chunk()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            bytes: u64::from_be_bytes(*bytes),
            largest: u32::from_be_bytes(*largest),
        })
    }
}

/// The keys at which a table of so many partitions is split.
#[must_use]
pub fn split_keys(partitions: i16, partitions_per_region: i16) -> Vec<Vec<u8>> {
    let step = usize::try_from(partitions_per_region.max(1)).unwrap_or(1);
    (0..partitions).step_by(step).skip(1).map(|partition| partition.to_be_bytes().to_vec()).collect()
}

/// The partition in which a region begins.
#[must_use]
pub fn partition_of_region(first_row: &[u8]) -> i16 {
    match first_row {
        [] => 0,
        [high] => i16::from_be_bytes([*high, 0]),
        [high, low, ..] => i16::from_be_bytes([*high, *low]),
    }
}

/// `namespace:name`, as HBase names a table; just the name in HBase's own namespace.
#[must_use]
pub fn table_name(namespace: &str, queue: &str) -> Bytes {
    if namespace == "default" { queue.to_owned().into() } else { format!("{namespace}:{queue}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_sort_as_ids_do() {
        let ids = [(0, 0, 0), (0, 0, 1), (0, 255, 0), (0, 256, 32_767), (0, 257, 0), (1, 0, 0), (255, 7, 7), (256, 0, 0)];
        let keys: Vec<_> = ids.iter().map(|(p, t, s)| row_key(*p, MessageId::new(*t, *s))).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        for ((partition, timestamp, sequence), key) in ids.iter().zip(&keys) {
            assert_eq!(parse_row_key(key), Some((*partition, MessageId::new(*timestamp, *sequence))));
        }
    }

    #[test]
    fn rows_of_others_are_told() {
        for key in [&b""[..], b"row-1", &[0; 11], &[0; 13], &[0xff; 12]] {
            assert_eq!(parse_row_key(key), None, "{key:?}");
        }
    }

    #[test]
    fn a_row_stands_before_the_one_behind_it() {
        let id = MessageId::new(5, 7);
        assert!(row_key(1, id)[..] < row_key_behind(1, id)[..]);
        assert!(row_key_behind(1, id)[..] < row_key(1, id.successor())[..]);
    }

    #[test]
    fn tables_are_split_between_partitions() {
        assert_eq!(split_keys(5, 2), [vec![0, 2], vec![0, 4]]);
        assert_eq!(split_keys(4, 2), [vec![0, 2]]);
        assert_eq!(split_keys(300, 256), [vec![1, 0]]);
        assert!(split_keys(3, 100).is_empty());
    }

    #[test]
    fn anchors_go_both_ways() {
        let anchor = Anchor { number: 1 << 40, bytes: u64::MAX, largest: 7 };
        assert_eq!(Anchor::decode(&anchor.encode()), Some(anchor));
        assert_eq!(Anchor::decode(&anchor.encode()[..19]), None);
    }
}

//! Which partition a key belongs to.

/// The 64-bit FNV-1a hash: begins with `cbf29ce484222325`; each byte is xored in, then the hash is multiplied by `100000001b3`.
#[must_use]
pub fn key_hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The partition that all messages of a key go to: [`key_hash`] modulo the number of partitions. Programs in other languages that
/// follow this rule put the messages of a key into the same partition.
///
/// | key | hash | of 4 | of 32 | of 1000 |
/// |---|---|---|---|---|
/// | (empty) | `cbf29ce484222325` | 1 | 5 | 37 |
/// | `a` | `af63dc4c8601ec8c` | 0 | 12 | 996 |
/// | `foobar` | `85944171f73967e8` | 0 | 8 | 968 |
/// | `customer-42` | `1e1b8c70eb18f59e` | 2 | 30 | 86 |
///
/// A queue has at least one partition; 0 partitions give 0.
#[must_use]
pub fn partition_of_key(key: &[u8], partitions: u16) -> i16 {
    let place = key_hash(key).checked_rem(partitions.into()).unwrap_or(0);
    i16::try_from(place).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the documentation; the first three hashes are those of the algorithm's authors.
    #[test]
    fn vectors() {
        for (key, hash, of_4, of_32, of_1000) in [
            ("", 0xcbf2_9ce4_8422_2325_u64, 1, 5, 37),
            ("a", 0xaf63_dc4c_8601_ec8c, 0, 12, 996),
            ("foobar", 0x8594_4171_f739_67e8, 0, 8, 968),
            ("customer-42", 0x1e1b_8c70_eb18_f59e, 2, 30, 86),
        ] {
            let key = key.as_bytes();
            assert_eq!(key_hash(key), hash, "{key:?}: {:016x}", key_hash(key));
            let of = [4, 32, 1000].map(|partitions| partition_of_key(key, partitions));
            assert_eq!(of, [of_4, of_32, of_1000], "{key:?}");
        }
    }

    #[test]
    fn any_number_of_partitions() {
        for partitions in [1, 2, 32_767] {
            let place = partition_of_key(b"key", partitions);
            assert!((0..32_767).contains(&place) && u16::try_from(place).is_ok_and(|p| p < partitions));
        }
        assert_eq!(partition_of_key(b"key", 0), 0);
    }
}

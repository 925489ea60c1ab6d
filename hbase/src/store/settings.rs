//! What `create` may say of a table, in the original's keys, and where each of them goes.
//!
//! | key | goes to |
//! |---|---|
//! | `hbase.hqueue.partitionsPerRegion` | where the table is split |
//! | `hbase.hqueue.compression` | the compression of the family `message` |
//! | `hbase.hregion.memstore.flush.size` | the table's `MEMSTORE_FLUSHSIZE` |
//! | any other that begins with `hbase.` | the table's attribute of that name, which HBase takes over its own configuration |

use std::collections::BTreeMap;

use crate::table::Compression;

/// What all keys of ours begin with.
const OURS: &str = "hbase.hqueue.";
const PARTITIONS_PER_REGION: &str = "hbase.hqueue.partitionsPerRegion";
const COMPRESSION: &str = "hbase.hqueue.compression";
const FLUSH_SIZE: &str = "hbase.hregion.memstore.flush.size";
const NUMBERS: [&str; 5] = [
    FLUSH_SIZE,
    "hbase.hregion.majorcompaction",
    "hbase.hstore.compaction.min",
    "hbase.hstore.compaction.max",
    "hbase.hstore.blockingStoreFiles",
];
/// HBase refuses a smaller one.
const SMALLEST_FLUSH_SIZE: u64 = 1 << 20;

/// How a queue's table is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSettings {
    /// `None`: as the store's options say.
    pub partitions_per_region: Option<i16>,
    pub compression: Option<Compression>,
    /// Of the table, in HBase's names.
    pub attributes: BTreeMap<String, String>,
}

impl TableSettings {
    /// Reads the dictionary of `create`.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(configuration: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut settings = Self::default();
        for (key, value) in configuration {
            match key.as_str() {
                PARTITIONS_PER_REGION => {
                    let number = value.parse::<i16>().ok().filter(|n| *n >= 1);
                    settings.partitions_per_region =
                        Some(number.ok_or_else(|| format!("{key} is {value:?}: it must be a number from 1 to {}", i16::MAX))?);
                }
                COMPRESSION => {
                    let known = Compression::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
                    let names = || Compression::NAMES.map(|(name, _)| name).join(", ");
                    let (_, compression) = known.ok_or_else(|| format!("{key} is {value:?}: it must be one of {}", names()))?;
                    settings.compression = Some(*compression);
                }
                ours if ours.starts_with(OURS) => return Err(format!("there is no key {key:?}")),
                other => {
                    if NUMBERS.contains(&other) {
                        check_number(key, value)?;
                    }
                    let name = if other == FLUSH_SIZE { "MEMSTORE_FLUSHSIZE" } else { other };
                    settings.attributes.insert(name.to_owned(), value.clone());
                }
            }
        }
        Ok(settings)
    }
}

fn check_number(key: &str, value: &str) -> Result<(), String> {
    let number = value.parse::<u64>().map_err(|_| format!("{key} is {value:?}: it must be a number, 0 or more"))?;
    if key == FLUSH_SIZE && number < SMALLEST_FLUSH_SIZE {
        return Err(format!("{key} is {number}: HBase takes {SMALLEST_FLUSH_SIZE} bytes or more"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<TableSettings, String> {
        TableSettings::parse(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn each_key_has_its_place() {
        let settings = parse(&[
            (PARTITIONS_PER_REGION, "4"),
            (COMPRESSION, "gz"),
            (FLUSH_SIZE, "134217728"),
            ("hbase.hstore.compaction.min", "16"),
        ])
        .unwrap();
        assert_eq!((settings.partitions_per_region, settings.compression), (Some(4), Some(Compression::Gz)));
        let attributes: Vec<_> = settings.attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(attributes, [("MEMSTORE_FLUSHSIZE", "134217728"), ("hbase.hstore.compaction.min", "16")]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (key, value, why) in [
            (PARTITIONS_PER_REGION, "0", "1 to 32767"),
            (COMPRESSION, "fast", "SNAPPY"),
            (FLUSH_SIZE, "1000", "1048576"),
            ("hbase.hstore.compaction.max", "many", "a number"),
            ("hbase.hqueue.splits", "1", "no key"),
        ] {
            let error = parse(&[(key, value)]).unwrap_err();
            assert!(error.contains(why) && error.contains(key), "{error}");
        }
    }
}

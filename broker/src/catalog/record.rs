//! What coordination keeps of a queue.

use std::collections::BTreeMap;

use hqueue_protocol::generated::TQueueSpec;
use hqueue_protocol::limits;
use hqueue_protocol::names::QueueName;
use hqueue_storage::store::QueueSpec;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::refusal::Refusal;
use crate::time::Moment;

/// The configuration keys of the original; more that begin with `hbase.` are kept, too.
const KNOWN_KEYS: [&str; 7] = [
    "hbase.hqueue.partitionsPerRegion",
    "hbase.hqueue.compression",
    "hbase.hregion.memstore.flush.size",
    "hbase.hregion.majorcompaction",
    "hbase.hstore.compaction.min",
    "hbase.hstore.compaction.max",
    "hbase.hstore.blockingStoreFiles",
];
const CONFIGURATION_PREFIX: &str = "hbase.";

/// Whether a queue takes puts and pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueState {
    Enabled,
    Disabled,
    /// Its data is being removed; a start completes that.
    Dropping,
}

impl QueueState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Dropping => "dropping",
        }
    }
}

/// The payload of a queue's node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    pub uid: Uuid,
    pub partitions: i16,
    pub ttl_seconds: i64,
    pub configuration: BTreeMap<String, String>,
    pub state: QueueState,
    /// Milliseconds since 1970 UTC.
    pub created: i64,
}

impl QueueRecord {
    /// Checks what a client wants.
    pub fn from_spec(spec: &TQueueSpec) -> Result<(QueueName, Self), Refusal> {
        let name =
            QueueName::from_bytes(spec.name.as_deref().unwrap_or_default()).and_then(|name| QueueName::parse_new(name.as_str()));
        let name = name.map_err(|error| Refusal::invalid(error.to_string()))?;
        let partitions = spec.partitions.unwrap_or_default();
        let partitions = i16::try_from(partitions).ok().filter(|n| *n >= 1).ok_or_else(|| {
            Refusal::invalid(format!("{partitions} partitions: a queue has 1 to {} partitions", limits::MAX_PARTITIONS))
        })?;
        let ttl_seconds = spec.ttl_seconds.unwrap_or_default();
        if ttl_seconds < 1 {
            return Err(Refusal::invalid(format!("a TTL of {ttl_seconds} seconds: it must be 1 or more")));
        }
        let configuration = spec.configuration.clone().unwrap_or_default();
        configuration.keys().try_for_each(|key| check_key(key))?;
        let record = Self {
            uid: Uuid::new_v4(),
            partitions,
            ttl_seconds,
            configuration,
            state: QueueState::Enabled,
            created: Moment::now().0,
        };
        Ok((name, record))
    }

    #[must_use]
    pub fn store_spec(&self, name: &QueueName) -> QueueSpec {
        QueueSpec {
            name: name.as_str().to_owned(),
            uid: self.uid,
            partitions: self.partitions,
            ttl_ms: self.ttl_seconds.saturating_mul(1000),
        }
    }

    /// What was configured and has no effect on the embedded log.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.configuration.keys().map(|key| format!("{key} is kept, but has no effect on the embedded log")).collect()
    }

    #[must_use]
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

fn check_key(key: &str) -> Result<(), Refusal> {
    if key.starts_with(CONFIGURATION_PREFIX) {
        return Ok(());
    }
    let nearest = KNOWN_KEYS.iter().min_by_key(|known| distance(known, key)).copied().unwrap_or_default();
    Err(Refusal::invalid(format!("there is no configuration key {key:?}; the nearest known one is {nearest}")))
}

/// How many characters must be put in, taken out or exchanged to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(256).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(256).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (cb, &above) in b.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(ca != *cb)).min(above + 1).min(left + 1);
            diagonal = above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        let error = check_key("hqueue.partitionsPerRegion").unwrap_err();
        assert!(error.message.contains("hbase.hqueue.partitionsPerRegion"), "{error}");
        assert!(check_key("hbase.whatever").is_ok());
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}

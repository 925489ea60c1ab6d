//! What coordination keeps of a queue.

use std::collections::BTreeMap;

use hqueue_hbase::store::TableSettings;
use hqueue_protocol::generated::TQueueSpec;
use hqueue_protocol::limits;
use hqueue_protocol::names::QueueName;
use hqueue_storage::store::{QueueSpec, SizeLimit, WhenFull};
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
const OUR_PREFIX: &str = "hbase.hqueue.";

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
    /// How large the queue may become. Records of earlier versions have none.
    #[serde(flatten, default)]
    pub retention: Retention,
}

/// How large a queue may become, and what happens then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Bytes of messages over all partitions. `None`: as many as fit on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_full: Option<FullPolicy>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_unread: bool,
}

/// As on the wire and on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FullPolicy {
    Reject,
    DropOldest,
}

impl FullPolicy {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::DropOldest => "drop_oldest",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Reject, Self::DropOldest].into_iter().find(|policy| policy.name() == text)
    }
}

impl Retention {
    /// Checks what a client wants. Without a limit there is nothing else to say.
    fn from_spec(spec: &TQueueSpec) -> Result<Self, Refusal> {
        let keep_unread = spec.keep_unread.unwrap_or_default();
        // What Rust's generated code says of fields that nobody has set.
        let nothing_said = spec.max_bytes == Some(0) && spec.when_full.as_deref() == Some("") && !keep_unread;
        if nothing_said {
            return Ok(Self::default());
        }
        let Some(max_bytes) = spec.max_bytes else {
            if spec.when_full.is_some() || keep_unread {
                return Err(Refusal::invalid("when_full and keep_unread say what happens at max_bytes, which is not given"));
            }
            return Ok(Self::default());
        };
        if max_bytes < 1 {
            return Err(Refusal::invalid(format!("max_bytes is {max_bytes}: it must be 1 or more")));
        }
        let text = spec.when_full.as_deref().unwrap_or(FullPolicy::Reject.name());
        let when_full = FullPolicy::parse(text)
            .ok_or_else(|| Refusal::invalid(format!("when_full is {text:?}: it must be reject or drop_oldest")))?;
        if keep_unread && when_full == FullPolicy::Reject {
            return Err(Refusal::invalid("keep_unread goes with drop_oldest: with reject nothing is dropped anyway"));
        }
        Ok(Self { max_bytes: Some(max_bytes), when_full: Some(when_full), keep_unread })
    }

    /// The limit as a store takes it.
    #[must_use]
    pub fn limit(&self) -> Option<SizeLimit> {
        let when_full = match self.when_full {
            Some(FullPolicy::DropOldest) => WhenFull::DropOldest,
            Some(FullPolicy::Reject) | None => WhenFull::Reject,
        };
        let max_bytes = u64::try_from(self.max_bytes?).ok()?;
        Some(SizeLimit { max_bytes, when_full, keep_unread: self.keep_unread })
    }
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
        let retention = Retention::from_spec(spec)?;
        let record = Self {
            uid: Uuid::new_v4(),
            partitions,
            ttl_seconds,
            configuration,
            state: QueueState::Enabled,
            created: Moment::now().0,
            retention,
        };
        Ok((name, record))
    }

    /// Of the queue's dead-letter queue.
    #[must_use]
    pub fn for_dead_letters(&self) -> Self {
        Self {
            uid: Uuid::new_v4(),
            partitions: 1,
            ttl_seconds: self.ttl_seconds,
            configuration: BTreeMap::new(),
            state: QueueState::Enabled,
            created: Moment::now().0,
            // A dead letter must not make room for others, nor be refused: its partition would wait.
            retention: Retention::default(),
        }
    }

    #[must_use]
    pub fn store_spec(&self, name: &QueueName) -> QueueSpec {
        QueueSpec {
            name: name.as_str().to_owned(),
            uid: self.uid,
            partitions: self.partitions,
            ttl_ms: self.ttl_seconds.saturating_mul(1000),
            limit: self.retention.limit(),
        }
    }

    /// What was configured and has no effect on the embedded log, or of which nobody knows what it does to HBase.
    #[must_use]
    pub fn notices(&self, in_hbase: bool) -> Vec<String> {
        let keys = self.configuration.keys();
        if in_hbase {
            let unknown = keys.filter(|key| !KNOWN_KEYS.contains(&key.as_str()));
            unknown
                .map(|key| format!("{key} is kept as an attribute of the table; whether HBase heeds it there is not known"))
                .collect()
        } else {
            keys.map(|key| format!("{key} is kept, but has no effect on the embedded log")).collect()
        }
    }

    /// Refuses what a queue in HBase cannot have.
    pub fn check_for_hbase(&self) -> Result<(), Refusal> {
        if let Some(max_bytes) = self.retention.max_bytes {
            return Err(Refusal::invalid(format!(
                "a queue in HBase has no limit of its size ({max_bytes} bytes were asked for): HBase's own quotas set one for its table, in \
                 its shell: set_quota TYPE => SPACE, TABLE => 'QUEUE', LIMIT => '{max_bytes}', POLICY => NO_INSERTS"
            )));
        }
        let is_unknown = |key: &&String| key.starts_with(OUR_PREFIX) && !KNOWN_KEYS.contains(&key.as_str());
        if let Some(key) = self.configuration.keys().find(is_unknown) {
            return Err(no_key(key));
        }
        TableSettings::parse(&self.configuration).map(drop).map_err(Refusal::invalid)
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
    Err(no_key(key))
}

fn no_key(key: &str) -> Refusal {
    let nearest = KNOWN_KEYS.iter().min_by_key(|known| distance(known, key)).copied().unwrap_or_default();
    Refusal::invalid(format!("there is no configuration key {key:?}; the nearest known one is {nearest}"))
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

    fn spec(max_bytes: Option<i64>, when_full: Option<&str>, keep_unread: bool) -> TQueueSpec {
        TQueueSpec {
            name: Some(b"q".to_vec()),
            partitions: Some(1),
            ttl_seconds: Some(60),
            max_bytes,
            when_full: when_full.map(str::to_owned),
            keep_unread: keep_unread.then_some(true),
            ..TQueueSpec::default()
        }
    }

    #[test]
    fn a_limit_is_kept_in_the_record_and_given_to_the_store() {
        let (name, record) = QueueRecord::from_spec(&spec(Some(5), Some("drop_oldest"), true)).unwrap();
        let limit = SizeLimit { max_bytes: 5, when_full: WhenFull::DropOldest, keep_unread: true };
        assert_eq!(record.store_spec(&name).limit, Some(limit));
        let read: QueueRecord = serde_json::from_slice(&record.to_payload()).unwrap();
        assert_eq!(read, record);
        let text = String::from_utf8(record.to_payload()).unwrap();
        assert!(text.contains(r#""max_bytes":5,"when_full":"drop_oldest","keep_unread":true"#), "{text}");
        let (_, by_default) = QueueRecord::from_spec(&spec(Some(5), None, false)).unwrap();
        assert_eq!(by_default.retention.limit().unwrap().when_full, WhenFull::Reject);
    }

    #[test]
    fn a_record_of_an_earlier_version_has_no_limit() {
        let (_, record) = QueueRecord::from_spec(&spec(None, None, false)).unwrap();
        let payload = record.to_payload();
        assert!(!String::from_utf8_lossy(&payload).contains("max_bytes"));
        assert_eq!(serde_json::from_slice::<QueueRecord>(&payload).unwrap().retention, Retention::default());
        let unset = TQueueSpec {
            max_bytes: Some(0),
            when_full: Some(String::new()),
            keep_unread: Some(false),
            ..spec(None, None, false)
        };
        assert_eq!(QueueRecord::from_spec(&unset).unwrap().1.retention, Retention::default());
    }

    #[test]
    fn limits_without_sense_are_refused_with_the_reason() {
        let said = |spec: &TQueueSpec| QueueRecord::from_spec(spec).unwrap_err().message;
        assert!(said(&spec(Some(0), None, false)).contains("max_bytes is 0"));
        assert!(said(&spec(Some(1), Some("drop_newest"), false)).contains("reject or drop_oldest"));
        assert!(said(&spec(Some(1), None, true)).contains("keep_unread goes with drop_oldest"));
        assert!(said(&spec(None, Some("reject"), false)).contains("max_bytes, which is not given"));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}

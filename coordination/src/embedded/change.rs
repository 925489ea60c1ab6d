//! What happens to the tree, and how it is kept.
//!
//! A record of the journal, numbers big-endian:
//! ```text
//!  0  1  kind: 1 create, 2 set, 3 delete, 4 number
//!  1  4  create, set: the version of the node; number: the number of the next sequential child; delete: 0
//!  5  2  length of the path in bytes
//!  7  …  path
//!  …  …  create, set: payload, up to the end of the record
//! ```
//! Only what concerns persistent nodes is kept, and the numbers. In a snapshot a node is one `create` with its version, and a `number`
//! if it had sequential children; parents come before their children.

use std::sync::Arc;

/// Bytes that a record takes in a batch beside path and payload.
pub(super) const RECORD_OVERHEAD: usize = 4 + 7;

const CREATE: u8 = 1;
const SET: u8 = 2;
const DELETE: u8 = 3;
const NUMBER: u8 = 4;

/// One step from a tree to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// `owner`: the session of an ephemeral node.
    Create { path: Arc<str>, payload: Vec<u8>, version: i32, owner: Option<i64> },
    /// `kept`: the node is persistent.
    Set { path: Arc<str>, payload: Vec<u8>, version: i32, kept: bool },
    /// `kept`: the node is persistent.
    Delete { path: Arc<str>, kept: bool },
    /// The next sequential child of `path` gets the number `next`.
    Number { path: Arc<str>, next: u32 },
}

/// Takes the parts of a record.
pub(super) type Push<'a> = &'a mut dyn FnMut(&[&[u8]]);

impl Change {
    pub(super) fn path(&self) -> &Arc<str> {
        match self {
            Self::Create { path, .. } | Self::Set { path, .. } | Self::Delete { path, .. } | Self::Number { path, .. } => path,
        }
    }

    /// Hands over the record, if the change has to survive a restart.
    pub(super) fn keep(&self, push: Push<'_>) {
        match self {
            Self::Create { path, payload, version, owner: None } => encode_create(path, *version, payload, push),
            Self::Set { path, payload, version, kept: true } => encode_set(path, *version, payload, push),
            Self::Delete { path, kept: true } => encode(DELETE, [0; 4], path, &[], push),
            Self::Number { path, next } => encode_number(path, *next, push),
            Self::Create { .. } | Self::Set { .. } | Self::Delete { .. } => {}
        }
    }

    /// Reads a record; the error says what is wrong with it.
    pub(super) fn decode(record: &[u8]) -> Result<Self, String> {
        let Some((&[kind, v0, v1, v2, v3, l0, l1], rest)) = record.split_first_chunk() else {
            return Err(format!("a record of {} bytes is too short", record.len()));
        };
        let value = [v0, v1, v2, v3];
        let (path, payload) =
            rest.split_at_checked(u16::from_be_bytes([l0, l1]).into()).ok_or("a path is longer than its record")?;
        let path: Arc<str> = std::str::from_utf8(path).map_err(|_| "a path is not UTF-8")?.into();
        match kind {
            CREATE => Ok(Self::Create { path, payload: payload.to_vec(), version: i32::from_be_bytes(value), owner: None }),
            SET => Ok(Self::Set { path, payload: payload.to_vec(), version: i32::from_be_bytes(value), kept: true }),
            DELETE => Ok(Self::Delete { path, kept: true }),
            NUMBER => Ok(Self::Number { path, next: u32::from_be_bytes(value) }),
            _ => Err(format!("a record has kind {kind}, which this program does not know")),
        }
    }
}

pub(super) fn encode_create(path: &str, version: i32, payload: &[u8], push: Push<'_>) {
    encode(CREATE, version.to_be_bytes(), path, payload, push);
}

pub(super) fn encode_set(path: &str, version: i32, payload: &[u8], push: Push<'_>) {
    encode(SET, version.to_be_bytes(), path, payload, push);
}

pub(super) fn encode_number(path: &str, next: u32, push: Push<'_>) {
    encode(NUMBER, next.to_be_bytes(), path, &[], push);
}

fn encode(kind: u8, value: [u8; 4], path: &str, payload: &[u8], push: Push<'_>) {
    // Paths are checked before they come here: they are far shorter.
    let len = u16::try_from(path.len()).unwrap_or(u16::MAX);
    push(&[&[kind], &value, &len.to_be_bytes(), path.as_bytes(), payload]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(change: &Change) -> Option<Vec<u8>> {
        let mut record = None;
        change.keep(&mut |parts| record = Some(parts.concat()));
        record
    }

    #[test]
    fn a_change_comes_back_from_its_record() {
        let path: Arc<str> = "/queues/q".into();
        for change in [
            Change::Create { path: path.clone(), payload: b"p".to_vec(), version: 7, owner: None },
            Change::Create { path: path.clone(), payload: Vec::new(), version: 0, owner: None },
            Change::Set { path: path.clone(), payload: vec![0; 70_000], version: i32::MAX, kept: true },
            Change::Delete { path: path.clone(), kept: true },
            Change::Number { path: path.clone(), next: u32::MAX },
        ] {
            assert_eq!(Change::decode(&record_of(&change).unwrap()), Ok(change));
        }
    }

    #[test]
    fn what_goes_with_its_session_is_not_kept() {
        let path: Arc<str> = "/brokers/b".into();
        for change in [
            Change::Create { path: path.clone(), payload: b"p".to_vec(), version: 0, owner: Some(1) },
            Change::Set { path: path.clone(), payload: Vec::new(), version: 1, kept: false },
            Change::Delete { path: path.clone(), kept: false },
        ] {
            assert_eq!(record_of(&change), None);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..20_000 {
            let mut record: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..)).collect();
            if let Some(kind) = record.first_mut() {
                *kind %= 6;
            }
            let _ = Change::decode(&record);
        }
    }
}

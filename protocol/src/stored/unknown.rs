//! The fields of a message that we do not know: a message that is written anew keeps them as they came.

use std::ops::RangeInclusive;

use super::message::{FIELD_DEPTH, StoredMessage};
use crate::wire::binary::Binary;
use crate::wire::{Encoding, WireError, skip};

/// The fields that we know.
const KNOWN: RangeInclusive<i16> = 1..=5;

impl StoredMessage<'_> {
    /// The fields that we do not know, as they are stored; mostly none.
    pub fn unknown_fields(&self) -> Result<Vec<u8>, WireError> {
        let mut unknown = Vec::new();
        let mut at = 0;
        loop {
            let begin = at;
            let Some(field) = Binary::field(self.raw, &mut at, 0)? else { return Ok(unknown) };
            skip::<Binary>(self.raw, &mut at, field.kind, FIELD_DEPTH)?;
            if !KNOWN.contains(&field.id) {
                unknown.extend_from_slice(self.raw.get(begin..at).unwrap_or_default());
            }
        }
    }
}

/// Are these fields that we do not know, whole, and nothing else?
#[must_use]
pub fn are_unknown_fields(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        match Binary::field(bytes, &mut at, 0) {
            Ok(Some(field)) if !KNOWN.contains(&field.id) => {
                if skip::<Binary>(bytes, &mut at, field.kind, FIELD_DEPTH).is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MessageId;
    use crate::stored::PutBatch;
    use crate::wire::{Encode, Kind};

    fn field(id: i16, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Binary::write_field(&mut out, Kind::String, id, 0);
        Binary::write_string(&mut out, text);
        out
    }

    #[test]
    fn they_stay_through_a_message_that_is_written_anew() {
        let mut batch = PutBatch::default();
        let more = [field(6, b"six"), field(300, b""), field(-1, b"minus")].concat();
        // As a client may have put them: between those that we know.
        let fields = [&more[..], &field(4, b"value"), &field(9, b"nine"), &field(3, b"topic"), &[0]].concat();
        batch.push_fields(b"topic", &fields);
        batch.push(b"t", b"v", &[]);
        let more = [more, field(9, b"nine")].concat();
        batch.push_with(b"new", b"v", &[("a", b"b")], &more);
        let slice = batch.seal(7, || MessageId::MIN).unwrap();
        let messages: Vec<_> = slice.messages().map(Result::unwrap).collect();
        assert_eq!(messages.iter().map(|m| m.unknown_fields().unwrap()).collect::<Vec<_>>(), [more.clone(), Vec::new(), more]);
        assert_eq!((messages[2].topic, messages[2].value), (&b"new"[..], &b"v"[..]));
    }

    #[test]
    fn what_is_no_field_or_one_that_we_know_is_told_apart() {
        assert!(are_unknown_fields(&[]) && are_unknown_fields(&[field(6, b"x"), field(7, b"")].concat()));
        for bad in [
            field(5, b"x"),
            field(1, b"x"),
            vec![0],
            [field(6, b"x"), vec![0]].concat(),
            field(6, b"xyz")[..8].to_vec(),
            vec![99, 0, 6],
        ] {
            assert!(!are_unknown_fields(&bad), "{bad:?}");
        }
    }
}

//! Slices are cut and filtered at messages, and share their bytes.

use bytes::Bytes;
use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PutBatch, StoredMessage, StoredSlice};
use hqueue_protocol::wire::WireError;
use proptest::prelude::*;

/// Messages of the topics and value sizes given, with ids 1:0, 2:0 and so on.
fn slice_of(messages: &[(u8, usize)]) -> Option<StoredSlice> {
    let mut batch = PutBatch::default();
    messages.iter().for_each(|(topic, size)| batch.push(&[*topic], &vec![0; *size], &[]));
    let mut timestamp = 0;
    batch.seal(3, || {
        timestamp += 1;
        MessageId::new(timestamp, 0)
    })
}

fn messages(slice: &StoredSlice) -> Vec<StoredMessage<'_>> {
    slice.messages().collect::<Result<_, _>>().unwrap()
}

/// Count and ids of a slice are those of its messages.
fn check(slice: &StoredSlice) {
    assert_eq!(StoredSlice::from_stored(slice.bytes.clone()), Ok(Some(slice.clone())));
}

fn is_part_of(part: &StoredSlice, whole: &StoredSlice) -> bool {
    whole.bytes.as_ptr_range().contains(&part.bytes.as_ptr())
}

fn some_messages() -> impl Strategy<Value = Vec<(u8, usize)>> {
    prop::collection::vec((0u8..4, 0usize..60), 1..30)
}

#[test]
fn cutting_loses_nothing() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(parts in some_messages(), count in 0u32..10, bytes in 0usize..400)| {
        let whole = slice_of(&parts).unwrap();
        check(&whole);
        let mut seen = Vec::new();
        let mut rest = Some(whole.clone());
        while let Some(slice) = rest {
            let (front, behind) = slice.split_front(count, bytes).unwrap();
            check(&front);
            prop_assert!(is_part_of(&front, &whole));
            prop_assert!(front.count == 1 || (front.count <= count && front.bytes.len() <= bytes));
            if let Some(next) = behind.as_ref().map(|behind| messages(behind)[0].raw.len()) {
                prop_assert!(front.count >= count || front.bytes.len() + next > bytes, "more would have fitted");
            }
            seen.extend(messages(&front).iter().map(|m| m.id));
            rest = behind;
        }
        prop_assert_eq!(seen, messages(&whole).iter().map(|m| m.id).collect::<Vec<_>>());
    });
}

#[test]
fn wanted_messages_come_in_runs() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() },
        |(parts in some_messages(), wanted in prop::collection::vec(0u8..4, 0..4))| {
        let whole = slice_of(&parts).unwrap();
        let keep = |message: &StoredMessage<'_>| wanted.contains(&message.topic[0]);
        let runs = whole.runs(keep).unwrap();
        let mut expected = messages(&whole);
        expected.retain(keep);
        prop_assert_eq!(runs.iter().flat_map(messages).collect::<Vec<_>>(), expected);
        for run in &runs {
            check(run);
            prop_assert!(is_part_of(run, &whole));
        }
        // Neighbours are in one run.
        prop_assert!(runs.windows(2).all(|pair| pair[0].last.timestamp + 1 < pair[1].first.timestamp));
    });
}

#[test]
fn damaged_bytes_are_an_error_and_end_the_messages() {
    let whole = slice_of(&[(1, 5), (2, 5)]).unwrap();
    let cut = whole.bytes.slice(..whole.bytes.len() - 1);
    assert_eq!(StoredSlice::from_stored(cut.clone()), Err(WireError::Truncated));
    let damaged = StoredSlice { bytes: cut, ..whole };
    assert_eq!(damaged.messages().map(|message| message.is_ok()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(damaged.runs(|_| true), Err(WireError::Truncated));
    assert_eq!(StoredSlice::from_stored(Bytes::new()), Ok(None));
}

#[test]
fn an_empty_batch_has_nothing_to_seal() {
    assert_eq!(slice_of(&[]), None);
}

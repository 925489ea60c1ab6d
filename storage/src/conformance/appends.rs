//! Appending, and reading what was appended.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_protocol::stored::{PREFIX_LEN, PutBatch};

use super::{Message, World, batch};
use crate::store::{Append, Cursor, TailRead};

pub(super) async fn what_was_appended_is_read_in_order(world: &mut World) {
    let queue = world.queue(2).await;
    for n in 0..50 {
        queue.put((n % 2) as i16, &[&format!("a{n}"), &format!("b{n}")]).await;
    }
    for partition in 0..2 {
        let wanted: Vec<String> =
            (0..50).filter(|n| n % 2 == partition).flat_map(|n| [format!("a{n}"), format!("b{n}")]).collect();
        let found = queue.all(partition as i16).await;
        assert_eq!(found.texts(), wanted);
        let numbers: Vec<u64> = found.messages.iter().map(|message| message.number).collect();
        assert_eq!(numbers, (0..50).collect::<Vec<u64>>(), "running numbers have no gap");
        assert_eq!(found.missing, []);
    }
}

pub(super) async fn ids_that_were_answered_are_ids_that_are_read(world: &mut World) {
    let queue = world.queue(1).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.extend(queue.put(0, &vec!["v"; 1 + n % 7]).await);
        world.clock.advance((n % 3) as i64);
    }
    assert_eq!(queue.all(0).await.ids(), ids);
    assert_eq!(queue.committed(0).last, ids.last().copied());
    assert_eq!(queue.committed(0).next_number, ids.len() as u64);
}

/// Readers run beside a writer of batches of ten: what they see is always a whole number of batches.
pub(super) async fn a_batch_becomes_visible_whole(world: &mut World) {
    let queue = world.queue(1).await;
    let store = Arc::clone(&queue.store);
    let reader = tokio::spawn(async move {
        let mut seen = 0;
        while seen < 2000 {
            seen = super::scan(&*store, 0, Cursor::at(MessageId::MIN), 1 << 20).await.messages.len();
            assert_eq!(seen % 10, 0, "a reader sees part of a batch");
            tokio::task::yield_now().await;
        }
    });
    let mut waiting = Vec::new();
    for _ in 0..200 {
        waiting.push(queue.store.append(0, batch("t", &["v"; 10])).unwrap().done);
        tokio::task::yield_now().await;
    }
    for done in waiting {
        done.await.unwrap().unwrap();
    }
    reader.await.unwrap();
}

pub(super) async fn an_answered_append_is_visible(world: &mut World) {
    let queue = world.queue(1).await;
    for _ in 0..100 {
        let ids = queue.put(0, &["one", "two"]).await;
        assert_eq!(queue.committed(0).last, Some(ids[1]));
        match queue.tail(0, ids[0]) {
            TailRead::Blocks(blocks) => assert_eq!(blocks.last().unwrap().last, ids[1]),
            TailRead::Cold => {}
            TailRead::End => panic!("the tail ends at what was answered"),
        }
        assert_eq!(queue.from(0, ids[0]).await.ids(), ids);
        assert!(matches!(queue.tail(0, ids[1].successor()), TailRead::End));
    }
}

pub(super) async fn nothing_is_visible_above_the_committed_position(world: &mut World) {
    let queue = world.queue(1).await;
    let mut waiting = Vec::new();
    for n in 0..300 {
        let Append { ids, done } = queue.store.append(0, batch("t", &["v"; 3])).unwrap();
        waiting.push((ids, done));
        let seen = queue.all(0).await.ids().last().copied();
        // Read later, so it may be further on, never further back.
        let committed = queue.committed(0).last;
        assert!(seen <= committed, "read {seen:?}, committed is {committed:?}");
        if n % 50 == 0 {
            world.clock.advance(1);
        }
    }
    for (ids, done) in waiting {
        done.await.unwrap().unwrap();
        assert!(queue.committed(0).last >= ids.iter().last(), "answered before it was committed");
    }
}

pub(super) async fn an_append_that_nobody_waits_for_is_committed(world: &mut World) {
    let queue = world.queue(1).await;
    drop(queue.store.append(0, batch("t", &["left"])).unwrap());
    queue.put(0, &["waited for"]).await;
    assert_eq!(queue.all(0).await.texts(), ["left", "waited for"]);
}

pub(super) async fn a_batch_without_messages_is_answered(world: &mut World) {
    let queue = world.queue(1).await;
    assert_eq!(queue.put_batch(0, PutBatch::default()).await, []);
    assert_eq!(queue.committed(0).last, None);
    queue.put(0, &["v"]).await;
    assert_eq!(queue.put_batch(0, PutBatch::default()).await, []);
    assert_eq!(queue.all(0).await.messages.len(), 1);
}

pub(super) async fn topics_values_headers_and_unknown_fields_are_kept(world: &mut World) {
    let queue = world.queue(1).await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let of_another_version = fields_above_five();
    let odd_batch = || {
        let mut batch = PutBatch::with_capacity(3, 1000);
        batch.push(&every_byte[1..], &every_byte, &[("h", b"1"), ("", b""), ("binary", &[0, 0xff])]);
        batch.push(b"\0", b"", &[]);
        batch.push_fields(b"x", &of_another_version);
        batch
    };
    queue.put_batch(0, odd_batch()).await;
    let queue = world.reopened(queue).await;
    let sent = odd_batch().seal(0, || MessageId::MIN).unwrap();
    let sent: Vec<Vec<u8>> = sent.messages().map(|message| message.unwrap().raw[PREFIX_LEN..].to_vec()).collect();
    let found = queue.all(0).await.messages;
    assert_eq!(found.iter().map(|message| message.fields.clone()).collect::<Vec<_>>(), sent);
    assert_eq!((&found[0].topic[..], &found[0].value[..]), (&every_byte[1..], &every_byte[..]));
    assert_eq!((&found[1].topic[..], &found[1].value[..]), (&b"\0"[..], &b""[..]));
    assert_eq!(found[2].fields, of_another_version);
}

/// Topic `x`, value `y`, and a field 6 that no version of ours knows.
fn fields_above_five() -> Vec<u8> {
    let topic = [0x0b, 0, 3, 0, 0, 0, 1, b'x'];
    let value = [0x0b, 0, 4, 0, 0, 0, 1, b'y'];
    let unknown = [0x08, 0, 6, 1, 2, 3, 4];
    [&topic[..], &value, &unknown, &[0]].concat()
}

pub(super) async fn everything_is_there_after_a_reopening(world: &mut World) {
    let mut queue = world.queue(3).await;
    let mut wanted: Vec<Vec<Message>> = vec![Vec::new(); 3];
    for round in 0..4 {
        for partition in 0..3 {
            for n in 0..=partition {
                queue.put(partition, &[&format!("{round}/{n}"), "more"]).await;
            }
            let found = queue.all(partition).await.messages;
            assert!(found.starts_with(&wanted[partition as usize]));
            wanted[partition as usize] = found;
        }
        let committed: Vec<_> = (0..3).map(|partition| queue.committed(partition)).collect();
        world.clock.advance(10);
        queue = world.reopened(queue).await;
        for partition in 0..3 {
            assert_eq!(queue.all(partition).await.messages, wanted[partition as usize], "partition {partition}, round {round}");
            assert_eq!(queue.committed(partition), committed[partition as usize]);
        }
    }
}

pub(super) async fn listeners_are_told_once_a_commit(world: &mut World) {
    let queue = world.queue(3).await;
    for n in 1..=20 {
        queue.put(1, &["v", "w"]).await;
        // Each put was waited for, so each is a commit of its own.
        assert_eq!(queue.commits.more_than(1, n - 1).await, n);
    }
    let waiting: Vec<_> = (0..100).map(|_| queue.store.append(2, batch("t", &["v"])).unwrap().done).collect();
    for done in waiting {
        done.await.unwrap().unwrap();
    }
    let last = queue.put(2, &["last"]).await[0];
    queue.commits.more_than(2, 0).await;
    assert_eq!(queue.committed(2).last, Some(last));
    assert!((2..=101).contains(&queue.commits.commits(2)), "told {} times of at most 101 commits", queue.commits.commits(2));
    assert_eq!((queue.commits.commits(0), queue.commits.commits(1)), (0, 20), "told of partitions that had no commit");
}

pub(super) async fn counters_count_appends(world: &mut World) {
    let queue = world.queue(2).await;
    let before = world.store.counters();
    let put = batch("t", &["one", "two", "three"]);
    let bytes = put.byte_len() as u64;
    queue.put_batch(0, put).await;
    queue.put(1, &["four"]).await;
    let after = world.store.counters();
    assert_eq!(after.appended_messages - before.appended_messages, 4);
    assert!(after.appended_bytes - before.appended_bytes > bytes);
    assert!(after.commits > before.commits);
    assert_eq!((after.damaged_blocks, after.expired_messages), (0, 0));
}

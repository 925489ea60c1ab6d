//! Where a read begins and where it goes on.

use hqueue_protocol::id::MessageId;

use super::{Queue, START_MS, World, scan};
use crate::store::{Cursor, PlaceHint, TailRead};

/// Batches of three, ten milliseconds apart.
async fn some_batches(world: &World, queue: &Queue, batches: usize) -> Vec<MessageId> {
    let mut ids = Vec::new();
    for _ in 0..batches {
        ids.extend(queue.put(0, &["a", "b", "c"]).await);
        world.clock.advance(10);
    }
    ids
}

/// Every id, the gaps beside it, and both ends.
fn positions(ids: &[MessageId]) -> Vec<MessageId> {
    let beside = ids.iter().flat_map(|id| [MessageId::new(id.timestamp - 5, 0), *id, id.successor()]);
    let ends = [MessageId::MIN, MessageId::new(START_MS - 1, i16::MAX), MessageId::new(i64::MAX, 0), MessageId::MAX];
    beside.chain(ends).collect()
}

fn at_or_above(ids: &[MessageId], from: MessageId) -> Vec<MessageId> {
    ids.iter().copied().filter(|id| *id >= from).collect()
}

pub(super) async fn a_read_begins_at_the_first_id_at_or_above(world: &mut World) {
    let queue = world.queue(1).await;
    let ids = some_batches(world, &queue, 12).await;
    let queue = world.reopened(queue).await;
    for from in positions(&ids) {
        assert_eq!(queue.from(0, from).await.ids(), at_or_above(&ids, from), "from {from}");
    }
    // Above everything: nothing yet, and what comes later is below it.
    let above = MessageId::new(i64::MAX, 0);
    let at_end = queue.read(0, Cursor::at(above), 100).await;
    assert!(at_end.at_end && at_end.blocks.is_empty() && at_end.next.from >= above);
}

pub(super) async fn a_read_inside_a_batch_begins_inside_it(world: &mut World) {
    let queue = world.queue(1).await;
    let ids = queue.put(0, &["0", "1", "2", "3", "4", "5", "6"]).await;
    for (n, id) in ids.iter().enumerate() {
        let texts: Vec<String> = (n..7).map(|n| n.to_string()).collect();
        assert_eq!(queue.from(0, *id).await.texts(), texts);
    }
    assert_eq!(queue.from(0, ids[6].successor()).await.ids(), []);
}

pub(super) async fn small_reads_visit_every_block_once(world: &mut World) {
    let queue = world.queue(1).await;
    let ids = some_batches(world, &queue, 30).await;
    small_reads_of(&queue, &ids).await;
    let queue = world.reopened(queue).await;
    small_reads_of(&queue, &ids).await;
}

async fn small_reads_of(queue: &Queue, ids: &[MessageId]) {
    for max_bytes in [0, 1, 100, 250, 1000, usize::MAX] {
        for from in [0, 1, 44] {
            let found = scan(&*queue.store, 0, Cursor::at(ids[from]), max_bytes).await;
            assert_eq!(found.ids(), ids[from..], "in reads of {max_bytes} bytes");
        }
    }
}

/// Whatever the tail serves is what `read` finds at the same place.
pub(super) async fn tail_and_read_agree_everywhere(world: &mut World) {
    let queue = world.queue(2).await;
    let ids = some_batches(world, &queue, 12).await;
    for from in positions(&ids) {
        for max_bytes in [0, 200, usize::MAX] {
            match queue.store.read_tail(0, from, max_bytes).unwrap() {
                TailRead::Blocks(blocks) => {
                    assert!(!blocks.is_empty(), "no blocks from {from}, and no end");
                    assert!(blocks.len() == 1 || blocks.iter().map(|block| block.byte_len()).sum::<usize>() <= max_bytes);
                    let tail: Vec<_> = blocks.iter().flat_map(|block| super::scan::open_block(block)).collect();
                    let read = queue.from(0, from).await.messages;
                    let tail: Vec<_> = tail.into_iter().filter(|message| message.id >= from).collect();
                    assert!(
                        !tail.is_empty() && read.starts_with(&tail),
                        "the tail from {from} is no prefix of what a read finds"
                    );
                }
                TailRead::End => assert_eq!(at_or_above(&ids, from), [], "an end at {from}"),
                TailRead::Cold => {}
            }
        }
    }
    let end = ids[35].successor();
    assert!(matches!(queue.tail(0, end), TailRead::End), "a reader that has caught up needs no disk to know");
    assert!(matches!(queue.tail(1, MessageId::MIN), TailRead::End), "of a partition without messages");
}

pub(super) async fn wrong_hints_are_harmless(world: &mut World) {
    let queue = world.queue(2).await;
    let ids = some_batches(world, &queue, 20).await;
    queue.put(1, &["of another partition"; 20]).await;
    let mut hints = vec![None];
    for epoch in [0, 1, 2, 3, 1000, u64::MAX] {
        hints.extend([0, 1, 63, 64, 4096, 4097, 1 << 20, 1 << 40, u64::MAX].map(|offset| Some(PlaceHint { epoch, offset })));
    }
    // Hints of the store itself, for other positions and another partition.
    for from in &ids {
        hints.push(queue.read(0, Cursor::at(*from), 1).await.next.hint);
    }
    hints.push(queue.read(1, Cursor::at(MessageId::MIN), 1).await.next.hint);
    for hint in hints {
        for from in [MessageId::MIN, ids[1], ids[30], ids[59], ids[59].successor()] {
            let found = scan(&*queue.store, 0, Cursor { from, hint }, 300).await;
            assert_eq!(found.ids(), at_or_above(&ids, from), "from {from} with {hint:?}");
        }
    }
}

/// A cursor that was right once: before more was appended, before a restart, before a truncation.
pub(super) async fn stale_hints_are_harmless(world: &mut World) {
    let queue = world.queue(1).await;
    let mut ids = some_batches(world, &queue, 5).await;
    let middle = queue.read(0, Cursor::at(ids[3]), 1).await.next;
    let end = queue.from(0, MessageId::MIN).await.next.unwrap();
    ids.extend(some_batches(world, &queue, 5).await);
    let mut queue = queue;
    for _ in 0..2 {
        assert_eq!(scan(&*queue.store, 0, middle, 1000).await.ids(), at_or_above(&ids, middle.from));
        assert_eq!(scan(&*queue.store, 0, end, 1000).await.ids(), ids[15..]);
        queue = world.reopened(queue).await;
    }
    queue.store.truncate().await.unwrap();
    let later = some_batches(world, &queue, 2).await;
    for stale in [middle, end] {
        assert_eq!(scan(&*queue.store, 0, stale, 1000).await.ids(), later);
    }
}

pub(super) async fn a_rare_partition_is_found_between_many_messages(world: &mut World) {
    let queue = world.queue(2).await;
    let filler = "x".repeat(1000);
    let mut rare = Vec::new();
    for _ in 0..4 {
        rare.extend(queue.put(1, &["rare"]).await);
        for _ in 0..20 {
            queue.put(0, &vec![&filler[..]; 50]).await;
        }
        world.clock.advance(1000);
    }
    for _ in 0..2 {
        assert_eq!(queue.from(1, MessageId::MIN).await.ids(), rare);
        assert_eq!(queue.from(1, rare[2]).await.ids(), rare[2..]);
    }
    let queue = world.reopened(queue).await;
    assert_eq!(queue.from(1, rare[1]).await.ids(), rare[1..]);
    assert_eq!(queue.all(0).await.messages.len(), 4000);
}

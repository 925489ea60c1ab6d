//! Many writers at once, and what happens beside them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hqueue_protocol::id::MessageId;

use super::{Queue, World, batch, scan};
use crate::store::{Append, Cursor, StoreError, TailRead};

const WRITERS: u64 = 64;
const PUTS: u64 = 40;
const PARTITIONS: i16 = 4;

/// Case C5: a follower that has always caught up gets exactly what was acknowledged, in order: no smaller id shows up behind it.
pub(super) async fn a_follower_gets_what_was_acknowledged_in_order(world: &mut World) {
    let queue = Arc::new(world.queue(PARTITIONS).await);
    let messages_each = WRITERS * PUTS / PARTITIONS as u64;
    let followers: Vec<_> = (0..PARTITIONS).map(|p| tokio::spawn(follow(Arc::clone(&queue), p, messages_each))).collect();
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&queue), writer))).collect();
    let mut acknowledged = vec![BTreeSet::new(); PARTITIONS as usize];
    for writer in writers {
        for (partition, id) in writer.await.unwrap() {
            assert!(acknowledged[partition as usize].insert(id), "id {id} was given twice in partition {partition}");
        }
    }
    for (partition, follower) in followers.into_iter().enumerate() {
        let followed = follower.await.unwrap();
        assert!(followed.is_sorted_by(|a, b| a < b), "partition {partition}: not in order");
        assert!(acknowledged[partition].iter().eq(&followed), "partition {partition}: delivered is not acknowledged");
        assert_eq!(queue.all(partition as i16).await.ids(), followed);
    }
}

async fn write(queue: Arc<Queue>, writer: u64) -> Vec<(i16, MessageId)> {
    let mut ids = Vec::new();
    for put in 0..PUTS {
        let partition = (writer + put) as i16 % PARTITIONS;
        ids.push((partition, queue.put(partition, &[&format!("{writer}/{put}")]).await[0]));
    }
    ids
}

/// Reads a partition as a subscription does: the tail, the store where the tail is cold, and sleep until a commit at the end.
async fn follow(queue: Arc<Queue>, partition: i16, messages: u64) -> Vec<MessageId> {
    let mut ids = Vec::new();
    let mut cursor = Cursor::at(MessageId::MIN);
    while (ids.len() as u64) < messages {
        let told = queue.commits.commits(partition);
        let blocks = match queue.store.read_tail(partition, cursor.from, 10_000).unwrap() {
            TailRead::Blocks(blocks) => blocks,
            TailRead::End => {
                queue.commits.more_than(partition, told).await;
                continue;
            }
            TailRead::Cold => queue.read(partition, cursor, 10_000).await.blocks,
        };
        let found = blocks.iter().flat_map(|block| super::scan::open_block(block)).map(|message| message.id);
        ids.extend(found.filter(|id| *id >= cursor.from));
        cursor = ids.last().map_or(cursor, |last| Cursor::at(last.successor()));
    }
    ids
}

pub(super) async fn appends_beside_a_truncation_are_kept_or_gone_whole(world: &mut World) {
    let queue = Arc::new(world.queue(1).await);
    let before = queue.put(0, &["before"; 3]).await;
    let writer = {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..100 {
                ids.push(queue.put(0, &["beside"; 5]).await);
            }
            ids
        })
    };
    queue.commits.more_than(0, 20).await;
    queue.store.truncate().await.unwrap();
    let batches = writer.await.unwrap();
    let after = queue.put(0, &["after"]).await;
    let found = queue.all(0).await.ids();
    let all: Vec<MessageId> = before.into_iter().chain(batches.into_iter().flatten()).chain(after).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "ids went down or came twice");
    // What is left is the end of what there was, cut between two batches.
    assert!(all.ends_with(&found) && !found.is_empty());
    assert!(found.len() % 5 == 1, "a batch was cut in two: {} are left", found.len());
    assert!(all.len() - found.len() >= 3 + 20 * 5 - 5, "{} of {} were truncated", all.len() - found.len(), all.len());
}

pub(super) async fn appends_in_flight_at_the_close_are_answered(world: &mut World) {
    let queue = world.queue(1).await;
    let store = Arc::clone(&queue.store);
    let writer = tokio::spawn(async move {
        let mut waiting: Vec<Append> = Vec::new();
        loop {
            match store.append(0, batch("t", &["v"])) {
                Ok(append) => waiting.push(append),
                Err(StoreError::Closed) => return answers(waiting).await,
                Err(StoreError::Busy { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            tokio::task::yield_now().await;
        }
    });
    queue.commits.more_than(0, 3).await;
    world.store.close().await;
    let (acknowledged, all) = writer.await.unwrap();
    let queue = world.reopened(queue).await;
    let found: BTreeSet<MessageId> =
        scan(&*queue.store, 0, Cursor::at(MessageId::MIN), 1 << 20).await.ids().into_iter().collect();
    assert!(found.is_superset(&acknowledged), "acknowledged and not there");
    assert!(all.is_superset(&found), "there and never put");
    assert!(queue.put(0, &["v"]).await[0] > *all.last().unwrap().min(found.last().unwrap()));
}

/// Which ids were acknowledged, and all of them. Every append is answered, one way or the other.
async fn answers(waiting: Vec<Append>) -> (BTreeSet<MessageId>, BTreeSet<MessageId>) {
    let (mut acknowledged, mut all) = (BTreeSet::new(), BTreeSet::new());
    for append in waiting {
        all.extend(append.ids.iter());
        match append.done.await {
            Ok(Ok(())) => acknowledged.extend(append.ids.iter()),
            Ok(Err(StoreError::Closed)) => {}
            other => panic!("an append in flight at the close ends in {other:?}"),
        }
    }
    (acknowledged, all)
}

//! An owner that is gone without a word: the next one finds what it has left.

use std::sync::Arc;

use hqueue_protocol::id::MessageId;
use hqueue_storage::clock::SystemClock;
use hqueue_storage::conformance::Queue;
use hqueue_storage::store::MessageStore;

use crate::support::{block_on, foreign, open, options, queue};

/// Nothing was closed: the records say nothing of these messages. Some have anchors, some lie behind the last.
#[test]
fn what_was_put_before_a_crash_is_found_and_counted() {
    block_on(async {
        let mut options = options();
        options.partitions_per_region = Some(1);
        let (store, first) = queue(options.clone(), 3).await;
        let mut ids = vec![Vec::new(); 2];
        for n in 0..40 {
            for partition in 0..2 {
                let values: Vec<String> = (0..=30 * partition + 1).map(|m| format!("{n}/{m}")).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                ids[partition as usize].extend(first.put(partition, &values).await);
            }
        }
        let before: Vec<_> = (0..3).map(|partition| first.committed(partition)).collect();
        let spec_again = first.spec.clone();
        let statistics = first.statistics(1).await;
        // As a process that ends at once: no record says what was put last.
        std::mem::forget(store);
        let again = open(options, Arc::new(SystemClock::default())).await.unwrap();
        let queue = Queue::open(&again, spec_again).await.unwrap();
        for partition in 0..3 {
            assert_eq!(queue.committed(partition), before[partition as usize], "partition {partition}");
        }
        for partition in 0..2 {
            let found = queue.all(partition).await;
            assert_eq!(found.ids(), ids[partition as usize]);
            let numbers: Vec<u64> = found.messages.iter().map(|message| message.number).collect();
            assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        }
        let found = queue.statistics(1).await;
        assert_eq!((found.first, found.last, found.messages), (statistics.first, statistics.last, statistics.messages));
        assert_eq!(queue.count(1, MessageId::MIN, &["t"], 100_000).await, (statistics.messages, true));
        let next = queue.put(1, &["next"]).await[0];
        assert!(Some(next) > statistics.last);
    });
}

/// Somebody has emptied `hqueue:partitions`: what was put is found all the same.
#[test]
fn what_was_put_is_found_without_the_records() {
    block_on(async {
        let options = options();
        let table = format!("{}:orders", options.namespace);
        let (store, first) = queue(options.clone(), 2).await;
        let ids = first.put(1, &["a", "b", "c"]).await;
        let spec = first.spec.clone();
        store.close().await;
        tokio::task::spawn_blocking(move || foreign("forget", &table)).await.unwrap();
        let again = open(options, Arc::new(SystemClock::default())).await.unwrap();
        let queue = Queue::open(&again, spec).await.unwrap();
        assert_eq!(queue.all(1).await.ids(), ids);
        assert_eq!(queue.committed(1).next_number, 3);
        let next = queue.put(1, &["d"]).await[0];
        assert!(next > ids[2]);
        assert_eq!(queue.all(1).await.messages.len(), 4);
    });
}

/// HBase is told to split where regions begin, and truncation keeps that.
#[test]
fn a_truncated_table_keeps_its_splits() {
    block_on(async {
        let mut options = options();
        options.partitions_per_region = Some(2);
        let (store, queue) = queue(options, 5).await;
        let regions = || async { store.regions("orders").await.unwrap() };
        let before: Vec<Vec<u8>> = regions().await.into_iter().map(|region| region.first_row).collect();
        assert_eq!(before, [vec![], vec![0, 2], vec![0, 4]]);
        queue.put(3, &["gone"]).await;
        queue.store.truncate().await.unwrap();
        let after: Vec<Vec<u8>> = regions().await.into_iter().map(|region| region.first_row).collect();
        assert_eq!(after, before);
        assert_eq!(queue.all(3).await.messages.len(), 0);
    });
}

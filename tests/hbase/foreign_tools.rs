//! A queue is a table like any other: HBase's own client reads it, and what that client has written is a queue.

use crate::support::{block_on, foreign, open, options, queue, spec};
use hqueue_protocol::id::MessageId;
use hqueue_storage::conformance::Queue;

#[test]
fn hbase_reads_a_queue() {
    block_on(async {
        let options = options();
        let table = format!("{}:orders", options.namespace);
        let (_store, queue) = queue(options, 3).await;
        let mut wanted = Vec::new();
        for partition in 0..3 {
            for id in queue.put_as(partition, "colour", &["red", "green"]).await {
                let value = if wanted.len() % 2 == 0 { "red" } else { "green" };
                wanted.push(format!("{partition}\t{id}\tcolour\t{value}"));
            }
        }
        let found = tokio::task::spawn_blocking(move || foreign("scan", &table)).await.unwrap();
        assert_eq!(found.lines().collect::<Vec<_>>(), wanted);
    });
}

#[test]
fn a_table_that_hbase_has_made_is_a_queue() {
    block_on(async {
        let options = options();
        let table = format!("{}:orders", options.namespace);
        let store = open(options, std::sync::Arc::new(hqueue_storage::clock::SystemClock::default())).await.unwrap();
        tokio::task::spawn_blocking(move || foreign("make", &table)).await.unwrap();
        let queue = Queue::open(&store, spec(2)).await.unwrap();
        for partition in 0..2 {
            let found = queue.all(partition).await;
            let texts: Vec<String> = (0..3).map(|n| format!("foreign {partition} {n}")).collect();
            assert_eq!(found.texts(), texts);
            let last = MessageId::new(1_600_000_000_000 + i64::from(partition), 2);
            assert_eq!(queue.committed(partition).last, Some(last));
            assert_eq!(queue.committed(partition).next_number, 3);
            assert_eq!(queue.count(partition, MessageId::MIN, &["topic1"], 100).await, (1, true));
            let ours = queue.put(partition, &["ours"]).await;
            assert!(ours[0] > last);
            assert_eq!(queue.all(partition).await.messages.len(), 4);
        }
    });
}

/// A table with other rows is somebody's, though it has a family of that name: it stays as it is.
#[test]
fn a_table_with_other_rows_is_left_alone() {
    block_on(async {
        let options = options();
        let table = format!("{}:orders", options.namespace);
        let store = open(options, std::sync::Arc::new(hqueue_storage::clock::SystemClock::default())).await.unwrap();
        let made = table.clone();
        tokio::task::spawn_blocking(move || foreign("other", &made)).await.unwrap();
        let refused = Queue::open(&store, spec(2)).await.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("is no queue of 2 partitions") && refused.contains("1 bytes"), "{refused}");
        let left = tokio::task::spawn_blocking(move || foreign("describe", &table)).await.unwrap();
        assert!(!left.contains("hqueue") && left.contains("message") && !left.contains("headers"), "{left}");
    });
}

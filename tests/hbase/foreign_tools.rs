//! A queue is a table like any other: HBase's own client reads it, and what that client has written is a queue.

use std::path::Path;

use hqueue_protocol::id::MessageId;
use hqueue_storage::conformance::Queue;
use hqueue_tests::hbase::HBase;

use crate::support::{block_on, open, options, queue, spec};

/// Runs our little program on HBase's Java client.
fn foreign(what: &str, table: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hbase/java/Foreign.java");
    HBase::shared().script("java", &[source.to_str().unwrap(), what, table], &[])
}

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

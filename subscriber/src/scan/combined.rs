//! Reads several partitions, one after the other.

use std::collections::BTreeMap;
use std::collections::btree_map;

use hqueue_protocol::client::RpcClient;

use super::{PartitionScanner, Scan};
use crate::error::Error;
use crate::message::Message;

/// Returns the messages of some partitions, one partition after the other, each up to what was its newest message when it was read.
#[derive(Debug)]
pub struct CombinedPartitionScanner {
    client: RpcClient,
    queue: String,
    left: btree_map::IntoIter<i16, Scan>,
    current: Option<PartitionScanner>,
}

impl CombinedPartitionScanner {
    pub(crate) fn new(client: RpcClient, queue: &str, scans: BTreeMap<i16, Scan>) -> Self {
        Self { client, queue: queue.to_owned(), left: scans.into_iter(), current: None }
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Message>, Error> {
        while let Some(scanner) = self.scanner() {
            if let Some(message) = scanner.next().await? {
                return Ok(Some(message));
            }
            self.end_partition().await;
        }
        Ok(None)
    }

    /// The next messages, `max` at most and all of one partition; empty at the end, or if `max` is 0.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Message>, Error> {
        while let Some(scanner) = self.scanner().filter(|_| max > 0) {
            let messages = scanner.next_batch(max).await?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            self.end_partition().await;
        }
        Ok(Vec::new())
    }

    /// Releases what is open at the broker.
    pub async fn close(mut self) {
        self.end_partition().await;
    }

    /// That of the partition at hand.
    fn scanner(&mut self) -> Option<&mut PartitionScanner> {
        if self.current.is_none() {
            let (partition, scan) = self.left.next()?;
            self.current = Some(PartitionScanner::new(self.client.clone(), &self.queue, partition, scan));
        }
        self.current.as_mut()
    }

    async fn end_partition(&mut self) {
        if let Some(scanner) = self.current.take() {
            scanner.close().await;
        }
    }
}

/// Returns the messages of a queue, partition by partition.
#[derive(Debug)]
pub struct QueueScanner(CombinedPartitionScanner);

impl QueueScanner {
    pub(crate) const fn new(all: CombinedPartitionScanner) -> Self {
        Self(all)
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Message>, Error> {
        self.0.next().await
    }

    /// The next messages, `max` at most and all of one partition; empty at the end, or if `max` is 0.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Message>, Error> {
        self.0.next_batch(max).await
    }

    /// Releases what is open at the broker.
    pub async fn close(self) {
        self.0.close().await;
    }
}

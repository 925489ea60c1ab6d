//! What brokers that share HBase do to the table of a queue, and what they are told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hqueue_storage::store::StoreError;
use uuid::Uuid;

use super::HBaseStore;
use super::queue::HBaseQueue;
use super::shared::failed;
use crate::schema::partition_of_region;
use crate::table::{self, Compression, MayGoOn, Region};

/// What HBase has of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// With the namespace.
    pub table: String,
    pub is_enabled: bool,
    pub regions: Vec<Region>,
    /// Of the family of the values; `None`: for ever.
    pub ttl_seconds: Option<i32>,
    pub compression: String,
    /// Of the table, in HBase's names.
    pub attributes: BTreeMap<String, String>,
}

impl TableFacts {
    /// The host of the region server that has each of so many partitions.
    #[must_use]
    pub fn hosts(&self, partitions: i16) -> Vec<String> {
        hosts(&self.regions, partitions)
    }
}

impl HBaseStore {
    /// The id of the HBase behind the gateways: brokers of one cluster share one.
    ///
    /// # Errors
    /// When HBase does not answer.
    pub async fn cluster_id(&self) -> Result<String, StoreError> {
        let id = table::cluster_id(&self.shared.gateways, self.shared.read_deadline()).await;
        id.map_err(failed("asking HBase who it is"))
    }

    /// HBase's namespace for the tables of queues.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.shared.options.namespace
    }

    /// The regions of a queue, and the region servers that have them.
    ///
    /// # Errors
    /// When HBase does not answer, or there is no such table.
    pub async fn regions(&self, queue: &str) -> Result<Vec<Region>, StoreError> {
        let found = table::regions(&self.shared.gateways, &self.table(queue), self.shared.read_deadline()).await;
        found.map_err(failed("asking HBase for regions"))
    }

    /// The region server, `host:port`, that has each partition of a queue: where a batch job should read.
    ///
    /// # Errors
    /// When HBase does not answer, or there is no such table.
    pub async fn region_servers(&self, queue: &str, partitions: i16) -> Result<Vec<String>, StoreError> {
        Ok(hosts(&self.regions(queue).await?, partitions))
    }

    /// What HBase has of a queue.
    ///
    /// # Errors
    /// When HBase does not answer, or there is no such table.
    pub async fn facts(&self, queue: &str) -> Result<TableFacts, StoreError> {
        let name = self.table(queue);
        let (gateways, deadline) = (&self.shared.gateways, self.shared.read_deadline());
        let facts = async {
            let Some(found) = table::describe(gateways, &name, deadline).await? else { return Ok(TableFacts::default()) };
            let is_enabled = table::is_enabled(gateways, &name, deadline).await?;
            let regions = table::regions(gateways, &name, deadline).await?;
            Ok(TableFacts {
                table: name.to_string(),
                is_enabled,
                regions,
                ttl_seconds: found.ttl_seconds.filter(|seconds| *seconds < i32::MAX),
                compression: Compression::name_of(found.compression.unwrap_or_default()),
                attributes: found.attributes.into_iter().filter(|(name, _)| !name.starts_with("hqueue.")).collect(),
            })
        };
        facts.await.map_err(failed("asking HBase for a table"))
    }

    /// Lets go of a queue, whose table stays. Its handles answer `Closed` from then on.
    pub async fn close_queue(&self, name: &str, uid: Uuid) {
        let known = {
            let mut queues = self.lock();
            let is_it = queues.get(name).is_some_and(|known| known.spec.uid == uid);
            if is_it { queues.remove(name) } else { None }
        };
        if let Some(known) = known {
            known.close();
            known.wait_until_idle().await;
        }
    }

    /// Removes a queue that no broker serves any more: its table, and what is known of its partitions.
    ///
    /// # Errors
    /// When HBase does not answer, or refuses.
    pub async fn remove_table(&self, name: &str, uid: Uuid, partitions: i16) -> Result<(), StoreError> {
        self.remove_now(name, uid, Some(partitions)).await
    }

    /// Has the queue's table take reads and writes: whoever emptied it may have ended in the middle.
    ///
    /// # Errors
    /// When HBase does not answer, or refuses.
    pub async fn enable(&self, queue: &str) -> Result<(), StoreError> {
        let enabled = table::set_enabled(&self.shared.gateways, &self.table(queue), true, self.shared.table_deadline()).await;
        enabled.map_err(failed("enabling a table of HBase"))
    }

    /// Removes all messages of a queue of which no broker owns a partition. `may_go_on` says whether that is certainly still so.
    ///
    /// # Errors
    /// When HBase does not answer, or refuses; when it may not go on: some or all messages may be gone then.
    pub async fn empty(&self, name: &str, uid: Uuid, may_go_on: MayGoOn<'_>) -> Result<(), StoreError> {
        let known: Option<Arc<HBaseQueue>> = self.lock().get(name).filter(|known| known.spec.uid == uid).cloned();
        match known {
            Some(known) => known.empty_unowned(may_go_on).await,
            None => Err(StoreError::Closed),
        }
    }
}

fn hosts(regions: &[Region], partitions: i16) -> Vec<String> {
    let firsts: Vec<i16> = regions.iter().map(|region| partition_of_region(&region.first_row)).collect();
    let of = |partition: i16| {
        let region = firsts.partition_point(|first| *first <= partition).checked_sub(1).and_then(|n| regions.get(n));
        region.map_or_else(String::new, |region| match region.port {
            Some(port) => format!("{}:{port}", region.host),
            None => region.host.clone(),
        })
    };
    (0..partitions).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_the_host_of_its_region() {
        let region = |first: &[u8], host: &str| Region { first_row: first.to_vec(), host: host.to_owned(), port: Some(1) };
        let regions = [region(b"", "a"), region(&[0, 2], "b"), region(&[0, 3, 0, 9], "c")];
        assert_eq!(hosts(&regions, 5), ["a:1", "a:1", "b:1", "c:1", "c:1"]);
        assert_eq!(hosts(&[], 1), [""]);
    }
}

//! Removing all messages.
//!
//! What is on its way comes first; what is put meanwhile waits, and goes behind. Then the records say up to where everything is gone:
//! from here on no reader sees it, also if HBase is not emptied in the end, or a write comes late.
//!
//! Where brokers share the table, one of them does it while no partition has an owner ([`HBaseQueue::empty_unowned`]).

use std::sync::Arc;

use hqueue_storage::store::StoreError;

use super::queue::HBaseQueue;
use super::shared::failed;
use crate::table::{self, MayGoOn};

impl HBaseQueue {
    pub(super) async fn truncate(self: &Arc<Self>) -> Result<(), StoreError> {
        self.lanes.iter().for_each(super::lane::Lane::hold_back);
        self.wait_until_idle().await;
        let emptied = self.empty().await;
        self.let_lanes_go();
        emptied
    }

    async fn empty(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut held = Vec::new();
        for partition in 0..self.spec.partitions {
            let truncated = self.with(partition, |p| p.truncation().inspect(|truncated| p.truncate(*truncated)));
            if let Ok(Some(_)) = truncated {
                held.push(partition);
            }
        }
        self.keep(held.iter().copied(), false).await?;
        for partition in held {
            let _ = self.with(partition, |held| held.is_marked = true);
        }
        if self.shared.options.owns_everything { self.empty_table(&|| true).await } else { Ok(()) }
    }

    async fn empty_table(&self, may_go_on: MayGoOn<'_>) -> Result<(), StoreError> {
        let deadline = self.shared.table_deadline();
        let emptied = table::truncate(&self.shared.gateways, &self.table, deadline, may_go_on).await;
        emptied.map_err(failed("emptying a table of HBase"))
    }

    /// Removes all messages while no broker owns a partition. `may_go_on` says whether that is certainly still so.
    pub(super) async fn empty_unowned(self: &Arc<Self>, may_go_on: MayGoOn<'_>) -> Result<(), StoreError> {
        let emptied = self.empty_all(may_go_on).await;
        (0..self.spec.partitions).for_each(|partition| self.hold(partition, None));
        emptied
    }

    async fn empty_all(self: &Arc<Self>, may_go_on: MayGoOn<'_>) -> Result<(), StoreError> {
        self.acquire_all().await?;
        let all = 0..self.spec.partitions;
        for partition in all.clone() {
            self.with(partition, |held| {
                if let Some(truncated) = held.truncation_of_all() {
                    held.truncate(truncated);
                }
            })?;
        }
        self.keep(all, true).await?;
        self.empty_table(may_go_on).await
    }
}
